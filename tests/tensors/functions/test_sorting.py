"""Sorting and searching against NumPy, on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import FallbackWarning
from tests.tensors.faults import fails

NAN, INF = np.nan, np.inf
A = np.array([[0.5, NAN, 2.0, -0.0, 0.5], [3.0, -INF, 0.0, 1.5, NAN], [2.0, 2.0, -4.0, INF, 0.25]], np.float32)
K = np.array([[3, 0, 2, 2, 0], [0, 0, 5, 1, 9]], np.int32)
EDGES = np.array([-1.0, 0.0, 0.5, 2.0], np.float32)

Pair = tuple[Callable[..., Any], Callable[..., Any]]
CASES: dict[str, Pair] = {
    "sort": (lambda a: nnc.sort(a), lambda a: np.sort(a)),
    "sort along 0": (lambda a: nnc.sort(a, axis=0), lambda a: np.sort(a, 0)),
    "sort of nothing": (lambda a: nnc.sort(a[:, :0]), lambda a: np.sort(a[:, :0])),
    "argsort": (lambda a: nnc.argsort(a), lambda a: np.argsort(a, kind="stable")),
    "argsort as a method": (lambda a: a.argsort(0), lambda a: np.argsort(a, 0, kind="stable")),
    "lexsort": (lambda a: nnc.lexsort(a), lambda a: np.lexsort(a)),
    "lexsort of several": (lambda a: nnc.lexsort([a[0], np.array([1, 0, 1, 0, 1], np.float32)]),
                           lambda a: np.lexsort([a[0], np.array([1, 0, 1, 0, 1], np.float32)])),
    "lexsort along an axis": (lambda a: nnc.lexsort((a, a > 0), axis=0), lambda a: np.lexsort((a, a > 0), axis=0)),
    "searchsorted": (lambda a: nnc.searchsorted(EDGES, a), lambda a: np.searchsorted(EDGES, a)),
    "searchsorted from the right": (lambda a: nnc.searchsorted(EDGES, a, side="right"),
                                    lambda a: np.searchsorted(EDGES, a, "right")),
    "searchsorted by a sorter": (lambda a: nnc.searchsorted(a[0], a[2], sorter=nnc.argsort(a[0])),
                                 lambda a: np.searchsorted(a[0], a[2], sorter=np.argsort(a[0], kind="stable"))),
    "digitize": (lambda a: nnc.digitize(a, EDGES), lambda a: np.digitize(a, EDGES)),
    "digitize from the right": (lambda a: nnc.digitize(a, EDGES, True), lambda a: np.digitize(a, EDGES, True)),
    "digitize in falling bins": (lambda a: nnc.digitize(a[2], EDGES[::-1]), lambda a: np.digitize(a[2], EDGES[::-1])),
    "digitize in falling bins, right": (lambda a: nnc.digitize(a[2], EDGES[::-1], right=True),
                                        lambda a: np.digitize(a[2], EDGES[::-1], right=True)),
    "digitize in one bin": (lambda a: nnc.digitize(a, EDGES[:1]), lambda a: np.digitize(a, EDGES[:1])),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_equals_numpy(device: str, name: str) -> None:
    ours, theirs = CASES[name]
    found, wanted = ours(nnc.asarray(A)), theirs(A)
    assert found.device.id == device
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("name", ["sort along 0", "lexsort", "searchsorted"])
def test_compiled_and_late_equal_eager(device: str, name: str) -> None:
    ours, _ = CASES[name]
    x = nnc.asarray(A)
    with nnc.deferred():
        late = ours(x)
    np.testing.assert_array_equal(nnc.jit(ours)(x).numpy(), ours(x).numpy())
    np.testing.assert_array_equal(late.numpy(), ours(x).numpy())


def test_the_largest_first(device: str) -> None:
    """NaN above everything, equal ones as they come."""
    x = nnc.asarray(A)
    np.testing.assert_array_equal(nnc.sort(x, descending=True).numpy(), np.sort(A)[:, ::-1])
    assert nnc.argsort(x, descending=True)[0].tolist() == [1, 2, 0, 4, 3]
    assert nnc.argsort(nnc.asarray(K), descending=True).tolist() == [[0, 2, 3, 1, 4], [4, 2, 3, 0, 1]]


def test_partitions(device: str) -> None:
    x = nnc.asarray(K)
    for kth in (0, 3, -1, (1, 2)):
        found, places = nnc.partition(x, kth).numpy(), nnc.argpartition(x, kth).numpy()
        for k in np.atleast_1d(kth):
            assert (found[:, k] == np.sort(K)[:, k]).all()
            assert (found[:, : k % 5] <= found[:, k, None]).all() and (found[:, k % 5 :] >= found[:, k, None]).all()
        np.testing.assert_array_equal(np.take_along_axis(K, places, 1), found)
    assert nnc.partition(x, 3, axis=None).tolist() == sorted(K.ravel().tolist())


def test_top_k(device: str) -> None:
    x = nnc.asarray(A)
    values, indices = nnc.top_k(x, 2)
    np.testing.assert_array_equal(values.numpy(), [[NAN, 2], [NAN, 3], [INF, 2]])
    assert indices.tolist() == [[1, 2], [4, 0], [3, 0]]
    assert nnc.top_k(x, 3, axis=0, largest=False).indices[:, 0].tolist() == [0, 2, 1]
    assert nnc.top_k(nnc.asarray(K), 0).values.shape == (2, 0)
    host = np.random.default_rng(0).integers(0, 50, (3, 400)).astype(np.float32)
    values, indices = nnc.top_k(nnc.asarray(host), 7)
    np.testing.assert_array_equal(indices.numpy(), np.argsort(-host, kind="stable")[:, :7])
    np.testing.assert_array_equal(values.numpy(), -np.sort(-host)[:, :7])


def test_long_rows_are_sorted_too(device: str) -> None:
    """On the host, where the device has no kernel for them, and it says so once."""
    host = np.random.default_rng(1).standard_normal(3000).astype(np.float32)
    if device == "strict:0":
        nnc.stack_for(device).engine.builder.announced.discard("argsort")
        with pytest.warns(FallbackWarning, match="argsort has no kernel.*3000 elements"):
            found = nnc.sort(nnc.asarray(host))
    else:
        found = nnc.sort(nnc.asarray(host))
    np.testing.assert_array_equal(found.numpy(), np.sort(host))


def test_gradients_go_where_the_elements_were(device: str) -> None:
    x = nnc.asarray(np.array([[3.0, 1.0, 2.0], [0.5, 4.0, -1.0]], np.float32))
    weights = nnc.asarray(np.array([1.0, 10.0, 100.0], np.float32))
    assert nnc.grad(lambda v: nnc.sum(nnc.sort(v) * weights))(x).tolist() == [[100, 1, 10], [10, 100, 1]]
    assert nnc.grad(lambda v: nnc.sum(nnc.sort(v, axis=0)[0]))(x).tolist() == [[0, 1, 0], [1, 0, 1]]
    assert nnc.grad(lambda v: nnc.sum(nnc.top_k(v, 2).values * weights[:2]))(x).tolist() == [[1, 0, 10], [10, 1, 0]]
    _, pushed = nnc.jvp(lambda v: nnc.sort(v, descending=True), [x], [x * 0 + nnc.arange(3, dtype="float32")])
    assert pushed.tolist() == [[0, 2, 1], [1, 0, 2]]
    second = nnc.hessian(lambda v: nnc.sum(nnc.sort(v) ** 3 * weights))(x[0]).numpy()
    np.testing.assert_allclose(second, np.diag([1800, 6, 120]), rtol=1e-5)


def test_in_batches(device: str) -> None:
    x = nnc.asarray(A)
    np.testing.assert_array_equal(nnc.vmap(lambda r: nnc.sort(r))(x).numpy(), np.sort(A))
    assert nnc.vmap(lambda r: nnc.top_k(r, 2).indices)(x).tolist() == nnc.top_k(x, 2).indices.tolist()
    found = nnc.vmap(lambda r: nnc.lexsort(nnc.stack([r, nnc.abs(r)])))(x)
    np.testing.assert_array_equal(found.numpy(), [np.lexsort([r, np.abs(r)]) for r in A])
    found = nnc.vmap(lambda r: nnc.searchsorted(EDGES, r))(x)
    np.testing.assert_array_equal(found.numpy(), np.searchsorted(EDGES, A))


def test_integers_and_mixed_dtypes() -> None:
    assert nnc.sort(nnc.asarray(K)).dtype == nnc.int32
    assert nnc.searchsorted(nnc.asarray(np.array([0, 2, 4], np.int8)), 2.5).item() == 2
    assert nnc.sort(nnc.asarray([True, False, True])).tolist() == [False, True, True]


def test_errors() -> None:
    x = nnc.asarray(A)
    with fails(ValueError, "axis 2", operator="sort"):
        nnc.sort(x, axis=2)
    with fails(TypeError, "complex64 has no order", operator="argsort"):
        nnc.argsort(nnc.asarray(A.astype(np.complex64)))
    with fails(ValueError, "k 6", "0 to 5", operator="top_k"):
        nnc.top_k(x, 6)
    with fails(ValueError, "k 1.5", operator="top_k"):
        nnc.top_k(x, 1.5)  # type: ignore[arg-type]
    with fails(IndexError, "kth 5", "length 5", operator="partition"):
        nnc.partition(x, 5)
    with fails(ValueError, "side 'middle'", operator="searchsorted"):
        nnc.searchsorted(EDGES, x, side="middle")
    with fails(ValueError, "one axis", operator="searchsorted"):
        nnc.searchsorted(x, x)
    with fails(TypeError, "sorter is float32", operator="searchsorted"):
        nnc.searchsorted(EDGES, x, sorter=EDGES)
    with fails(ValueError, "neither rise nor fall", operator="digitize"):
        nnc.digitize(x, [1, 3, 2])
    with fails(ValueError, "no keys", operator="lexsort"):
        nnc.lexsort(EDGES)
    with fails(TypeError, "no keys", operator="lexsort"):
        nnc.lexsort([])


def test_bins_of_a_tensor_are_searched_once() -> None:
    x, edges = nnc.var_arr("x", (5,)), nnc.var_arr("edges", (4,))
    graph = nnc.export({"x": x, "edges": edges}, {"y": nnc.digitize(x, edges)})
    assert [n.op.name for n in graph.nodes].count("searchsorted") == 1
