"""Numbers are not rounded on the way: array objects keep their dtype, integers count as what they are, and Python
numbers take the dtype of the floats beside them."""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError, NotSupportedError
from tests.tensors.ways import in_mode

ODD = 2.0**24 + 1
"""Not a float32."""


class WithArray:
    """What pandas, xarray and torch are to NumPy."""

    def __init__(self, host: Any) -> None:
        self.host = host

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.host, dtype)


class WithInterface:
    def __init__(self, host: Any) -> None:
        self.__array_interface__ = host.__array_interface__
        self.host = host


class WithDLPack:
    def __init__(self, host: Any) -> None:
        self.host = host

    def __dlpack__(self, **given: Any) -> Any:
        return self.host.__dlpack__(**given)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


HOST = np.array([ODD, 0.1])
ARRAYS: dict[str, Callable[[], Any]] = {
    "__array__": lambda: WithArray(HOST), "__array_interface__": lambda: WithInterface(HOST),
    "__dlpack__": lambda: WithDLPack(HOST), "memoryview": lambda: memoryview(HOST),
    "array.array": lambda: array.array("d", HOST), "scalars in a list": lambda: list(HOST),
    "scalars and numbers": lambda: [HOST[0], 0.1], "scalars in a tuple": lambda: tuple(HOST),
}  # fmt: skip


# ---- array objects keep their dtype
@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_array_objects_keep_float64(make: Callable[[], Any]) -> None:
    found = nnc.asarray(make())
    assert found.dtype == nnc.float64
    np.testing.assert_array_equal(found.numpy(), HOST)


@pytest.mark.parametrize("rows", [[HOST, HOST], [[HOST[0], 1], [2.0, 3]], (WithArray(HOST), [1.0, 2.0])])
def test_arrays_in_lists_keep_float64(rows: Any) -> None:
    found = nnc.asarray(rows)
    assert found.dtype == nnc.float64
    assert found[0, 0].item() == ODD
    assert nnc.sum(rows).dtype == nnc.float64


@pytest.mark.parametrize(("given", "dtype"), [
    ([0.1], nnc.float32), ([[1.0, 2], [3, True]], nnc.float32), ([1j, 2.0], nnc.complex64), ([1, True], nnc.int64),
    ([np.float32(0.1), 0.1], nnc.float32), ([np.float16(0.1), 1.0, 2], nnc.float16), ([np.int8(1), 2], nnc.int8),
    ([np.int8(1), 2.5], nnc.float32), ([np.complex128(1j), 1.0], nnc.complex128), ([np.bool_(True), 2], nnc.int64),
    ([ml_dtypes.bfloat16(1), 2.0], nnc.bfloat16), (np.float64(0.1), nnc.float64), ([], nnc.float32),
    ([np.float32(1), np.int64(3)], nnc.float32), ([np.int32(1), np.int64(3)], nnc.int64),
    (array.array("f", [1]), nnc.float32), (range(3), nnc.int64),
])  # fmt: skip
def test_dtypes_of_lists(given: Any, dtype: Any) -> None:
    """Python numbers beside what has a dtype are weak."""
    assert nnc.asarray(given).dtype == dtype


def test_a_weak_number_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(AttributeValueError, match="300"):
        nnc.asarray([np.uint8(1), 300])


def test_a_dtype_that_is_asked_for_wins() -> None:
    assert nnc.asarray(array.array("d", [0.5]), dtype="float16").dtype == nnc.float16


