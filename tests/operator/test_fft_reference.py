"""References of transforms against sums over all elements, in higher precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnc_core.base.dtype import COMPLEX, complex64, float32, float64
from nnc_plugins.conformance.cases import Example, examples
from tests.operator.host import arguments, call

SCALE = {"backward": (0, 1), "ortho": (0.5, 0.5), "forward": (1, 0)}
"""The power of the number of elements that the transform, and its inverse, are divided by."""


def matrix(n: int, sign: int) -> Any:
    """exp(sign 2 pi i j k / n), from angles within one turn."""
    turns = np.outer(np.arange(n), np.arange(n)) % n / np.longdouble(n)
    return np.exp(sign * 2j * np.arctan(np.longdouble(1)) * 4 * turns)


def transformed(x: Any, axis: int, inverse: bool, norm: str) -> Any:
    n = x.shape[axis]
    y = np.moveaxis(np.tensordot(matrix(n, 1 if inverse else -1), x.astype(np.clongdouble), (1, axis)), 0, axis)
    return y / np.longdouble(n) ** SCALE[norm][inverse]


def whole_spectrum(x: Any, axis: int, size: int) -> Any:
    """With the frequencies that are conjugates of those given; the imaginary parts of the real ones are dropped."""
    half = np.moveaxis(x.astype(np.clongdouble), axis, 0).copy()
    half[0] = half[0].real
    if size % 2 == 0:
        half[-1] = half[-1].real
    rest = np.conj(half[1 : (size + 1) // 2][::-1])
    return np.moveaxis(np.concatenate([half, rest]), 0, axis)


def near(example: Example, found: Any, wanted: Any) -> None:
    tolerance = 2e-6 if example.dtype in (complex64, float32) else 1e-14
    scale = float(np.abs(wanted).max(initial=0))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * (1 + scale), err_msg=str(example))


def test_complex_transforms_are_sums(rng: np.random.Generator) -> None:
    for example in examples("fft"):
        (x,), how = arguments(example, rng)
        wanted = x
        for axis in how["axes"]:
            wanted = transformed(wanted, axis, how["inverse"], how["norm"])
        near(example, call(example.op, x, *how.values()), wanted)


def test_real_transforms_are_their_first_half(rng: np.random.Generator) -> None:
    for example in examples("rfft"):
        (x,), how = arguments(example, rng)
        axis, whole = how["axis"], transformed(x, how["axis"], False, how["norm"])
        wanted = np.take(whole, range(x.shape[axis] // 2 + 1), axis)
        near(example, call(example.op, x, *how.values()), wanted)


def test_real_signals_are_sums_over_both_halves(rng: np.random.Generator) -> None:
    for example in examples("irfft"):
        (x,), how = arguments(example, rng)
        wanted = transformed(whole_spectrum(x, how["axis"], how["size"]), how["axis"], True, how["norm"])
        near(example, wanted.imag, np.zeros(wanted.shape))
        near(example, call(example.op, x, *how.values()), wanted.real)


@pytest.mark.parametrize("name", ["fft", "rfft", "irfft"])
def test_both_precisions_have_cases(name: str) -> None:
    assert {e.dtype for e in examples(name)} == set((float32, float64) if name == "rfft" else COMPLEX)
