"""Products of complex matrices as real ones of their parts: which, their values, and their bits where these are
promised."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_cpu.native.way import NativeWay
from tests.cpu.native.runs import Captured, on

SHAPES = [((3, 3), (3, 3)), ((4, 4), (4, 4)), ((5, 9), (9, 7)), ((1, 30), (30, 40)), ((33, 64), (64, 1)),
          ((2, 3, 6, 5), (5, 8)), ((4, 7), (3, 7, 9)), ((2, 1, 8, 8), (3, 8, 8)), ((600, 20), (20, 2)),
          ((64, 100), (100, 48)), ((3, 0), (0, 4)), ((0, 3), (3, 4))]  # fmt: skip
SINGLE, DOUBLE = 2e-6, 4e-15
"""Errors of sums of up to a hundred products, as a share of the largest result."""


def drawn(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    parts = np.random.default_rng(seed).standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1]).astype(dtype)


def swapped(x: Any, wanted: bool) -> Any:
    return x.swapaxes(-1, -2) if wanted else x


def near(found: Any, wanted: Any, dtype: str) -> None:
    assert found.dtype == dtype and found.shape == wanted.shape
    error = SINGLE if dtype == "complex64" else DOUBLE
    np.testing.assert_allclose(found, wanted, rtol=0, atol=error * np.abs(wanted).max(initial=1))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("transposes", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("shapes", SHAPES)
def test_values(shapes: tuple[tuple[int, ...], tuple[int, ...]], transposes: tuple[bool, bool], dtype: str) -> None:
    a, b = (drawn(shape, dtype, seed) for seed, shape in enumerate(shapes))
    wanted = np.matmul(a.astype(np.clongdouble), b.astype(np.clongdouble))
    given = [np.ascontiguousarray(swapped(x, turned)) for x, turned in zip((a, b), transposes, strict=True)]

    @nnc.jit
    def f(a: Any, b: Any) -> Any:
        return nnc.conj(nnc.matmul(*[swapped(x, t) for x, t in zip((a, b), transposes, strict=True)]))

    near(f(*map(nnc.asarray, given)).numpy(), wanted.conj(), dtype)


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf, complex(0, np.inf)])
def test_what_is_not_finite_stays_in_its_rows(bad: Any, deterministic: bool) -> None:
    a, b = drawn((6, 10), "complex64", 0), drawn((10, 9), "complex64", 1)
    a[2, 3] = bad
    with nnc.config.using(deterministic=deterministic):
        found = nnc.jit(lambda a, b: a @ b + 1)(nnc.asarray(a), nnc.asarray(b)).numpy()
    assert not np.isfinite(found[2]).any()
    rest = np.arange(6) != 2
    near(found[rest], a[rest] @ b + 1, "complex64")


@pytest.mark.parametrize("size", [2, 4, 8, 12, 13, 20, 64])
def test_bits_are_those_of_eager_code_where_they_are_promised(size: int) -> None:
    a, b = (nnc.asarray(drawn((size, size), "complex64", seed)) for seed in (0, 1))
    with nnc.config.using(deterministic=True, compile_at_once=True):
        eager, compiled = nnc.tanh(a @ b).numpy(), nnc.jit(lambda a, b: nnc.tanh(a @ b))(a, b).numpy()
    assert eager.tobytes() == compiled.tobytes()


def test_gradients_are_those_of_real_products() -> None:
    a, b = (drawn(shape, "complex128", seed) for seed, shape in enumerate(((9, 12), (12, 10))))

    def by_parts(ar: Any, ai: Any, br: Any, bi: Any) -> Any:
        return nnc.sum(nnc.tanh(ar @ br - ai @ bi) * (ar @ bi + ai @ br))

    def whole(ar: Any, ai: Any, br: Any, bi: Any) -> Any:
        product = (ar + 1j * ai) @ (br + 1j * bi)
        return nnc.sum(nnc.tanh(nnc.real(product)) * nnc.imag(product))

    parts = [nnc.asarray(x) for x in (a.real, a.imag, b.real, b.imag)]
    for ours, theirs in zip(*[nnc.jit(nnc.grad(f, argnums=(0, 1, 2, 3)))(*parts) for f in (whole, by_parts)],
                            strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-11, atol=1e-11)


def explained(*shapes: tuple[int, ...]) -> str:
    symbols = {name: nnc.var_arr(name, shape, dtype=nnc.complex64) for name, shape in zip("ab", shapes, strict=True)}
    return nnc.export(symbols, {"y": symbols["a"] @ symbols["b"] + 1}).compile().explain()


def test_thin_products_of_large_matrices_are_left_to_blas() -> None:
    """Real products would read a copy of the matrix that is twice as large."""
    product = "matmul(float32["
    assert product in explained((512, 512), (512, 16))
    assert product not in explained((512, 512), (512, 4))
    assert product not in explained((1, 512), (512, 512))


@pytest.mark.parametrize("size", [2, 5, 8, 40])
def test_rounds_of_loops_need_no_python(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(NativeWay, "_pythons_calls", lambda *given: calls.append(given))
    device, drawn_w = Captured(), drawn((size, size), "complex64", 0) / size
    with on(device):
        w = nnc.asarray(drawn_w)
        f = nnc.jit(lambda c: nnc.while_loop(lambda i, _: i < 5, lambda i, c: (i + 1, w @ c), (0, c))[1])
        found = [f(w).numpy() for _ in range(2)][1]
    assert device.in_machine_code and not calls
    near(found, np.linalg.matrix_power(drawn_w.astype(np.complex128), 6), "complex64")