# ---- Python numbers beside float64
X = np.array([0.1, 0.2, 0.30000000000000004, 0.7])
BESIDE: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "operator with a list": (lambda x: x - [0.1, 0.2, 0.3, 0.4], lambda x: x - [0.1, 0.2, 0.3, 0.4]),
    "list with an operator": (lambda x: [0.1, 0.2, 0.3, 0.4] * x, lambda x: [0.1, 0.2, 0.3, 0.4] * x),
    "function of a list": (lambda x: nnc.add([0.1] * 4, x), lambda x: 0.1 + x),
    "isin": (lambda x: nnc.isin(x, [0.1, 0.7]), lambda x: np.isin(x, [0.1, 0.7])),
    "setdiff1d": (lambda x: nnc.setdiff1d(x, [0.1]), lambda x: np.setdiff1d(x, [0.1])),
    "searchsorted": (lambda x: nnc.searchsorted(x, [0.1, 0.7]), lambda x: np.searchsorted(x, [0.1, 0.7])),
    "digitize": (lambda x: nnc.digitize(x, [0.1, 0.7]), lambda x: np.digitize(x, [0.1, 0.7])),
    "gradient": (lambda x: nnc.gradient(x, 0.1), lambda x: np.gradient(x, 0.1)),
    "gradient at points": (lambda x: nnc.gradient(x, [0.1, 0.2, 0.4, 0.5]),
                           lambda x: np.gradient(x, [0.1, 0.2, 0.4, 0.5])),
    "trapezoid": (lambda x: nnc.trapezoid(x, dx=0.1), lambda x: np.trapezoid(x, dx=0.1)),
    "linspace": (lambda x: nnc.linspace(0.1, x, 5), lambda x: np.linspace(0.1, x, 5)),
    "linspace from a list": (lambda x: nnc.linspace([0.1] * 4, x, 5), lambda x: np.linspace([0.1] * 4, x, 5)),
    "interp": (lambda x: nnc.interp(x, [0.1, 0.7], [0.3, 0.9]), lambda x: np.interp(x, [0.1, 0.7], [0.3, 0.9])),
    "average": (lambda x: nnc.average(x, weights=[0.1, 0.2, 0.3, 0.4]),
                lambda x: np.average(x, weights=[0.1, 0.2, 0.3, 0.4])),
    "cov": (lambda x: nnc.cov(x, aweights=[0.1, 0.2, 0.3, 0.4]), lambda x: np.cov(x, aweights=[0.1, 0.2, 0.3, 0.4])),
    "histogram": (lambda x: nnc.histogram(x, bins=[0.1, 0.2, 0.7]).histogram,
                  lambda x: np.histogram(x, bins=[0.1, 0.2, 0.7])[0]),
    "histogram edges": (lambda x: nnc.histogram(x, bins=[0.1, 0.2, 0.7]).bin_edges,
                        lambda x: np.array([0.1, 0.2, 0.7])),
    "density": (lambda x: nnc.histogram(x, 3, density=True).histogram,
                lambda x: np.histogram(x, 3, density=True)[0]),
    "density in two dimensions": (lambda x: nnc.histogram2d(x, x, 3, density=True).histogram,
                                  lambda x: np.histogram2d(x, x, 3, density=True)[0]),
    "polyval": (lambda x: nnc.polyval([0.1, 0.3], x), lambda x: np.polyval([0.1, 0.3], x)),
    "polyint": (lambda x: nnc.polyint(x, k=0.1), lambda x: np.polyint(x, k=0.1)),
    "diff": (lambda x: nnc.diff(x, prepend=0.1), lambda x: np.diff(x, prepend=0.1)),
    "insert": (lambda x: nnc.insert(x, 1, 0.1), lambda x: np.insert(x, 1, 0.1)),
    "append": (lambda x: nnc.append(x, [0.1]), lambda x: np.append(x, [0.1])),
    "concat": (lambda x: nnc.concat([x, [0.1]]), lambda x: np.concatenate([x, [0.1]])),
    "where": (lambda x: nnc.where(x > 0.15, x, [0.1] * 4), lambda x: np.where(x > 0.15, x, [0.1] * 4)),
    "list of rows": (lambda x: nnc.asarray([x, [0.1] * 4, [x[0], 0.1, 0.2, 0.3]]),
                     lambda x: np.array([x, [0.1] * 4, [x[0], 0.1, 0.2, 0.3]])),
    "clip": (lambda x: nnc.clip(x, [0.15] * 4, 0.6), lambda x: np.clip(x, [0.15] * 4, 0.6)),
    "isclose": (lambda x: nnc.isclose(x, [0.1] * 4, rtol=0, atol=1e-12),
                lambda x: np.isclose(x, [0.1] * 4, rtol=0, atol=1e-12)),
    "dot": (lambda x: nnc.dot(x, [0.1, 0.2, 0.3, 0.4]), lambda x: np.dot(x, [0.1, 0.2, 0.3, 0.4])),
    "matmul": (lambda x: x @ [0.1, 0.2, 0.3, 0.4], lambda x: x @ [0.1, 0.2, 0.3, 0.4]),
    "at set": (lambda x: x.at[[0, 1]].set([0.3, 0.4]), lambda x: np.array([0.3, 0.4, *x[2:]])),
    "mse_loss": (lambda x: nnc.mse_loss(x, [0.1, 0.2, 0.3, 0.4]), lambda x: np.mean((x - [0.1, 0.2, 0.3, 0.4]) ** 2)),
}  # fmt: skip


@pytest.mark.parametrize(("ours", "numpys"), BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("mode", ["eager", "deferred"])
def test_python_numbers_beside_float64(ours: Callable[[Any], Any], numpys: Callable[[Any], Any], mode: str) -> None:
    found, wanted = in_mode(mode, ours, nnc.asarray(X)), np.asarray(numpys(X))
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-13)


