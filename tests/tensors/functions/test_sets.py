"""Distinct values and sets against NumPy, on every device."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.faults import fails

NAN = np.nan
ARRAYS: dict[str, np.ndarray] = {
    "integers": np.array([[3, 1, 2, 1], [1, 3, 3, 0]], np.int32), "one": np.array([5.0], np.float32),
    "floats": np.array([2.0, NAN, -0.0, 0.0, NAN, 2.0, -1.0], np.float32), "none": np.zeros(0, np.float32),
    "booleans": np.array([True, False, True]), "rows": np.array([[1, 2], [0, 5], [1, 2], [1, 0]], np.int64),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_unique_equals_numpy(device: str, name: str) -> None:
    host = ARRAYS[name]
    for equal_nan in (True, False):
        found = nnc.unique(nnc.asarray(host), True, True, True, equal_nan=equal_nan)
        wanted = np.unique(host, True, True, True, equal_nan=equal_nan)
        for a, b in zip(found, wanted, strict=True):
            assert a.device.id == device
            assert a.shape == b.shape
            np.testing.assert_array_equal(a.numpy(), b)
    np.testing.assert_array_equal(nnc.unique(nnc.asarray(host)).numpy(), np.unique(host))


@pytest.mark.parametrize(("name", "axis"), [("rows", 0), ("rows", 1), ("integers", -1), ("integers", 0)])
def test_unique_slices(device: str, name: str, axis: int) -> None:
    host = ARRAYS[name]
    found = nnc.unique(nnc.asarray(host), True, True, True, axis=axis)
    for a, b in zip(found, np.unique(host, True, True, True, axis=axis), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.reshape(a.shape))


def test_slices_of_three_axes(device: str) -> None:
    host = np.random.default_rng(0).integers(0, 2, (9, 2, 1)).astype(np.float32)
    found = nnc.unique(nnc.asarray(host), return_counts=True, axis=0)
    for a, b in zip(found, np.unique(host, return_counts=True, axis=0), strict=True):
        np.testing.assert_array_equal(a.numpy(), b)


def test_unique_consecutive(device: str) -> None:
    x = nnc.asarray(np.array([1, 1, 2, 2, 2, 1, 3], np.int32))
    values, numbers, counts = nnc.unique_consecutive(x, True, True)
    assert (values.tolist(), numbers.tolist(), counts.tolist()) == ([1, 2, 1, 3], [0, 0, 1, 1, 1, 2, 3], [2, 3, 1, 1])
    rows = nnc.asarray(np.array([[1, 2], [1, 2], [0, 2], [1, 2]]))
    assert nnc.unique_consecutive(rows, axis=0).tolist() == [[1, 2], [0, 2], [1, 2]]
    assert nnc.unique_consecutive(rows).tolist() == [1, 2, 1, 2, 0, 2, 1, 2]
    assert nnc.unique_consecutive(x[:0]).tolist() == []


SETS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "isin": (nnc.isin, np.isin), "not in": (lambda a, b: nnc.isin(a, b, invert=True),
                                           lambda a, b: np.isin(a, b, invert=True)),
    "union1d": (nnc.union1d, np.union1d), "intersect1d": (nnc.intersect1d, np.intersect1d),
    "setdiff1d": (nnc.setdiff1d, np.setdiff1d), "setxor1d": (nnc.setxor1d, np.setxor1d),
}  # fmt: skip
PAIRS = [("integers", "rows"), ("floats", "one"), ("floats", "floats"), ("none", "floats"), ("floats", "none"),
         ("booleans", "booleans")]  # fmt: skip


@pytest.mark.parametrize("name", SETS)
def test_sets_equal_numpy(device: str, name: str) -> None:
    ours, theirs = SETS[name]
    for first, second in PAIRS:
        a, b = ARRAYS[first], ARRAYS[second]
        found, wanted = ours(nnc.asarray(a), nnc.asarray(b)), theirs(a, b)
        assert found.shape == wanted.shape, (first, second)
        np.testing.assert_array_equal(found.numpy(), wanted)


def test_what_is_not_in_the_second_keeps_its_dtype() -> None:
    found = nnc.setdiff1d(np.array([5, 44, -1], np.int8), np.array([300, -1]))
    assert found.dtype == nnc.int8 and found.tolist() == [5, 44]
    assert nnc.setdiff1d(np.array([2**24 + 1]), np.float32([2**24])).tolist() == [2**24 + 1]


def test_where_common_values_are(device: str) -> None:
    a, b = ARRAYS["integers"], ARRAYS["rows"]
    found = nnc.intersect1d(nnc.asarray(a), nnc.asarray(b), return_indices=True)
    for x, y in zip(found, np.intersect1d(a, b, return_indices=True), strict=True):
        np.testing.assert_array_equal(x.numpy(), y)


@pytest.mark.parametrize("name", ["unique", "union1d", "setdiff1d"])
def test_in_every_mode(device: str, name: str) -> None:
    """The number of results is known when the data are."""
    functions: dict[str, Callable[..., Any]] = {
        "unique": lambda a, b: nnc.unique(a, return_inverse=True)[1] + nnc.sum(nnc.unique(b)),
        "union1d": lambda a, b: nnc.union1d(a, b) * 2, "setdiff1d": lambda a, b: nnc.setdiff1d(a, b) + 1,
    }  # fmt: skip
    a, b = (nnc.asarray(ARRAYS[n].astype(np.float32)) for n in ("integers", "one"))
    eager = functions[name](a, b).tolist()
    with nnc.deferred():
        late = functions[name](a, b)
    assert late.tolist() == eager
    assert nnc.jit(functions[name])(a, b).tolist() == eager


def test_unique_of_something_assembled() -> None:
    for order in product([0, 1], repeat=4):
        host = np.array(order, np.float32)
        assert nnc.unique(nnc.asarray(host)).tolist() == sorted(set(order))


def test_gradients_go_to_the_first_of_equals() -> None:
    x = nnc.asarray(np.array([2.0, 5.0, 2.0, 1.0], np.float32))
    assert nnc.grad(lambda v: nnc.sum(nnc.unique(v) ** 2))(x).tolist() == [4, 10, 0, 2]


def test_errors() -> None:
    x = nnc.asarray(ARRAYS["rows"])
    with fails(ValueError, "axis 2", operator="unique"):
        nnc.unique(x, axis=2)
    with fails(TypeError, "has no order"):
        nnc.unique(nnc.asarray(np.array([1j])))
    with fails(TypeError, "no common integer dtype", operator="isin"):
        nnc.isin(nnc.asarray(np.array([1], np.uint64)), nnc.asarray(np.array([1], np.int64)))
