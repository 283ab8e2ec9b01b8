"""Counts and histograms against NumPy, on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.faults import fails

RNG = np.random.default_rng(0)
X = RNG.standard_normal(60).astype(np.float32)
Y = RNG.uniform(-1, 2, 60).astype(np.float32)
W = RNG.uniform(0, 1, 60).astype(np.float32)
K = np.array([3, 1, 1, 0, 5, 3, 1], np.int32)
EDGES = np.array([-1.0, 0.0, 0.25, 1.5], np.float32)

Pair = tuple[Callable[..., Any], Callable[..., Any]]
BINS: dict[str, dict[str, Any]] = {
    "ten": {}, "a number": {"bins": 7}, "a range": {"bins": 4, "range": (-0.5, 1)}, "edges": {"bins": EDGES},
    "weights": {"bins": 5, "weights": W}, "density": {"bins": EDGES, "density": True},
    "weights and density": {"bins": 6, "weights": W, "density": True}, "a rule": {"bins": "fd"},
    "no width": {"bins": 3, "range": (1, 1)},
}  # fmt: skip


@pytest.mark.parametrize("name", BINS)
def test_histogram_equals_numpy(device: str, name: str) -> None:
    options = BINS[name]
    found, wanted = nnc.histogram(nnc.asarray(X), **options), np.histogram(X, **options)
    assert found.histogram.device.id == device
    np.testing.assert_allclose(found.histogram.numpy(), wanted[0], rtol=1e-4)
    np.testing.assert_allclose(found.bin_edges.numpy(), wanted[1], rtol=1e-5, atol=1e-6)
    given = {k: v for k, v in options.items() if k != "density"}
    if options.get("weights") is None:
        edges = nnc.histogram_bin_edges(nnc.asarray(X), **given)
        np.testing.assert_allclose(edges.numpy(), wanted[1], rtol=1e-5, atol=1e-6)


def test_what_lies_in_no_bin(device: str) -> None:
    x = nnc.asarray(np.array([-1.0, 1.5, 2.0, -2.0, np.nan, 0.0, np.inf], np.float32))
    assert nnc.histogram(x, EDGES).histogram.tolist() == [1, 1, 1]
    assert nnc.histogram(nnc.asarray([2.0, 2.0]), 2).histogram.tolist() == [0, 2]
    assert nnc.histogram(nnc.asarray(X[:0]), 3).bin_edges.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert nnc.histogram(nnc.asarray(K), 3).histogram.tolist() == np.histogram(K, 3)[0].tolist()
    assert nnc.histogram(nnc.asarray(K), 3).histogram.dtype == nnc.int64


@pytest.mark.parametrize("x", [np.array([3, 1, 2, 2, 0]), np.array([True, False, True])], ids=["integers", "booleans"])
def test_rules_make_no_bins_for_integers_that_are_narrower_than_1(x: np.ndarray) -> None:
    counts, edges = nnc.histogram(x, "auto")
    wanted = np.histogram(x.astype(np.uint8), "auto")
    assert counts.tolist() == wanted[0].tolist() and edges.tolist() == wanted[1].tolist()


COUNTS: dict[str, Pair] = {
    "bincount": (lambda i: nnc.bincount(i), lambda i: np.bincount(i)),
    "bincount with weights": (lambda i: nnc.bincount(i, W[:7]), lambda i: np.bincount(i, W[:7])),
    "bincount, longer": (lambda i: nnc.bincount(i, minlength=9), lambda i: np.bincount(i, minlength=9)),
    "bincount, long enough": (lambda i: nnc.bincount(i, minlength=2), lambda i: np.bincount(i, minlength=2)),
    "bincount of nothing": (lambda i: nnc.bincount(i[:0], minlength=2), lambda i: np.bincount(i[:0], minlength=2)),
    "bincount of a known length": (lambda i: nnc.bincount(i - 1, length=3), lambda i: np.bincount(i)[1:4]),
}


@pytest.mark.parametrize("name", COUNTS)
def test_bincount_equals_numpy(device: str, name: str) -> None:
    ours, theirs = COUNTS[name]
    found, wanted = ours(nnc.asarray(K)), theirs(K)
    assert found.device.id == device
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)
    assert found.dtype == (nnc.float32 if "weights" in name else nnc.int64)


def test_bincount_in_every_mode(device: str) -> None:
    x = nnc.asarray(K)
    with nnc.deferred():
        late = nnc.bincount(x, minlength=3) * 2
    assert late.tolist() == [2, 6, 0, 4, 0, 2]
    assert nnc.jit(lambda i: nnc.bincount(i) * 2)(x).tolist() == [2, 6, 0, 4, 0, 2]
    assert nnc.jit(lambda i: nnc.bincount(i, length=4))(x).tolist() == [1, 3, 0, 2]
    grad = nnc.grad(lambda w: nnc.sum(nnc.bincount(x, w) * nnc.asarray(np.arange(6, dtype=np.float32))))
    assert grad(nnc.asarray(W[:7])).tolist() == [3, 1, 1, 0, 5, 3, 1]


GRIDS: dict[str, dict[str, Any]] = {
    "a number": {"bins": 4}, "two numbers": {"bins": [3, 5]}, "edges of both": {"bins": EDGES},
    "edges of each": {"bins": [EDGES, np.array([-1.0, 0.5, 2.0], np.float32)]},
    "a range": {"bins": 3, "range": [[-1, 1], [0, 2]]}, "weights": {"bins": 3, "weights": W},
    "density": {"bins": [2, EDGES], "density": True},
}  # fmt: skip


@pytest.mark.parametrize("name", GRIDS)
def test_histograms_of_points_equal_numpy(device: str, name: str) -> None:
    options = GRIDS[name]
    found, wanted = nnc.histogram2d(nnc.asarray(X), nnc.asarray(Y), **options), np.histogram2d(X, Y, **options)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=1e-6)


def test_histogramdd(device: str) -> None:
    table = np.stack([X, Y, W], 1)
    wanted, edges = np.histogramdd(table, bins=(2, 3, 2))
    for sample in (nnc.asarray(table), [nnc.asarray(X), nnc.asarray(Y), nnc.asarray(W)]):
        found = nnc.histogramdd(sample, bins=(2, 3, 2))
        np.testing.assert_array_equal(found.histogram.numpy(), wanted)
        for a, b in zip(found.bin_edges, edges, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-5, atol=1e-6)


def test_compiled_and_late_equal_eager(device: str) -> None:
    x, w = nnc.asarray(X), nnc.asarray(W)
    with nnc.deferred():
        late = nnc.histogram(x, 6, weights=w).histogram
    eager = nnc.histogram(x, 6, weights=w).histogram.numpy()
    np.testing.assert_allclose(late.numpy(), eager, rtol=1e-6)
    np.testing.assert_allclose(nnc.jit(lambda a, b: nnc.histogram(a, 6, weights=b).histogram)(x, w).numpy(), eager,
                               rtol=1e-6)
    grad = nnc.grad(lambda b: nnc.histogram(x, EDGES, weights=b).histogram[1])(w)
    np.testing.assert_array_equal(grad.numpy(), ((X >= 0) & (X < 0.25)).astype(np.float32))


def test_errors() -> None:
    x = nnc.asarray(X)
    with fails(TypeError, "no integers", operator="bincount"):
        nnc.bincount(x)
    with fails(ValueError, "no vector", operator="bincount"):
        nnc.bincount(nnc.asarray([[1, 2]]))
    with fails(ValueError, "-1 is negative", "no number of a bin"):
        nnc.bincount(nnc.asarray([1, -1]))
    with fails(ValueError, "minlength -2", operator="bincount"):
        nnc.bincount(nnc.asarray([1]), minlength=-2)
    with fails(ValueError, "do not go with", operator="bincount"):
        nnc.bincount(nnc.asarray([1, 2]), weights=W)
    with fails(ValueError, "should rise", operator="histogram"):
        nnc.histogram(x, [0, 2, 1])
    with fails(ValueError, "0 bins are too few", operator="histogram"):
        nnc.histogram(x, 0)
    with fails(ValueError, "does not rise", operator="histogram"):
        nnc.histogram(x, range=(2, 1))
    with fails(TypeError, "knows no weights", operator="histogram"):
        nnc.histogram(x, "auto", weights=W)
    with fails(ValueError, "finite numbers", operator="histogram_bin_edges"):
        nnc.histogram_bin_edges(nnc.asarray([1.0, np.nan]), "auto")
    for numbers in ([1.0, np.nan], [np.inf, 1.0], np.float32([-3e38, 3e38])):
        with fails(ValueError, "do not span a finite float32 range", operator="histogram"):
            nnc.histogram(numbers)
        assert nnc.histogram(numbers, 2, range=(0, 4)).histogram.tolist() == [np.isin(1.0, numbers), 0]
    with fails(ValueError, "unlike many", operator="histogram2d"):
        nnc.histogram2d(x, x[:3])
    with fails(TypeError, "3 bins for 2 coordinates", operator="histogramdd"):
        nnc.histogramdd([X, Y], bins=(1, 2, 3))