def test_python_numbers_beside_halves() -> None:
    half = nnc.asarray(X, dtype="float16")
    assert (half + [0.1] * 4).dtype == nnc.float16
    assert nnc.isin(half, [0.1, 0.7]).tolist() == [True, False, False, True]


# ---- integers
BIG = np.array([10**9 + 1, 10**9 + 2, 10**9 + 3])
FOUR = np.array([0, 0, 4])
PAST = np.array([2**24, 2**24 + 1, 2**24 + 2])
INTEGERS: dict[str, tuple[Callable[[], Any], Any]] = {
    "var": (lambda: nnc.var(BIG), np.var(BIG)),
    "std": (lambda: nnc.std(BIG, correction=1), np.std(BIG, ddof=1)),
    "nanvar": (lambda: nnc.nanvar(BIG), np.var(BIG)),
    "nanstd": (lambda: nnc.nanstd(BIG), np.std(BIG)),
    "mean": (lambda: nnc.mean(PAST + FOUR), 16777218.0),
    "mean along an axis": (lambda: nnc.mean(np.stack([PAST, PAST + 3]), axis=0), np.mean([PAST, PAST + 3], axis=0)),
    "nanmean": (lambda: nnc.nanmean(PAST + FOUR), 16777218.0),
    "mean of little bytes": (lambda: nnc.mean(np.full(300, 255, np.uint8)), 255.0),
    "cov": (lambda: nnc.cov(BIG), np.cov(BIG)),
    "cov of two": (lambda: nnc.cov(BIG, -BIG), np.cov(BIG, -BIG)),
    "corrcoef": (lambda: nnc.corrcoef(np.stack([BIG, BIG * 2])), np.ones((2, 2))),
    "average": (lambda: nnc.average(PAST, weights=[1, 2, 3]), np.average(PAST, weights=[1, 2, 3])),
    "trapezoid": (lambda: nnc.trapezoid(BIG - 10**9, PAST), np.trapezoid(BIG - 10**9, PAST)),
    "gradient": (lambda: nnc.gradient(PAST), np.gradient(PAST)),
    "gradient at points": (lambda: nnc.gradient(np.float32([1, 2, 4]), PAST), np.gradient([1.0, 2, 4], PAST)),
    "histogram": (lambda: nnc.histogram(PAST, bins=3).histogram, [1, 1, 1]),
    "histogram of edges": (lambda: nnc.histogram(PAST, bins=PAST).histogram, np.histogram(PAST, bins=PAST)[0]),
    "histogram2d": (lambda: nnc.histogram2d(PAST, PAST, 3).histogram, np.eye(3)),
    "quantile": (lambda: nnc.quantile(PAST, [0.2, 0.5, 1], method="lower"), PAST),
    "weighted quantile": (lambda: nnc.quantile(PAST, 0.5, method="inverted_cdf", weights=[1, 5, 1]), PAST[1]),
    "median": (lambda: nnc.median(PAST - 2**23), np.median(PAST - 2**23)),
    "half-way": (lambda: nnc.median(PAST[:2] - 2**23), np.median(PAST[:2] - 2**23)),
    "isclose": (lambda: nnc.isclose(PAST, PAST[0], rtol=0, atol=0), [True, False, False]),
    "isclose beyond float64": (lambda: nnc.isclose([2**53 + 1, -(2**63), 5], [2**53, 2**63 - 1, 5], rtol=0, atol=0),
                               [False, False, True]),
    "isclose with floats": (lambda: nnc.isclose(PAST, np.float32(2**24), rtol=0, atol=0), [True, False, False]),
    "allclose": (lambda: nnc.allclose(PAST, PAST[::-1], rtol=0, atol=1), False),
    "isin": (lambda: nnc.isin(PAST, [2.0**24]), [True, False, False]),
    "linspace": (lambda: nnc.linspace(nnc.asarray(50), nnc.asarray(1), 50, dtype=nnc.int64), np.arange(50, 0, -1)),
    "linspace of floats": (lambda: nnc.linspace(nnc.asarray(50.0), nnc.asarray(1.0), 50, dtype=nnc.int64),
                           np.arange(50, 0, -1)),
    "linspace rounds down": (lambda: nnc.linspace(nnc.asarray(-1), 1, 4, dtype=nnc.int64), [-1, -1, 0, 1]),
    "linspace far down": (lambda: nnc.linspace(nnc.asarray(2**63 - 1), 5, 3)[-1], 5.0),
    "interp": (lambda: nnc.interp(BIG, [10**9, 10**9 + 4], [0.0, 8.0]), [2.0, 4.0, 6.0]),
    "interp of whole heights": (lambda: nnc.interp([0.5], [0, 1], PAST[:2]), PAST[0] + 0.5),
    "interp round a period": (lambda: nnc.interp(BIG, [0, 1, 2, 3], [0.0, 1.0, 2.0, 3.0], period=4), BIG % 4),
    "geomspace": (lambda: nnc.geomspace(nnc.asarray(1), 16777216, 25), 2.0 ** np.arange(25)),
    "mse_loss": (lambda: nnc.mse_loss(PAST, PAST - 0.5), 0.25),
}  # fmt: skip


