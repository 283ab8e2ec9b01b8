"""Quantiles by every method against NumPy, on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.functions.quantile_methods import METHODS
from tests.tensors.faults import fails

A = np.array([[0.5, -1.25, 2.0, 0.0, 7.0], [3.0, -0.75, 0.0, 1.5, 2.5], [2.0, 2.0, -4.0, 0.25, 1.0]], np.float32)
N = np.array([[0.5, np.nan, 2.0, 0.0, 1.0], [np.nan] * 5, [np.nan, 2.0, -4.0, np.nan, 3.5]], np.float32)
Q = np.array([0.0, 0.1, 0.25, 0.5, 0.62, 0.75, 1.0])
W = np.array([1.0, 2.0, 0.0, 0.5, 1.5], np.float32)



def without_nan(row: np.ndarray) -> np.ndarray:
    """NumPy's nanquantile stumbles over a weight of zero."""
    there = ~np.isnan(row)
    return np.quantile(row[there], Q, method="inverted_cdf", weights=W[there])


Pair = tuple[Callable[..., Any], Callable[..., Any]]
CASES: dict[str, Pair] = {
    "median": (lambda a: nnc.median(a), lambda a: np.median(a)),
    "median of an even number": (lambda a: nnc.median(a[:, :4], 1), lambda a: np.median(a[:, :4], 1)),
    "median kept": (lambda a: nnc.median(a, axis=(0, 1), keepdims=True), lambda a: np.median(a, (0, 1), keepdims=True)),
    "quantile of all": (lambda a: nnc.quantile(a, 0.3), lambda a: np.quantile(a, 0.3)),
    "quantiles along 0": (lambda a: nnc.quantile(a, Q, axis=0), lambda a: np.quantile(a, Q, axis=0)),
    "quantiles kept": (lambda a: nnc.quantile(a, [[0.2, 0.4]], 1, keepdims=True),
                       lambda a: np.quantile(a, [[0.2, 0.4]], 1, keepdims=True)),
    "percentile": (lambda a: nnc.percentile(a, [5, 95], -1), lambda a: np.percentile(a, [5, 95], -1)),
    "weighted": (lambda a: nnc.quantile(a, Q, 1, method="inverted_cdf", weights=W),
                 lambda a: np.quantile(a, Q, 1, method="inverted_cdf", weights=W)),
    "weighted, of all": (lambda a: nnc.percentile(a, 40, method="inverted_cdf", weights=np.abs(A)),
                         lambda a: np.percentile(a, 40, method="inverted_cdf", weights=np.abs(A))),
}  # fmt: skip
NAN: dict[str, Pair] = {
    "median with NaN": (lambda a: nnc.median(a, 1), lambda a: np.median(a, 1)),
    "quantile with NaN": (lambda a: nnc.quantile(a, Q, 0), lambda a: np.quantile(a, Q, 0)),
    "nanmedian": (lambda a: nnc.nanmedian(a, 1), lambda a: np.nanmedian(a, 1)),
    "nanmedian of all": (lambda a: nnc.nanmedian(a), lambda a: np.nanmedian(a)),
    "nanquantile": (lambda a: nnc.nanquantile(a, Q, 1), lambda a: np.nanquantile(a, Q, 1)),
    "nanpercentile": (lambda a: nnc.nanpercentile(a, 30, 0, keepdims=True),
                      lambda a: np.nanpercentile(a, 30, 0, keepdims=True)),
    "nanquantile, weighted": (lambda a: nnc.nanquantile(a[::2], Q, 1, method="inverted_cdf", weights=W),
                              lambda a: np.stack([without_nan(r) for r in a[::2]], 1)),
}  # fmt: skip
ALL = {name: (*pair, A) for name, pair in CASES.items()} | {name: (*pair, N) for name, pair in NAN.items()}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ALL)
def test_equals_numpy(device: str, name: str) -> None:
    ours, theirs, host = ALL[name]
    found, wanted = ours(nnc.asarray(host)), np.asarray(theirs(host))
    assert found.device.id == device
    assert (found.shape, found.dtype) == (wanted.shape, nnc.float32)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_every_method(method: str, count: int) -> None:
    """Those of the host, those computed on the device, and those of rows with NaN between the others."""
    host = np.random.default_rng(count).permutation(count).astype(np.float64) ** 2
    q = np.concatenate([np.linspace(0, 1, 21), [1 / 3, 0.125, 0.875]])
    wanted = np.quantile(host, q, method=method)
    x = nnc.asarray(host)
    np.testing.assert_allclose(nnc.quantile(x, q, method=method).numpy(), wanted, rtol=1e-12, atol=1e-12)
    found = nnc.quantile(x, nnc.asarray(q), method=method).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    mixed = nnc.asarray(np.insert(host, [0, count // 2, count], np.nan))
    np.testing.assert_allclose(nnc.nanquantile(mixed, q, method=method).numpy(), wanted, rtol=1e-12, atol=1e-12)


def test_quantiles_of_a_tensor(device: str) -> None:
    q = nnc.asarray(np.array([[0.25, 0.5], [1.0, 1.5]], np.float32))
    found = nnc.quantile(nnc.asarray(A), q, axis=1).numpy()
    np.testing.assert_allclose(found[0], np.quantile(A, [0.25, 0.5], axis=1), rtol=1e-6)
    np.testing.assert_allclose(found[1, 0], A.max(1), rtol=1e-6)
    assert np.isnan(found[1, 1]).all(), "1.5 is no share"
    np.testing.assert_allclose(nnc.percentile(nnc.asarray(A), q * 40).numpy()[0], np.percentile(A, [10, 20]), rtol=1e-5)


def test_equal_infinite_neighbours() -> None:
    """Where NumPy subtracts infinities and gives NaN."""
    x = nnc.asarray(np.array([np.inf, -np.inf, -np.inf, np.inf, 0.0, np.inf], np.float32))
    assert nnc.quantile(x, [0.1, 0.7]).tolist() == [-np.inf, np.inf]


def test_a_neighbour_that_is_infinite(device: str) -> None:
    rows = nnc.asarray(np.array([[2.0, np.inf], [-np.inf, 2.0], [-np.inf, np.inf], [-3e38, 3e38]], np.float32))
    np.testing.assert_array_equal(nnc.median(rows, 1).numpy(), [np.inf, -np.inf, np.nan, 0.0])
    for q in (0.3, 0.7):
        for quantile in (q, nnc.asarray(q)):
            np.testing.assert_array_equal(nnc.quantile(rows, quantile, 1).numpy()[:3], [np.inf, -np.inf, np.nan])
    assert nnc.quantile(rows, 1.0, 1).tolist()[:2] == [np.inf, 2.0]
    assert nnc.nanmedian([np.inf, np.nan, 2.0]).item() == np.inf


def test_of_nothing(device: str) -> None:
    empty = nnc.asarray(A[:, :0])
    assert np.isnan(nnc.quantile(empty, [0.5, 1.0], 1).numpy()).all()
    assert nnc.median(empty, 1).shape == (3,)
    assert nnc.median(empty, 0).shape == (0,)


def test_dtypes() -> None:
    assert nnc.median(nnc.asarray([3, 1, 2, 10])).item() == 2.5
    half = nnc.quantile(nnc.asarray(A.astype(np.float16)), 0.3, axis=1)
    assert half.dtype == nnc.float16
    np.testing.assert_allclose(half.numpy(), np.quantile(A, 0.3, axis=1), rtol=1e-3)


@pytest.mark.parametrize("name", ["quantiles along 0", "nanquantile", "weighted"])
def test_compiled_and_late_equal_eager(device: str, name: str) -> None:
    ours, _, host = ALL[name]
    x = nnc.asarray(host)
    with nnc.deferred():
        late = ours(x)
    np.testing.assert_allclose(nnc.jit(ours)(x).numpy(), ours(x).numpy(), rtol=1e-6)
    np.testing.assert_allclose(late.numpy(), ours(x).numpy(), rtol=1e-6)


def test_gradients() -> None:
    x = nnc.asarray(np.array([4.0, 0.0, 1.0, 9.0]))
    np.testing.assert_allclose(nnc.grad(lambda v: nnc.quantile(v, 0.5))(x).numpy(), [0.5, 0, 0.5, 0])
    np.testing.assert_allclose(nnc.grad(lambda v: nnc.quantile(v, 0.75))(x).numpy(), [0.75, 0, 0, 0.25])
    np.testing.assert_allclose(nnc.grad(lambda q: nnc.quantile(x, q))(nnc.asarray(0.8)).numpy(), 15)
    gaps = nnc.asarray(np.array([np.nan, 2.0, 8.0]))
    assert nnc.grad(lambda v: nnc.nanmedian(v))(gaps).tolist() == [0, 0.5, 0.5]


def test_a_named_size_is_refused_where_it_was_baked_in() -> None:
    x = nnc.asarray(A)
    with nnc.deferred():
        y = nnc.quantile(x, [0.7, 0.1, 0.4], axis=0)
    with fails(ValueError, "stop"):
        nnc.export({"x": x}, {"y": y}, named_dims={"x": ("n", None)}, capture="constant")


def test_a_named_size_from_the_beginning() -> None:
    x = nnc.var_arr("x", shape=(nnc.Dim("n"), 5))
    graph = nnc.export({"x": x}, {"y": nnc.quantile(x, [0.3, 0.9], axis=0), "m": nnc.median(x, 0)}, capture="constant")
    for host in (A, A[:2]):
        found = graph.compile()(x=host)
        np.testing.assert_allclose(found["y"].numpy(), np.quantile(host, [0.3, 0.9], 0), rtol=1e-6)
        np.testing.assert_allclose(found["m"].numpy(), np.median(host, 0), rtol=1e-6)


def test_errors() -> None:
    x = nnc.asarray(A)
    with fails(ValueError, "not all from 0 to 1", operator="quantile"):
        nnc.quantile(x, [0.5, 1.5])
    with fails(ValueError, "not all from 0 to 100", operator="percentile"):
        nnc.percentile(x, -1)
    with fails(ValueError, "method 'cubic'", "midpoint", operator="quantile"):
        nnc.quantile(x, 0.5, method="cubic")
    with fails(ValueError, "takes no weights", operator="quantile"):
        nnc.quantile(x, 0.5, 1, weights=W)
    with fails(ValueError, "go neither with", operator="quantile"):
        nnc.quantile(x, 0.5, 0, weights=W, method="inverted_cdf")
    with fails(TypeError, "has no order", operator="median"):
        nnc.median(nnc.asarray(A.astype(np.complex64)))
