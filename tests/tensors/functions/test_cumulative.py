"""Scans and differences against NumPy, on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.signal

import nnc_core as nnc
from tests.tensors.faults import fails

A = np.array([[0.5, -1.25, 2.0, 0.0], [3.0, -0.75, 0.0, 1.5], [2.0, 2.0, -4.0, 0.25]], np.float32)
X = np.array([0.0, 1.0, 1.5, 3.5, 4.0], np.float32)
Y = np.array([[1.0, 0.5, -2.0, 4.0, 3.0], [0.0, 2.0, 1.0, -1.0, 2.5]], np.float32)

Pair = tuple[Callable[..., Any], Callable[..., Any]]
CASES: dict[str, Pair] = {
    "cumulative_sum": (lambda a: nnc.cumulative_sum(a, axis=1), lambda a: np.cumulative_sum(a, axis=1)),
    "cumulative_sum from zero": (lambda a: nnc.cumulative_sum(a, axis=0, include_initial=True),
                                 lambda a: np.cumulative_sum(a, axis=0, include_initial=True)),
    "cumulative_sum of a vector": (lambda a: nnc.cumulative_sum(a[0]), lambda a: np.cumulative_sum(a[0])),
    "cumulative_prod from one": (lambda a: nnc.cumulative_prod(a, axis=-1, include_initial=True),
                                 lambda a: np.cumulative_prod(a, axis=-1, include_initial=True)),
    "cumulative_prod": (lambda a: nnc.cumulative_prod(a, axis=0), lambda a: np.cumulative_prod(a, axis=0)),
    "cumsum": (lambda a: nnc.cumsum(a), lambda a: np.cumsum(a)),
    "cumprod": (lambda a: nnc.cumprod(a, 1), lambda a: np.cumprod(a, 1)),
    "methods": (lambda a: a.cumsum(0) + a.cumprod(1), lambda a: a.cumsum(0) + a.cumprod(1)),
    "cummax": (lambda a: nnc.cummax(a, axis=1), lambda a: np.maximum.accumulate(a, 1)),
    "cummin": (lambda a: nnc.cummin(a, axis=0), lambda a: np.minimum.accumulate(a, 0)),
    "logcumsumexp": (lambda a: nnc.logcumsumexp(a * 50, axis=1), lambda a: np.logaddexp.accumulate(a * 50, 1)),
    "over nothing": (lambda a: nnc.cumulative_sum(a[:0], axis=0, include_initial=True),
                     lambda a: np.cumulative_sum(a[:0], axis=0, include_initial=True)),
    "diff": (lambda a: nnc.diff(a), lambda a: np.diff(a)),
    "diff twice": (lambda a: nnc.diff(a, axis=0, n=2), lambda a: np.diff(a, 2, 0)),
    "diff more often than there is anything": (lambda a: nnc.diff(a, n=6), lambda a: np.diff(a, 6)),
    "diff with ends": (lambda a: nnc.diff(a, axis=0, prepend=0.5, append=a[:2]),
                       lambda a: np.diff(a, axis=0, prepend=np.float32(0.5), append=a[:2])),
    "diff of booleans": (lambda a: nnc.diff(a > 0), lambda a: np.diff(a > 0)),
    "ediff1d": (lambda a: nnc.ediff1d(a), lambda a: np.ediff1d(a)),
    "ediff1d with ends": (lambda a: nnc.ediff1d(a, to_begin=9.0, to_end=np.array([1.0, 2.0], np.float32)),
                          lambda a: np.ediff1d(a, np.array([1.0, 2.0], np.float32), np.float32(9))),
}  # fmt: skip
SLOPES: dict[str, Pair] = {
    "gradient": (lambda y: nnc.stack(nnc.gradient(y)), lambda y: np.stack(np.gradient(y))),
    "gradient along one axis": (lambda y: nnc.gradient(y, 0.5, axis=-1), lambda y: np.gradient(y, 0.5, axis=-1)),
    "gradient of second order": (lambda y: nnc.gradient(y[0], 2.0, edge_order=2),
                                 lambda y: np.gradient(y[0], 2.0, edge_order=2)),
    "gradient at coordinates": (lambda y: nnc.gradient(y, X, axis=1), lambda y: np.gradient(y, X, axis=1)),
    "gradient at coordinates, second order": (lambda y: nnc.gradient(y[1], X, edge_order=2),
                                              lambda y: np.gradient(y[1], X, edge_order=2)),
    "gradient with two spacings": (lambda y: nnc.stack(nnc.gradient(y, 2.0, X)),
                                   lambda y: np.stack(np.gradient(y, 2.0, X))),
    "trapezoid": (lambda y: nnc.trapezoid(y), lambda y: np.trapezoid(y)),
    "trapezoid at coordinates": (lambda y: nnc.trapezoid(y, X), lambda y: np.trapezoid(y, X)),
    "trapezoid along another axis": (lambda y: nnc.trapezoid(y, dx=0.25, axis=0),
                                     lambda y: np.trapezoid(y, dx=0.25, axis=0)),
    "trapezoid at coordinates of its own": (lambda y: nnc.trapezoid(y, y * y, axis=1),
                                            lambda y: np.trapezoid(y, y * y, axis=1)),
}  # fmt: skip
ALL = {name: (*pair, A) for name, pair in CASES.items()} | {name: (*pair, Y) for name, pair in SLOPES.items()}


@pytest.mark.parametrize("name", ALL)
def test_equals_numpy(device: str, name: str) -> None:
    ours, theirs, host = ALL[name]
    found, wanted = ours(nnc.asarray(host)), theirs(host)
    assert found.device.id == device
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["cumulative_sum from zero", "cummax", "logcumsumexp", "gradient"])
def test_compiled_and_late_equal_eager(device: str, name: str) -> None:
    ours, _, host = ALL[name]
    x = nnc.asarray(host)
    with nnc.deferred():
        late = ours(x)
    np.testing.assert_allclose(nnc.jit(ours)(x).numpy(), ours(x).numpy(), rtol=1e-6)
    np.testing.assert_allclose(late.numpy(), ours(x).numpy(), rtol=1e-6)


def test_dtypes_of_sums() -> None:
    small = nnc.asarray(np.array([100, 100, 100], np.int8))
    assert nnc.cumulative_sum(small).tolist() == [100, 200, 300]
    assert nnc.cumulative_sum(small, dtype=nnc.int8).tolist() == np.cumsum([100] * 3, dtype=np.int8).tolist()
    assert nnc.cumulative_prod(nnc.asarray(np.array([2, 3], np.uint16))).dtype == nnc.uint64
    assert nnc.cumsum(nnc.asarray([True, True, False])).tolist() == [1, 2, 2]
    half = nnc.asarray(np.ones(3000, np.float16))
    assert (nnc.cumulative_sum(half)[-1].item(), nnc.cumulative_sum(half).dtype) == (3000, nnc.float16)
    assert nnc.cummax(small).dtype == nnc.int8


def test_where_the_extremes_are(device: str) -> None:
    x = nnc.asarray(np.array([1.0, 3.0, 3.0, np.nan, 5.0, np.nan], np.float32))
    values, indices = nnc.cummax(x, return_indices=True)
    assert indices.tolist() == [0, 1, 1, 3, 3, 3]
    np.testing.assert_array_equal(values.numpy(), [1, 3, 3, np.nan, np.nan, np.nan])
    assert nnc.cummin(nnc.asarray(A), axis=0, return_indices=True).indices.tolist() == [
        [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 2, 0]]  # fmt: skip


def test_linear_recurrence(device: str) -> None:
    """With one factor everywhere it is a filter."""
    wanted = scipy.signal.lfilter([1.0], [1.0, -0.5], A, axis=1)
    np.testing.assert_allclose(nnc.linear_recurrence(0.5, nnc.asarray(A)).numpy(), wanted, rtol=1e-6)
    backwards = nnc.linear_recurrence(nnc.asarray(A[0]), nnc.asarray(A), reverse=True).numpy()
    last = np.zeros(3, np.float32)
    for place in reversed(range(4)):
        last = A[0, place] * last + A[:, place]
        np.testing.assert_allclose(backwards[:, place], last, rtol=1e-6)


def differences(f: Callable[[nnc.Tensor], nnc.Tensor], x: np.ndarray) -> np.ndarray:
    slopes, h = np.empty_like(x), 1e-6
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = h
        slopes[place] = (f(nnc.asarray(x + step)).item() - f(nnc.asarray(x - step)).item()) / (2 * h)
    return slopes


FUNCTIONS: dict[str, Callable[[nnc.Tensor], nnc.Tensor]] = {
    "cumulative_sum": lambda x: nnc.cumulative_sum(x, axis=0, include_initial=True),
    "cumulative_prod": lambda x: nnc.cumulative_prod(x, axis=1),
    "cummax": lambda x: nnc.cummax(x, axis=1),
    "logcumsumexp": lambda x: nnc.logcumsumexp(x, axis=1),
    "linear_recurrence": lambda x: nnc.linear_recurrence(x, x * x, axis=0),
    "gradient": lambda x: nnc.gradient(x, axis=1, edge_order=2),
    "trapezoid": lambda x: nnc.trapezoid(x, x[0] * x[1], axis=1),
    "diff": lambda x: nnc.diff(x, prepend=x[:, :1] * 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_both_orders(name: str) -> None:
    def loss(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.sin(FUNCTIONS[name](x)))

    def slope(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.grad(loss)(x) * weights)

    rng = np.random.default_rng(0)
    x, weights = rng.uniform(-1, 1, (3, 4)), nnc.asarray(rng.uniform(0, 1, (3, 4)))
    x[1, 2] = x[1, 3] = 0
    np.testing.assert_allclose(nnc.grad(loss)(nnc.asarray(x)).numpy(), differences(loss, x), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(nnc.grad(slope)(nnc.asarray(x)).numpy(), differences(slope, x), rtol=1e-5, atol=1e-7)
    _, pushed = nnc.jvp(loss, [nnc.asarray(x)], [weights])
    np.testing.assert_allclose(pushed.item(), slope(nnc.asarray(x)).item(), rtol=1e-9)


def test_gradients_where_exponentials_would_overflow(device: str) -> None:
    x = nnc.asarray(np.array([-np.inf, -1000.0, 1000.0, 999.0], np.float32))
    found = nnc.grad(lambda v: nnc.logcumsumexp(v)[-1])(x).numpy()
    share = 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(found, [0, 0, share, 1 - share], rtol=1e-4)


def test_in_batches(device: str) -> None:
    x = nnc.asarray(A)
    found = nnc.vmap(lambda row: nnc.cumulative_prod(row) + nnc.logcumsumexp(row) + nnc.linear_recurrence(row, 0.5))(x)
    wanted = nnc.stack([nnc.cumulative_prod(r) + nnc.logcumsumexp(r) + nnc.linear_recurrence(r, 0.5)
                        for r in (x[0], x[1], x[2])])  # fmt: skip
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)


def test_errors() -> None:
    x = nnc.asarray(A)
    with fails(ValueError, "2 axes", "along which", operator="cumulative_sum"):
        nnc.cumulative_sum(x)
    with fails(ValueError, "axis 3", operator="cummax"):
        nnc.cummax(x, axis=3)
    with fails(ValueError, "-1 is negative", operator="diff"):
        nnc.diff(x, n=-1)
    with fails(ValueError, "no axis", operator="diff"):
        nnc.diff(nnc.asarray(1.0))
    with fails(ValueError, "edge_order 3", operator="gradient"):
        nnc.gradient(x, edge_order=3)
    with fails(ValueError, "2 points", "at least 3", operator="gradient"):
        nnc.gradient(x[:, :2], axis=1, edge_order=2)
    with fails(TypeError, "3 spacings for 2 axes", operator="gradient"):
        nnc.gradient(x, 1.0, 1.0, 1.0)
    with fails(ValueError, "no vector of as many points", operator="gradient"):
        nnc.gradient(x, X, axis=1)
    with fails(TypeError, "floating-point", operator="logcumsumexp"):
        nnc.logcumsumexp(nnc.asarray(A.astype(np.complex64)), axis=0)
