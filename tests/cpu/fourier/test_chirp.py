"""Transforms of lengths with large prime factors in compiled code, against NumPy's in longer floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.operator.steps.fourier_chirp import padded_length
from nnc_cpu.fourier.factors import LARGEST, factors_of, largest_prime
from nnc_cpu.native.way import NativeWay
from tests.cpu.native.runs import Captured, on

NORMS = ("backward", "ortho", "forward")
SHAPES = [((37,), 0), ((3, 74), 1), ((202, 3), 0), ((2, 1009, 2), 1), ((4, 37 * 41), 1), ((0, 37), 1), ((37, 0), 0)]
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "fft": lambda xp, x, n, axis, norm: xp.fft.fft(x, axis=axis, norm=norm),
    "ifft": lambda xp, x, n, axis, norm: xp.fft.ifft(x, axis=axis, norm=norm),
    "rfft": lambda xp, x, n, axis, norm: xp.fft.rfft(xp.real(x), axis=axis, norm=norm),
    "irfft": lambda xp, x, n, axis, norm: xp.fft.irfft(x, n, axis=axis, norm=norm),
    "hfft": lambda xp, x, n, axis, norm: xp.fft.hfft(x, n, axis=axis, norm=norm)}


def drawn(shape: tuple[int, ...], dtype: str = "complex64") -> Any:
    x, y = np.random.default_rng(len(shape)).standard_normal((2, *shape))
    return (x + 1j * y).astype(dtype)


def near(found: Any, wanted: Any, dtype: str) -> None:
    error = 2e-6 if dtype == "complex64" else 4e-15
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=error * np.abs(wanted).max(initial=0))


def explained(f: Callable[[Any], Any], x: Any) -> str:
    compiled: Any = nnc.jit(f)
    return str(compiled.explain(nnc.asarray(x)))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str, shape: tuple[int, ...], axis: int, norm: str, dtype: str) -> None:
    x, n = drawn(shape, dtype), shape[axis]
    wanted = FUNCTIONS[name](np, x.astype(np.clongdouble), n, axis, norm)
    found = nnc.jit(lambda x: FUNCTIONS[name](nnc, x, n, axis, norm))(nnc.asarray(x)).numpy()
    near(found, wanted, dtype)


def test_other_axes_go_as_they_did() -> None:
    x = drawn((6, 37, 43))
    for axes in ((0, 1), (1, 2), (0, 1, 2), (2, 1)):
        found = nnc.jit(lambda x, axes=axes: nnc.fft.fftn(x, axes=axes))(nnc.asarray(x)).numpy()
        near(found, np.fft.fftn(x.astype(np.clongdouble), axes=axes), "complex64")


@pytest.mark.parametrize("points", [*range(33, 80), 127, 1009, 4099, 65537, 1000003])
def test_lengths_are_long_enough_and_have_small_factors(points: int) -> None:
    length = padded_length(points)
    assert 2 * points - 1 <= length < 3 * points
    assert largest_prime(length) <= LARGEST and factors_of(length) is not None


def test_it_is_for_lengths_without_butterflies_and_where_bits_are_not_promised() -> None:
    x = drawn((2, 37))
    assert "numpy" not in explained(nnc.fft.fft, x)
    assert "[2, 80]" in explained(nnc.fft.fft, x) and "[2, 80]" not in explained(nnc.fft.fft, x[:, :36])
    with nnc.config.using(deterministic=True):
        assert "numpy" in explained(nnc.fft.fft, x)
        f = nnc.jit(nnc.fft.fft)
        assert f(nnc.asarray(x)).numpy().tobytes() == nnc.fft.fft(nnc.asarray(x)).numpy().tobytes()


def test_idle_imaginary_parts_are_not_read() -> None:
    for n in (37, 74):
        x = drawn((3, n // 2 + 1))
        x.imag[:, 0] = np.nan
        if n % 2 == 0:
            x.imag[:, -1] = np.inf
        found = nnc.jit(lambda x, n=n: nnc.fft.irfft(x, n))(nnc.asarray(x)).numpy()
        near(found, np.fft.irfft(x.astype(np.complex128), n), "complex64")


def test_what_is_not_finite_stays_in_its_row() -> None:
    x = drawn((3, 41))
    x[1, 5] = np.nan
    found = nnc.jit(nnc.fft.fft)(nnc.asarray(x)).numpy()
    assert np.isnan(found[1]).all() and np.isfinite(found[[0, 2]]).all()


def test_gradients() -> None:
    """Of a sum of squares that weighs frequencies: with the adjoint transform by its matrix."""
    x, n = drawn((41,), "complex128"), 41
    weights = np.linspace(1, 2, n)
    matrix = np.fft.fft(np.eye(n))
    real, imaginary = (nnc.asarray(part) for part in (x.real, x.imag))

    def loss(real: Any, imaginary: Any) -> Any:
        y = nnc.fft.fft(real + 1j * imaginary)
        return nnc.sum(nnc.asarray(weights) * (nnc.real(y) ** 2 + nnc.imag(y) ** 2))

    wanted = 2 * matrix.conj().T @ (weights * (matrix @ x))
    by_real, by_imaginary = nnc.jit(nnc.grad(loss, argnums=(0, 1)))(real, imaginary)
    np.testing.assert_allclose(by_real.numpy(), wanted.real, rtol=1e-10)
    np.testing.assert_allclose(by_imaginary.numpy(), wanted.imag, rtol=1e-10)


def test_rounds_of_loops_need_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(NativeWay, "_pythons_calls", lambda *given: calls.append(given))
    device, x = Captured(), drawn((2, 37))
    with on(device):
        f = nnc.jit(lambda x: nnc.while_loop(lambda i, _: i < 4, lambda i, x: (
            i + 1, nnc.fft.fft(x, norm="ortho")), (0, x))[1])
        for _ in range(2):
            found = f(nnc.asarray(x)).numpy()
    assert device.in_machine_code and device.guarded and not calls
    near(found, x, "complex64")  # four of them are none
