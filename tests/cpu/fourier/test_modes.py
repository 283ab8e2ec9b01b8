"""Transforms of users: eager, deferred and compiled, along several axes, by threads, and in loops without Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_cpu.native.way import NativeWay

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "fft": lambda xp, x: xp.fft.fft(x), "ifft2": lambda xp, x: xp.fft.ifft2(x),
    "fft of few columns": lambda xp, x: xp.fft.fft(x[..., :3], axis=0),
    "rfft": lambda xp, x: xp.fft.rfft(x.real, axis=0),
    "irfftn": lambda xp, x: xp.fft.irfftn(x, s=(45, 62), axes=(0, 1)),
    "rfft2": lambda xp, x: xp.fft.rfft2(x.real, norm="ortho"), "cut": lambda xp, x: xp.fft.fft(x, n=30, axis=1),
    "padded": lambda xp, x: xp.fft.rfft(x.real, n=100, axis=1), "hfft": lambda xp, x: xp.fft.hfft(x),
    "large prime": lambda xp, x: xp.fft.fft(x[:, :37]),
}


def drawn(*shape: int) -> Any:
    x, y = np.random.default_rng(len(shape)).standard_normal((2, *shape))
    return (x + 1j * y).astype(np.complex64)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_mode_has_the_same_bits(name: str) -> None:
    f, x = FUNCTIONS[name], drawn(45, 64)
    wanted = f(np, x.astype(np.complex128))
    found = dict[str, Any]()
    with nnc.config.using(deterministic=True):
        found["eager"] = f(nnc, nnc.asarray(x)).numpy()
        compiled = nnc.jit(lambda x: f(nnc, x))
        for threads in (1, 3):
            with nnc.config.using(threads=threads):
                found[f"{threads} threads"] = compiled(nnc.asarray(x)).numpy()
        found["between others"] = nnc.jit(lambda x: f(nnc, x * 2))(nnc.asarray(x)).numpy() / 2
        with nnc.deferred():
            found["deferred"] = f(nnc, nnc.asarray(x)).numpy()
    for mode, values in found.items():
        np.testing.assert_allclose(values, wanted, rtol=0, atol=4e-6 * np.abs(wanted).max(), err_msg=mode)
        assert values.tobytes() == found["eager"].tobytes(), mode


@pytest.mark.parametrize("shape", [(1 << 16,), (64, 1024), (1024, 64), (700, 700)])
def test_large_arrays_eagerly_and_by_threads(shape: tuple[int, ...]) -> None:
    x = drawn(*shape)
    for f in (lambda xp, x: xp.fft.fftn(x), lambda xp, x: xp.fft.rfft(x.real, axis=0)):
        wanted, found = f(np, x.astype(np.complex128)), []
        for threads in (1, 2, 5):
            with nnc.config.using(threads=threads):
                found.append(f(nnc, nnc.asarray(x)).numpy())
        np.testing.assert_allclose(found[0], wanted, rtol=0, atol=4e-6 * np.abs(wanted).max())
        assert all(values.tobytes() == found[0].tobytes() for values in found)


def test_loops_transform_without_python() -> None:
    """Also along several axes: a filter in frequencies, many times."""
    kernel = np.exp(-np.arange(9.0))

    @nnc.jit
    def filtered(x: Any) -> Any:
        def once(x: Any, k: Any) -> Any:
            return nnc.fft.irfft2(nnc.fft.rfft2(x) * nnc.asarray(kernel), s=(16, 16)), None

        return nnc.scan(once, x, nnc.arange(5))[0]

    x = np.random.default_rng(0).standard_normal((16, 16))
    with nnc.config.using(threads=1):
        found = filtered(nnc.asarray(x)).numpy()
    wanted = x
    for _ in range(5):
        wanted = np.fft.irfft2(np.fft.rfft2(wanted) * kernel, s=(16, 16))
    np.testing.assert_allclose(found, wanted, atol=1e-14)
    assert "[passes;" in filtered.explain(nnc.asarray(x))


def test_machine_code_calls_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiled transform asks Python for nothing, along one axis or several."""
    asked = []
    monkeypatch.setattr(NativeWay, "_pythons_calls", lambda *arguments: asked.append(arguments))
    with nnc.config.using(threads=1):
        for f in (nnc.fft.fft, nnc.fft.ifft2):
            compiled, x = nnc.jit(f), nnc.asarray(drawn(8, 8))
            for _ in range(3):
                compiled(x)
    assert not asked


def test_gradients() -> None:
    x = drawn(12, 30)
    weights = nnc.asarray(np.random.default_rng(1).standard_normal((12, 16)).astype(np.float32))

    def loss(x: Any) -> Any:
        return nnc.sum(nnc.abs(nnc.fft.rfft2(x)) ** 2 * weights)

    given = nnc.asarray(x.real.astype(np.float64))
    found = nnc.jit(nnc.grad(loss))(given).numpy()
    wanted = nnc.grad(loss)(given).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-10)
    step = np.zeros_like(x.real, np.float64)
    step[3, 4] = 1e-4
    slope = (loss(nnc.asarray(given.numpy() + step)) - loss(nnc.asarray(given.numpy() - step))).item() / 2e-4
    np.testing.assert_allclose(found[3, 4], slope, rtol=1e-6)


@pytest.mark.parametrize("points", [1 << 16, 45 * 1024, 3**10])
def test_long_rows_are_shared(points: int) -> None:
    """Threads wait for each other between columns and rows."""
    x = drawn(1, points)
    functions = {"fft": lambda xp, x: xp.fft.fft(x), "apart": lambda xp, x: xp.fft.fft(x.T, axis=0),
                 "rfft": lambda xp, x: xp.fft.rfft(x.real), "irfft": lambda xp, x: xp.fft.irfft(x, n=points),
                 "ifftn": lambda xp, x: xp.fft.ifftn(x)}
    for name, f in functions.items():
        compiled, wanted = nnc.jit(lambda x, f=f: f(nnc, x)), f(np, x.astype(np.complex128))
        found = []
        for threads in (1, 2, 5) * 3:
            with nnc.config.using(threads=threads):
                found.append(compiled(nnc.asarray(x)).numpy())
        np.testing.assert_allclose(found[0], wanted, rtol=0, atol=4e-6 * np.abs(wanted).max(), err_msg=name)
        assert all(values.tobytes() == found[0].tobytes() for values in found), name