@pytest.mark.parametrize(("ours", "wanted"), INTEGERS.values(), ids=INTEGERS)
def test_integers_are_not_rounded_first(ours: Callable[[], Any], wanted: Any) -> None:
    np.testing.assert_allclose(ours().numpy(), wanted, rtol=1e-6 if np.asarray(wanted).dtype.kind == "f" else 0)


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "mean", "nanmean", "mean along an axis"])
def test_integers_without_float64(name: str) -> None:
    ours, wanted = INTEGERS[name]
    with nnc.use_device(WITHOUT_FLOAT64):
        found = ours()
    assert found.dtype == nnc.float32
    np.testing.assert_allclose(found.numpy(), wanted, rtol=2e-7)


WITHOUT_FLOAT64 = "strict-nofloat64:0"


def test_results_have_the_default_dtype() -> None:
    for f in (nnc.mean, nnc.var, nnc.std, nnc.median, nnc.cov, nnc.gradient, nnc.trapezoid, nnc.average):
        assert f(PAST).dtype == nnc.float32
    assert nnc.histogram(PAST, 3).bin_edges.dtype == nnc.float32
    assert nnc.histogram(PAST, 3, density=True).histogram.dtype == nnc.float32
    assert nnc.quantile(PAST, 0.5, method="nearest").dtype == nnc.int64
    assert nnc.trapezoid(PAST, np.array([0.1, 0.2, 0.3])).dtype == nnc.float64
    assert nnc.interp(PAST, PAST, PAST).dtype == nnc.interp(PAST, PAST, np.float32(PAST)).dtype == nnc.float32
    assert nnc.interp(PAST, PAST, np.float64(PAST)).dtype == nnc.float64


# ---- what NumPy refuses
@pytest.mark.parametrize("bins", [np.array([3.0, 1.0]), nnc.asarray([3.0, 1.0]), [3.0, 1.0]])
def test_edges_that_fall(bins: Any) -> None:
    with pytest.raises(AttributeValueError, match="histogram: the edges of bins should rise"):
        nnc.histogram(nnc.asarray([1.0, 2.0]), bins=bins)


# ---- devices without float64
FAR = np.array([[16777217, 16777219, 16777221, 16777216], [-(10**9), 10**9 + 1, 2 - 10**9, 10**9 + 5]])
APART: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "cov": (nnc.cov, np.cov), "corrcoef": (nnc.corrcoef, np.corrcoef),
    "weighted cov": (lambda x: nnc.cov(x, fweights=[1, 2, 1, 3]), lambda x: np.cov(x, fweights=[1, 2, 1, 3])),
    "gradient": (lambda x: nnc.gradient(x, axis=1), lambda x: np.gradient(x, axis=1)),
    "gradient with a step": (lambda x: nnc.gradient(x, 2, axis=1), lambda x: np.gradient(x, 2, axis=1)),
    "gradient of second order": (lambda x: nnc.gradient(x[0], edge_order=2), lambda x: np.gradient(x[0], edge_order=2)),
    "gradient at places": (lambda x: nnc.gradient(x[1], nnc.asarray([16777217, 16777218, 16777220, 16777224])),
                           lambda x: np.gradient(x[1], [16777217, 16777218, 16777220, 16777224])),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("name", APART)
def test_differences_of_integers_are_exact(name: str, dtype: str) -> None:
    ours, numpys = APART[name]
    with nnc.use_device(WITHOUT_FLOAT64):
        found = ours(nnc.asarray(FAR.astype(dtype)))
    assert found.dtype == nnc.float32
    np.testing.assert_allclose(found.numpy(), numpys(FAR), rtol=1e-5)


def test_counts_of_large_integers_are_refused() -> None:
    with nnc.use_device(WITHOUT_FLOAT64):
        x = nnc.asarray(FAR[0])
        for f in (nnc.histogram, nnc.histogram_bin_edges):
            with pytest.raises(NotSupportedError, match="as large as 16777221"):
                f(x)
        assert nnc.histogram(x - nnc.min(x), 5).histogram.tolist() == np.histogram(FAR[0], 5)[0].tolist()
        assert nnc.histogram(nnc.asarray(FAR[0] % 7), 3).histogram.tolist() == np.histogram(FAR[0] % 7, 3)[0].tolist()
