"""References of sorting and searching against Python's sorting, comparisons one by one, and SciPy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from tests.operator.host import arguments, call, cases

DTYPES = (dt.boolean, dt.int8, dt.uint64, dt.bfloat16, dt.float32, dt.float64)


def key(number):
    """NaN above everything."""
    return (1, 0) if number != number else (0, number)


def order(row, descending=False):
    """Equal ones as they come, either way."""
    return sorted(range(len(row)), key=lambda i: key(row[i]), reverse=descending)


def rows_of(x, axis):
    moved = np.moveaxis(x, axis, -1)
    for place in np.ndindex(moved.shape[:-1]):
        yield place, moved[place].tolist()


def numbers(array):
    return array.astype(np.float64) if array.dtype == dt.bfloat16 else array


@pytest.mark.parametrize("name", ["argsort", "arg_top_k"])
def test_positions(name, rng) -> None:
    for example in cases(name, dtypes=DTYPES):
        (x,), given = arguments(example, rng)
        result = np.moveaxis(call(example.op, x, *given.values()), given["axis"], -1)
        for place, row in rows_of(numbers(x), given["axis"]):
            wanted = order(row, given.get("descending", given.get("largest", False)))[: given.get("k")]
            assert result[place].tolist() == wanted, str(example)


def test_sort_is_what_argsort_points_at(rng) -> None:
    for example in cases("sort", dtypes=DTYPES):
        (x,), given = arguments(example, rng)
        result = np.moveaxis(call(example.op, x, *given.values()), given["axis"], -1)
        for place, row in rows_of(numbers(x), given["axis"]):
            wanted = [row[i] for i in order(row, given["descending"])]
            found = numbers(result)[place].tolist()
            assert [key(n) for n in found] == [key(n) for n in wanted], str(example)
            assert [math.copysign(1, n) for n in found if n == n] == [math.copysign(1, n) for n in wanted if n == n]


def test_lexsort_is_a_sort_of_tuples(rng) -> None:
    for example in cases("lexsort", dtypes=DTYPES):
        (keys,), given = arguments(example, rng)
        result = np.moveaxis(call(example.op, keys, *given.values()), given["axis"], -1)
        moved = np.moveaxis(numbers(keys), given["axis"] + 1, -1)
        for place in np.ndindex(moved.shape[1:-1]):
            columns = [moved[(k, *place)].tolist() for k in reversed(range(len(moved)))]
            wanted = sorted(range(moved.shape[-1]), key=lambda i: [key(c[i]) for c in columns])
            assert result[place].tolist() == wanted, str(example)


def test_searchsorted_counts_what_lies_before(rng) -> None:
    for example in cases("searchsorted", dtypes=DTYPES, large=False):
        (x, values), given = arguments(example, rng)
        result = call(example.op, x, values, *given.values())
        assert result.shape == values.shape
        elements = [key(n) for n in numbers(x).tolist()]
        assert elements == sorted(elements), example
        for found, value in zip(result.reshape(-1).tolist(), numbers(values).reshape(-1).tolist(), strict=True):
            before = itertools.takewhile(
                lambda n: n <= key(value) if given["right"] else n < key(value), elements)  # noqa: B023
            assert found == sum(1 for _ in before), str(example)
