"""Short-time Fourier transforms against their definition, frame by frame, and windows against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from tests.tensors.against_numpy import assert_derivatives
from tests.tensors.faults import fails
from tests.tensors.ways import agrees_with_eager


def transformed(x: Any, n: int, hop: int, window: Any, center: bool, normalized: bool, onesided: bool) -> Any:
    """(..., frequencies, frames) by sums of products."""
    if center:
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n // 2, n // 2)], mode="reflect")
    low = (n - len(window)) // 2
    w = np.zeros(n)
    w[low : low + len(window)] = window
    frames = [x[..., t : t + n] * w for t in range(0, x.shape[-1] - n + 1, hop)]
    waves = np.exp(-2j * np.pi * np.arange(n)[:, None] * np.arange(n) / n)[: n // 2 + 1 if onesided else n]
    return np.stack([f @ waves.T for f in frames], -1) / (np.sqrt(n) if normalized else 1)


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": ((20,), {}), "batches": ((2, 3, 21), {"hop_length": 3}), "as it lies": ((2, 20), {"center": False}),
    "normalized": ((2, 20), {"normalized": True, "hop_length": 5}), "two sides": ((20,), {"onesided": False}),
    "short window": ((2, 20), {"win_length": 5}), "odd": ((2, 23), {"n_fft": 7, "hop_length": 2})}  # fmt: skip
each = pytest.mark.parametrize("name", CASES)


def arguments(name: str) -> tuple[int, dict[str, Any]]:
    named = dict(CASES[name][1])
    n = named.pop("n_fft", 8)
    window = scipy.signal.windows.hann(named.get("win_length", n), sym=False) + 0.1
    return n, {**named, "window": window}


@each
@pytest.mark.parametrize("complex_x", [False, True])
def test_against_the_definition(rng: np.random.Generator, name: str, complex_x: bool) -> None:
    n, named = arguments(name)
    x = rng.standard_normal(CASES[name][0])
    x = x + 1j * rng.standard_normal(x.shape) if complex_x else x
    sides = named.get("onesided") is not False and not complex_x
    expected = transformed(x, n, named.get("hop_length", n // 4), named["window"], named.get("center", True),
                           named.get("normalized", False), sides)
    found = nnc.stft(nnc.asarray(x), n, **named)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-9)
    length = x.shape[-1]
    back = nnc.istft(found, n, **{**named, "onesided": sides}, length=length).numpy()
    np.testing.assert_allclose(back[..., : length - n], x[..., : length - n], rtol=1e-9, atol=1e-9)
    assert back.shape == x.shape and (np.iscomplexobj(back) == (not sides))


def test_as_scipy_has_it(rng: np.random.Generator, device: str) -> None:
    x = rng.standard_normal((2, 64)).astype(np.float32)
    window = scipy.signal.windows.hamming(16, sym=False).astype(np.float32)
    _, _, wanted = scipy.signal.stft(x, window=window, nperseg=16, noverlap=12, boundary=None, padded=False)
    found = nnc.stft(nnc.asarray(x), 16, hop_length=4, window=window, center=False)
    np.testing.assert_allclose(found.numpy() / window.sum(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["compiled", "deferred", "vmap"])
def test_other_ways_to_run(rng: np.random.Generator, mode: str) -> None:
    def f(x: Any) -> Any:
        y = nnc.stft(x, 8, window=nnc.hanning(8, periodic=True))
        return nnc.istft(y * 2, 8, window=nnc.hanning(8, periodic=True), length=18)

    agrees_with_eager(mode, f, rng.standard_normal((2, 16)).astype(np.float32), rtol=1e-4, atol=1e-5)


def test_derivatives(rng: np.random.Generator) -> None:
    def code(n: Any, x: Any, w: Any) -> Any:
        y = nnc.stft(x, 6, hop_length=2, window=w)
        return [nnc.real(y), nnc.imag(y), nnc.istft(y * (1 + 0.5j), 6, hop_length=2, window=w)]

    assert_derivatives(code, [rng.standard_normal(13), rng.uniform(0.5, 1, 6)])


def test_sizes_may_be_names() -> None:
    x = nnc.var_arr("x", (nnc.Dim("n"), nnc.Dim("length")))
    graph = nnc.make_graph([x], [nnc.stft(x, 8, center=False)], "frames")
    assert "n,5," in str(next(iter(graph.outputs.values())).spec)


def test_wrong_frames() -> None:
    x = np.zeros(20)
    with fails(ShapeError, "window", operator="stft"):
        nnc.stft(x, 8, window=np.ones(9))
    with fails(ShapeError, "no frame", operator="stft"):
        nnc.stft(x, 32, center=False)
    with fails(AttributeValueError, "negative", operator="stft"):
        nnc.stft(x + 0j, 8, onesided=True)
    with fails(DTypeError, "needs", operator="stft"):
        nnc.stft(x.astype(np.int64), 8)
    with fails(DTypeError, "complex", operator="istft"):
        nnc.istft(x, 8)
    with fails(ShapeError, "frequencies", operator="istft"):
        nnc.istft(np.zeros((7, 3), np.complex128), 8)


@pytest.mark.parametrize("length", [0, 1, 2, 9, 16])
@pytest.mark.parametrize("periodic", [False, True])
def test_windows(length: int, periodic: bool) -> None:
    w = scipy.signal.windows
    pairs = [(nnc.hanning, w.hann), (nnc.hamming, w.hamming), (nnc.blackman, w.blackman), (nnc.bartlett, w.bartlett)]
    for ours, theirs in pairs:
        found = ours(length, periodic=periodic, dtype="float64").numpy()
        np.testing.assert_allclose(found, theirs(length, sym=not periodic), atol=1e-15)
    found = nnc.kaiser(length, 5.0, periodic=periodic, dtype="float64").numpy()
    np.testing.assert_allclose(found, w.kaiser(length, 5.0, sym=not periodic), rtol=1e-13)
    for heights in ([0.7], [25 / 46, 21 / 46], [0.4, 0.3, 0.2, 0.1]):
        found = nnc.general_cosine(length, heights, periodic=periodic, dtype="float64").numpy()
        np.testing.assert_allclose(found, w.general_cosine(length, heights, sym=not periodic), atol=1e-14)
    with fails(AttributeValueError, "coefficient", operator="general_cosine"):
        nnc.general_cosine(5, [])
