"""Reductions and statistics against NumPy and SciPy, on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import nnc_core as nnc
from nnc_core.errors import DTypeError, ShapeError
from tests.tensors.faults import fails

A = np.array([[0.5, -1.25, 2.0, 0.0], [3.0, -0.75, 0.0, 1.5], [2.0, 2.0, -4.0, 0.25]], np.float32)
B = np.array([[1.0, 0.0, -3.0, 2.0], [0.5, 4.0, 1.5, -1.0], [2.5, -2.0, 0.5, 1.0]], np.float32)
N = np.array([[0.5, np.nan, 2.0, 0.0], [np.nan] * 4, [np.nan, 2.0, -4.0, np.inf]], np.float32)
K = np.array([[3, 0, 2, 2], [0, 0, 5, 1]], np.int16)
W = np.array([1.0, 2.0, 0.5, 0.25], np.float32)

Pair = tuple[Callable[..., Any], Callable[..., Any]]
CASES: dict[str, Pair] = {
    "prod": (lambda a: nnc.prod(a), lambda a: a.prod()),
    "prod over axes": (lambda a: nnc.prod(a, axis=(0, -1), keepdims=True), lambda a: a.prod((0, 1), keepdims=True)),
    "prod over nothing": (lambda a: nnc.prod(a[:0], axis=0), lambda a: a[:0].prod(0)),
    "var": (lambda a: nnc.var(a), lambda a: a.var()),
    "var with a correction": (lambda a: nnc.var(a, axis=1, correction=1), lambda a: a.var(1, ddof=1)),
    "var kept": (lambda a: nnc.var(a, axis=0, keepdims=True), lambda a: a.var(0, keepdims=True)),
    "std": (lambda a: nnc.std(a, axis=-1, correction=0.5), lambda a: a.std(-1, ddof=0.5)),
    "methods": (lambda a: a.prod(0) + a.var(0) + a.std(0, ddof=1), lambda a: a.prod(0) + a.var(0) + a.std(0, ddof=1)),
    "logsumexp": (lambda a: nnc.logsumexp(a, axis=1), lambda a: scipy.special.logsumexp(a, 1)),
    "logsumexp of all": (lambda a: nnc.logsumexp(a * 100), lambda a: scipy.special.logsumexp(a * 100)),
    "ptp": (lambda a: nnc.ptp(a, 0), lambda a: np.ptp(a, 0)),
    "count_nonzero": (lambda a: nnc.count_nonzero(a, axis=1), lambda a: np.count_nonzero(a, 1)),
    "count_nonzero of all": (lambda a: nnc.count_nonzero(a > 0), lambda a: np.count_nonzero(a > 0)),
    "average": (lambda a: nnc.average(a, 1), lambda a: np.average(a, 1)),
    "average with weights": (lambda a: nnc.average(a, 1, W, keepdims=True),
                             lambda a: np.average(a, 1, W, keepdims=True)),
    "average of all": (lambda a: nnc.average(a, weights=B + 4), lambda a: np.average(a, weights=B + 4)),
    "cov": (lambda a: nnc.cov(a), lambda a: np.cov(a)),
    "cov of two": (lambda a: nnc.cov(a, B, bias=True), lambda a: np.cov(a, B, bias=True)),
    "cov of columns": (lambda a: nnc.cov(a, rowvar=False), lambda a: np.cov(a, rowvar=False)),
    "cov of a vector": (lambda a: nnc.cov(a[0]), lambda a: np.cov(a[0])),
    "cov with weights": (lambda a: nnc.cov(a, fweights=np.array([1, 2, 1, 3]), aweights=W),
                         lambda a: np.cov(a, fweights=np.array([1, 2, 1, 3]), aweights=W)),
    "corrcoef": (lambda a: nnc.corrcoef(a), lambda a: np.corrcoef(a)),
    "corrcoef of two": (lambda a: nnc.corrcoef(a[0], a[1]), lambda a: np.corrcoef(a[0], a[1])),
}  # fmt: skip
NAN: dict[str, Pair] = {
    "nansum": (lambda a: nnc.nansum(a, 1), lambda a: np.nansum(a, 1)),
    "nanprod": (lambda a: nnc.nanprod(a, 0, keepdims=True), lambda a: np.nanprod(a, 0, keepdims=True)),
    "nanmean": (lambda a: nnc.nanmean(a, 1), lambda a: np.nanmean(a, 1)),
    "nanvar": (lambda a: nnc.nanvar(a[:2], 1, correction=1), lambda a: np.nanvar(a[:2], 1, ddof=1)),
    "nanstd": (lambda a: nnc.nanstd(a[:, :3], 0), lambda a: np.nanstd(a[:, :3], 0)),
    "nanstd of all": (lambda a: nnc.nanstd(a[:, :3]), lambda a: np.nanstd(a[:, :3])),
    "nanmax": (lambda a: nnc.nanmax(a, 1), lambda a: np.nanmax(a, 1)),
    "nanmin": (lambda a: nnc.nanmin(a), lambda a: np.nanmin(a)),
    "nanargmax": (lambda a: nnc.nanargmax(a[::2], 1), lambda a: np.nanargmax(a[::2], 1)),
    "nanargmin": (lambda a: nnc.nanargmin(a), lambda a: np.nanargmin(a)),
    "nanargmin kept": (lambda a: nnc.nanargmin(a[::2], 1, keepdims=True),
                       lambda a: np.nanargmin(a[::2], 1, keepdims=True)),
    "nancumsum": (lambda a: nnc.nancumsum(a, 1), lambda a: np.nancumsum(a, 1)),
    "nancumprod": (lambda a: nnc.nancumprod(a), lambda a: np.nancumprod(a)),
}  # fmt: skip
ALL = {name: (*pair, A) for name, pair in CASES.items()} | {name: (*pair, N) for name, pair in NAN.items()}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ALL)
def test_equals_numpy(device: str, name: str) -> None:
    ours, theirs, host = ALL[name]
    found, wanted = ours(nnc.asarray(host)), np.asarray(theirs(host))
    assert found.device.id == device
    assert found.shape == wanted.shape
    assert (found.dtype.kind, nnc.asarray(found).ndim) == (wanted.dtype.kind, wanted.ndim)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=3e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["var kept", "cov", "nanmean", "logsumexp"])
def test_compiled_equals_eager(device: str, name: str) -> None:
    ours, _, host = ALL[name]
    x = nnc.asarray(host)
    np.testing.assert_allclose(nnc.jit(ours)(x).numpy(), ours(x).numpy(), rtol=1e-6)
    with nnc.deferred():
        late = ours(x)
    np.testing.assert_allclose(late.numpy(), ours(x).numpy(), rtol=1e-6)


def test_dtypes() -> None:
    i = nnc.asarray(K)
    assert nnc.prod(i).dtype == nnc.int64
    assert nnc.prod(i, dtype="int16", axis=1).dtype == nnc.int16
    assert nnc.prod(nnc.asarray(K.astype(np.uint8))).dtype == nnc.uint64
    assert nnc.prod(nnc.asarray([True, False])).item() == 0
    assert nnc.var(i).dtype == nnc.float32
    np.testing.assert_allclose(nnc.var(i).item(), K.var(), rtol=1e-6)
    assert nnc.ptp(i, 1).tolist() == [3, 5]
    assert nnc.nanmax(i, 0).tolist() == [3, 0, 5, 2]
    assert nnc.nansum(i).item() == 13
    half = nnc.asarray(np.full(4000, 100, np.float16))
    assert (nnc.mean(half).item(), nnc.mean(half).dtype) == (100, nnc.float16), "the sum does not fit float16"
    assert nnc.var(half).item() == 0
    assert nnc.average(half, weights=nnc.ones(4000, dtype="float16")).item() == 100
    swing = nnc.asarray(np.array([-1000, 1000] * 50, np.float16))
    assert (nnc.std(swing).item(), nnc.std(swing).dtype) == (1000, nnc.float16), "the variance does not fit float16"
    assert nnc.cov(swing / 100, swing / 100, bias=True).dtype == nnc.float16


@pytest.mark.parametrize("function", [nnc.mean, nnc.nanmean, nnc.nanvar, nnc.nanstd])
def test_means_are_not_asked_for_in_whole_numbers(function: Any) -> None:
    with pytest.raises(DTypeError, match=r"int32(.*\n)*.*try: a float dtype"):
        function(np.array([1.5, 2.5]), dtype="int32")


@pytest.mark.parametrize("name", ["argmax", "argmin", "max", "min"])
@pytest.mark.parametrize("jit", [False, True])
def test_extremes_of_booleans(device: str, name: str, jit: bool) -> None:
    rows = np.array([[False, True, True], [False, False, False], [True, True, True]])
    plain, theirs = getattr(nnc, name), getattr(np, name)
    ours = nnc.jit(plain) if jit else plain
    for found, wanted in ((ours(nnc.asarray(rows)), theirs(rows)),
                          (plain(nnc.asarray(rows), axis=1), theirs(rows, axis=1)),
                          (plain(nnc.asarray(rows.T), axis=0, keepdims=True), theirs(rows.T, axis=0, keepdims=True))):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(found.numpy(), wanted)
    with pytest.raises(ShapeError):
        plain(nnc.asarray(rows[:0]), axis=0)


def test_integers_wrap() -> None:
    assert nnc.prod(nnc.asarray(np.array([2**62, 6]))).item() == np.prod(np.array([2**62, 6]))


def test_complex_numbers() -> None:
    z = np.array([[1 + 2j, -0.5j], [3 - 1j, 2 + 0.25j]], np.complex64)
    x = nnc.asarray(z)
    np.testing.assert_allclose(nnc.prod(x, axis=0).numpy(), z.prod(0), rtol=1e-6)
    np.testing.assert_allclose(nnc.var(x, axis=1).numpy(), z.var(1), rtol=1e-6)
    assert nnc.std(x).dtype == nnc.float32
    np.testing.assert_allclose(nnc.cov(x).numpy(), np.cov(z), rtol=1e-5)
    np.testing.assert_allclose(nnc.corrcoef(x).numpy(), np.corrcoef(z), rtol=1e-5)
    np.testing.assert_allclose(nnc.cumulative_prod(x, axis=1).numpy(), z.cumprod(1), rtol=1e-6)


def test_a_stable_variance() -> None:
    """The mean of squares less the square of the mean would lose every digit."""
    host = (np.arange(100) % 7 + 1e7).astype(np.float32)
    np.testing.assert_allclose(nnc.var(nnc.asarray(host)).item(), host.astype(np.float64).var(), rtol=1e-3)


def test_average_returns_the_weights(device: str) -> None:
    y, total = nnc.average(nnc.asarray(A), 1, weights=W, returned=True)
    wanted, weights = np.average(A, 1, W, returned=True)
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(total.numpy(), weights, rtol=1e-6)
    assert nnc.average(nnc.asarray(A), 0, returned=True)[1].tolist() == [3, 3, 3, 3]


def test_nothing_but_nan_has_no_position(device: str) -> None:
    assert nnc.nanargmax(nnc.asarray(N), 1).tolist() == [2, -1, 3]
    assert nnc.nanargmin(nnc.asarray(np.array([np.nan, np.inf], np.float32))).item() == 1


def test_gradients() -> None:
    zeros = nnc.asarray(np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 5.0]], np.float32))
    assert nnc.grad(lambda x: nnc.sum(nnc.prod(x, axis=1)))(zeros).tolist() == [[0, 6, 0], [0, 0, 0]]
    second = nnc.hessian(lambda x: nnc.prod(x))(zeros[1]).numpy()
    assert second.tolist() == [[0, 5, 0], [5, 0, 0], [0, 0, 0]]
    n = nnc.asarray(N[:1])
    assert nnc.grad(lambda x: nnc.nansum(x))(n).tolist() == [[1, 0, 1, 1]]
    np.testing.assert_allclose(nnc.grad(lambda x: nnc.nanvar(x))(n).numpy(),
                               [[-2 / 9, 0, 14 / 18, -5 / 9]], rtol=1e-5)
    low = nnc.asarray(np.array([-np.inf, -np.inf], np.float32))
    assert nnc.grad(lambda x: nnc.logsumexp(x))(low).tolist() == [0, 0]


def complex_slopes(f: Callable[..., Any], z: np.ndarray) -> np.ndarray:
    """dL/d(re z) + i dL/d(im z) by differences."""
    slopes, h = np.zeros_like(z), 1e-6
    for place in np.ndindex(z.shape):
        for unit in (1, 1j):
            step = np.zeros_like(z)
            step[place] = h * unit
            slopes[place] += unit * (f(z + step) - f(z - step)) / (2 * h)
    return slopes


@pytest.mark.parametrize("name", ["prod", "cumulative_prod", "cumulative_sum", "linear_recurrence", "var"])
def test_gradients_of_complex_numbers(name: str) -> None:
    functions: dict[str, Callable[[Any], Any]] = {
        "prod": lambda x: nnc.prod(x, axis=1), "cumulative_prod": lambda x: nnc.cumulative_prod(x, axis=1),
        "cumulative_sum": lambda x: nnc.cumulative_sum(x, axis=0), "var": lambda x: nnc.var(x, axis=1),
        "linear_recurrence": lambda x: nnc.linear_recurrence(x, x * x[:, ::-1]),
    }  # fmt: skip

    def loss(x: nnc.Tensor) -> nnc.Tensor:
        y = functions[name](x)
        return nnc.sum(nnc.real(y * nnc.conj(y)) if y.dtype == nnc.complex128 else y * y)

    z = np.array([[1 + 2j, -0.5j, 0.3], [0.5 - 1j, 2 + 0.25j, 0]], np.complex128)
    found = nnc.grad(loss)(nnc.asarray(z)).numpy()
    wanted = complex_slopes(lambda at: loss(nnc.asarray(at)).item(), z)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)


def test_errors() -> None:
    x = nnc.asarray(A)
    with fails(ValueError, "axis 2", operator="prod"):
        nnc.prod(x, axis=2)
    with fails(ValueError, "go neither with", "float32[3,4]", operator="average"):
        nnc.average(x, weights=W)
    with fails(ValueError, "no vector of 4", operator="cov"):
        nnc.cov(x, aweights=A)
    with fails(ValueError, "counts", operator="cov"):
        nnc.cov(x, fweights=W)
    with fails(ValueError, "more than two axes", operator="corrcoef"):
        nnc.corrcoef(nnc.ones((2, 2, 2)))


def test_sizes_may_be_named(device: str) -> None:
    x = nnc.asarray(A)
    with nnc.deferred():
        y = nnc.var(x, axis=0, correction=1) + nnc.prod(x, axis=0) + nnc.logsumexp(x, axis=0) + nnc.sort(x, axis=0)[0]
        z = nnc.cumulative_sum(x, axis=0) + nnc.cummax(x, axis=0)
    graph = nnc.export({"x": x}, {"z": z}, named_dims={"x": ("n", None)})
    found = graph.compile(device)(x=np.concatenate([A, B]))["z"].numpy()
    host = np.concatenate([A, B])
    np.testing.assert_allclose(found, host.cumsum(0) + np.maximum.accumulate(host, 0), rtol=1e-5, atol=1e-5)
    with fails(ValueError, "stop"):
        nnc.export({"x": x}, {"y": y}, named_dims={"x": ("n", None)})


@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_gradients_of_graphs_with_named_sizes(name: str) -> None:
    """How many elements there are is counted when the graph runs."""
    functions: dict[str, Callable[[nnc.Tensor], nnc.Tensor]] = {
        "mean": lambda v: nnc.mean(v * v), "var": lambda v: nnc.sum(nnc.var(v, axis=0, correction=0.5)),
        "std": lambda v: nnc.std(v, correction=1),
    }  # fmt: skip
    x = nnc.var_arr("x", shape=(nnc.Dim("n"), 4))
    stack = nnc.stack_for("cpu:0")
    graph = stack.graph.grad(nnc.export({"x": x}, {"y": functions[name](x)}), "y", ["x"])
    for host in (A, A[:2]):
        found = graph.compile("cpu:0")(x=host)["dx"].numpy()
        np.testing.assert_allclose(found, nnc.grad(functions[name])(nnc.asarray(host)).numpy(), rtol=1e-5, atol=1e-7)
