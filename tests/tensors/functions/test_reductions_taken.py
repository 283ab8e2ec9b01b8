"""Reductions of the elements where a mask is true, that begin with a number, as NumPy has them, on every device."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.errors import DTypeError, OperandError, ShapeError
from tests.integration.modes import deferred, eager, jitted

A = np.array([[0.5, -1.25, np.nan, 2.0], [3.0, -0.75, 0.0, 1.5], [2.0, 2.0, -4.0, 0.25]], np.float32)
M = np.array([[True, True, False, False], [False] * 4, [True, False, True, True]])
ROW = np.array([True, True, False, True])
K = np.array([[3, 0, 2], [0, 7, 5]], np.int8)

Case = Callable[[Any, Any], Any]
CASES: dict[str, Case] = {
    "sum": lambda m, a: m.sum(a, where=M, initial=2.5),
    "sum over rows": lambda m, a: m.sum(a, axis=1, where=M),
    "sum with a mask of a row": lambda m, a: m.sum(a, axis=0, keepdims=True, where=ROW, initial=-1),
    "sum of nothing": lambda m, a: m.sum(a, axis=0, where=False, initial=np.float64(3)),
    "prod": lambda m, a: m.prod(a, axis=1, where=M, initial=2),
    "max": lambda m, a: m.max(a, axis=1, where=M, initial=-np.inf),
    "max from": lambda m, a: m.max(a[1:], axis=0, initial=1.75),
    "max over nothing": lambda m, a: m.max(a[:0], axis=0, initial=1.75),
    "min": lambda m, a: m.min(a, axis=(0, 1), where=ROW, initial=100),
    "min over nothing": lambda m, a: m.min(a[:, :0], axis=1, keepdims=True, initial=-2),
    "mean": lambda m, a: m.mean(a, axis=1, where=M),
    "mean with a mask of a row": lambda m, a: m.mean(a, where=ROW, keepdims=True),
    "var": lambda m, a: m.var(a, axis=1, where=M),
    "var of a sample": lambda m, a: m.var(a, where=ROW & ~np.isnan(A), ddof=1, keepdims=True),
    "var of nothing": lambda m, a: m.var(a, axis=0, where=False),
    "std": lambda m, a: m.std(a, axis=(0, 1), where=ROW & (A > 0)),
    "all": lambda m, a: m.all(a, axis=0, where=M),
    "any": lambda m, a: m.any(a, axis=1, where=M),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_as_numpy_has_them(device: str, name: str) -> None:
    with warnings.catch_warnings(), nnc.use_device(device):
        warnings.simplefilter("ignore")
        wanted = CASES[name](np, A)
        for mode in (eager, deferred, jitted):
            found = mode(lambda a: CASES[name](nnc, a), nnc.asarray(A))
            assert found.dtype == wanted.dtype and found.shape == wanted.shape
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6)


INTEGERS: dict[str, dict[str, Any]] = {
    "sum": {"initial": 1000}, "prod": {}, "max": {"initial": -5}, "min": {"initial": 6}, "mean": {}, "var": {},
    "std": {}, "any": {}, "all": {},
}  # fmt: skip


@pytest.mark.parametrize("mode", [eager, deferred, jitted])
@pytest.mark.parametrize("name", INTEGERS)
def test_integers(mode: Any, name: str) -> None:
    options = {"axis": 0, "where": K > 1, **INTEGERS[name]}
    found, wanted = mode(lambda k: getattr(nnc, name)(k, **options), nnc.asarray(K)), getattr(np, name)(K, **options)
    assert found.dtype == (np.float32 if name in ("mean", "var", "std") else wanted.dtype)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6)


def test_half_precision_is_averaged_in_single() -> None:
    x = np.full(4096, 60, np.float16)
    where = np.arange(4096) % 2 == 0
    found = nnc.mean(nnc.asarray(x), where=where)
    assert found.dtype == np.float16 and float(found) == 60


def test_the_spread_of_what_is_taken() -> None:
    x, where = np.float16([1000, 1001, 1003, 9]), np.array([True, True, True, False])
    found = nnc.std(nnc.asarray(x), where=where, correction=1)
    assert found.dtype == np.float16 and float(found) == np.float16(np.std(x[:3].astype(np.float64), ddof=1))
    z = np.complex64([1 + 2j, 3 - 1j, 5])
    found = nnc.asarray(z).var(where=where[1:])
    assert found.dtype == np.float32
    np.testing.assert_allclose(float(found), np.var(z[:2]), rtol=1e-6)
    gradient = nnc.grad(lambda a: nnc.var(a, where=where))(nnc.asarray(x.astype(np.float32)))
    away = np.append(x[:3].astype(np.float64) - x[:3].astype(np.float64).mean(), 0)
    np.testing.assert_allclose(np.asarray(gradient), 2 * away / 3, rtol=1e-5)


def test_masks_are_tensors_and_inputs_too() -> None:
    x, mask = nnc.asarray(A), nnc.asarray(M)
    np.testing.assert_array_equal(np.asarray(nnc.jit(lambda x, m: nnc.sum(x, where=m))(x, mask)), A.sum(where=M))
    np.testing.assert_array_equal(np.asarray(nnc.sum(A, where=mask, initial=nnc.asarray(np.float32(1)))),
                                  A.sum(where=M, initial=1))
    np.testing.assert_array_equal(np.asarray(x.max(0, where=mask, initial=0)), A.max(0, where=M, initial=0))


@pytest.mark.filterwarnings("ignore:Mean of empty", "ignore:invalid value", "ignore:Degrees of freedom")
def test_numpy_calls_them() -> None:
    x = nnc.asarray(A)
    for found, wanted in ((np.sum(x, axis=1, where=M, initial=2), np.sum(A, axis=1, where=M, initial=2)),
                          (np.max(x, where=M, initial=0), np.max(A, where=M, initial=0)),
                          (np.any(x, axis=0, where=M), np.any(A, axis=0, where=M)),
                          (np.mean(x, axis=0, where=ROW), np.mean(A, axis=0, where=ROW)),
                          (np.std(x, axis=0, where=ROW, ddof=1), np.std(A, axis=0, where=ROW, ddof=1))):
        assert isinstance(found, nnc.Tensor)
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6)


GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: nnc.sum(nnc.square(x), where=M, initial=2),
    "prod": lambda x: nnc.sum(nnc.prod(x, axis=1, where=M, initial=2)),
    "mean": lambda x: nnc.sum(nnc.mean(nnc.square(x), axis=0, where=M | ROW)),
    "std": lambda x: nnc.sum(nnc.std(x, axis=1, where=M | ROW, correction=1)),
    "max": lambda x: nnc.sum(nnc.max(x, axis=1, where=M, initial=-9)),
    "min": lambda x: nnc.min(x, where=M, initial=0),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_are_those_of_differences(name: str, compiled: bool) -> None:
    x = np.where(M, A, 0.5).astype(np.float64) + np.arange(12).reshape(3, 4) / 50
    f = GRADIENTS[name]
    gradient = nnc.grad(f)
    found = np.asarray((nnc.jit(gradient) if compiled else gradient)(nnc.asarray(x)))
    wanted = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-5
        wanted[place] = (float(f(nnc.asarray(x + step))) - float(f(nnc.asarray(x - step)))) / 2e-5
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)


def test_what_is_masked_out_has_no_gradient_not_even_nan() -> None:
    found = np.asarray(nnc.grad(lambda x: nnc.sum(x, where=M) + nnc.min(x, where=M, initial=0))(nnc.asarray(A)))
    np.testing.assert_array_equal(found, M.astype(np.float32) + (np.nanmin(A) == A))


def test_named_sizes() -> None:
    n = nnc.Dim("n")
    x = nnc.var_arr("x", (n, 4))
    made = nnc.export({"x": x}, {"y": nnc.mean(x, axis=0, where=x > 0), "z": nnc.max(x, initial=0.5)}).compile()
    for rows in (1, 2, 3):
        found = made(x=A[:rows])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_allclose(np.asarray(found["y"]), A[:rows].mean(0, where=A[:rows] > 0), rtol=1e-6)
        np.testing.assert_array_equal(np.asarray(found["z"]), A[:rows].max(initial=0.5))


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: nnc.sum(A, where=K > 0), ShapeError, "broadcast"),
    (lambda: nnc.sum(A[0], where=M), ShapeError, "broadcast the array"),
    (lambda: nnc.any(A, where=np.ones(4, np.int32)), DTypeError, "not bool"),
    (lambda: nnc.max(A, where=M), OperandError, "initial="),
    (lambda: nnc.max(K, initial=2.5), DTypeError, "int8"),
    (lambda: nnc.min(K, where=K > 1, initial=2.5), DTypeError, "int8"),
    (lambda: nnc.sum(K, initial=0.5), DTypeError, "int64"),
    (lambda: nnc.sum(A, initial=np.ones(2)), OperandError, "no number"),
])  # fmt: skip
def test_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
