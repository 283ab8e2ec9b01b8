"""Transposed convolutions whose windows lie side by side: one product for all elements of a window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.config import config
from tests.support import to_the_bit

CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {  # what is transposed, and the kernel
    "one output": ((2, 7, 5, 24), (2, 2, 1, 24)),
    "several outputs": ((1, 6, 9, 40), (2, 3, 5, 40)),
    "one dimension": ((3, 11, 33), (4, 3, 33)),
    "three dimensions": ((2, 3, 4, 5, 18), (2, 1, 3, 2, 18)),
    "one window": ((1, 1, 1, 50), (3, 3, 2, 50)),
}
FUNCTIONS = {3: nnc.conv_transpose1d, 4: nnc.conv_transpose2d, 5: nnc.conv_transpose3d}


def drawn(case: str, dtype: str = "float32") -> tuple[nnc.Tensor, nnc.Tensor]:
    rng = np.random.default_rng(0)
    x, kernel = [nnc.asarray(rng.standard_normal(shape)).astype(dtype) for shape in CASES[case]]
    return x, kernel


def upscaled(x: Any, kernel: Any, **how: Any) -> Any:
    """With a bias and an activation behind."""
    found = FUNCTIONS[x.ndim](x, kernel, strides=kernel.shape[:-2], **how)
    return nnc.tanh(found + 0.25)


def by_hand(x: np.ndarray[Any, Any], kernel: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Each pixel's window, written to its place."""
    *window, channels, _ = kernel.shape
    out = np.empty((x.shape[0], *[n * k for n, k in zip(x.shape[1:-1], window, strict=True)], channels))
    for place in np.ndindex(x.shape[1:-1]):
        part = tuple([slice(p * k, p * k + k) for p, k in zip(place, window, strict=True)])
        out[:, *part] = np.einsum("no,...co->n...c", x[:, *place], kernel)
    return np.tanh(out + 0.25)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_values_are_those_of_each_window_by_itself(case: str, dtype: str) -> None:
    x, kernel = drawn(case, dtype)
    compiled = nnc.jit(upscaled)
    rtol = {"float16": 1e-2, "float32": 1e-5, "float64": 1e-12}[dtype]
    expected = by_hand(x.numpy().astype(np.float64), kernel.numpy().astype(np.float64))
    np.testing.assert_allclose(compiled(x, kernel).numpy(), expected, rtol=rtol, atol=rtol)
    assert "conv_input_gradient" not in compiled.explain(x, kernel)


@pytest.mark.parametrize("case", CASES)
@to_the_bit
def test_bits_are_those_of_eager_code(case: str) -> None:
    x, kernel = drawn(case)
    expected = upscaled(x, kernel).numpy()
    np.testing.assert_array_equal(nnc.jit(upscaled)(x, kernel).numpy(), expected)
    with config.using(fusion=False):
        np.testing.assert_array_equal(nnc.jit(upscaled)(x, kernel).numpy(), expected)
    with nnc.deferred():
        later = upscaled(x, kernel)
    np.testing.assert_array_equal(later.numpy(), expected)


@pytest.mark.parametrize("how", [{"output_padding": 1}, {"padding": (1, 1)}, {"groups": 2}], ids=str)
def test_windows_that_do_not_fill_the_image_are_left(how: dict[str, Any]) -> None:
    x, kernel = drawn("several outputs")
    compiled = nnc.jit(lambda x, kernel: upscaled(x, kernel, **how))
    np.testing.assert_allclose(compiled(x, kernel).numpy(), upscaled(x, kernel, **how).numpy(), rtol=1e-5, atol=1e-5)
    assert "conv_input_gradient" in compiled.explain(x, kernel)


def test_gradients_of_patches() -> None:
    """Images cut into patches have such a gradient."""
    rng = np.random.default_rng(1)
    x, kernel = [nnc.asarray(rng.standard_normal(s).astype(np.float32)) for s in ((2, 8, 12, 3), (4, 4, 3, 32))]

    def gradient(x: Any, kernel: Any) -> Any:
        return nnc.grad(lambda x: nnc.sum(nnc.conv2d(x, kernel, strides=4) ** 2))(x)

    compiled = nnc.jit(gradient)
    np.testing.assert_allclose(compiled(x, kernel).numpy(), gradient(x, kernel).numpy(), rtol=1e-4, atol=1e-3)
    assert "conv_input_gradient" not in compiled.explain(x, kernel)
