"""References of gathers and scatters against plain loops over single elements."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.base.errors import AttributeValueError, OutOfRangeError, ShapeError
from nnc_core.operator import OPERATORS
from nnc_core.type import Dim, TensorSpec
from nnc_plugins.conformance.agreement import assert_agree
from tests.operator.host import arguments, call, cases, host

DTYPES = (dt.boolean, dt.int32, dt.uint64, dt.bfloat16, dt.float16, dt.float32, dt.float64)
COMBINE = {
    "set": lambda old, new: new, "add": lambda old, new: old + new, "multiply": lambda old, new: old * new,
    "min": lambda old, new: old if old != old or old <= new else new,
    "max": lambda old, new: old if old != old or old >= new else new,
}  # fmt: skip


def source(index, indices, axis, batch):
    """Where in x an element of what `take` gives comes from."""
    count = indices.ndim - batch
    where = indices[(*index[:batch], *index[axis : axis + count])]
    return (*index[:axis], int(where), *index[axis + count :])


def test_take_by_plain_loops(rng) -> None:
    for example in cases("take", dtypes=DTYPES):
        (x, indices), how = arguments(example, rng)
        found = call(example.op, x, indices, *how.values())
        if found.size < 1000:
            expected = np.empty(found.shape, x.dtype)
            for index in np.ndindex(*found.shape):
                expected[index] = x[source(index, indices, **how)]
            assert_agree(example.op, found, expected, str(example))


def test_scatter_by_plain_loops(rng) -> None:
    """In Python numbers: floats of 64 bits, whatever is asked for."""
    for example in cases("scatter", dtypes=DTYPES):
        (x, indices, updates), how = arguments(example, rng)
        if math.prod(updates.shape) > 1000 and x.dtype != dt.float32:
            continue
        mode = how.pop("mode")
        exact = x.dtype.kind in "biu"
        expected = x.copy() if exact else x.astype(np.float64)
        updates_too = updates if exact else updates.astype(np.float64)
        for index in np.ndindex(*updates.shape):
            place = source(index, indices, **how)
            with np.errstate(all="ignore"):
                expected[place] = COMBINE[mode](expected[place], updates_too[index])
        found = call(example.op, x, indices, updates, how["axis"], mode, how["batch"])
        assert_agree(example.op, found, expected.astype(x.dtype), str(example))


def test_halves_are_summed_in_float32() -> None:
    x, where, ones = np.zeros(1, np.float16), np.zeros(4096, np.int64), np.ones(4096, np.float16)
    assert host("scatter", x, where, ones, axis=0, mode="add", batch=0).tolist() == [4096.0]  # alone it stops at 2048


def test_earlier_by_plain_loops(rng) -> None:
    for example in cases("earlier", dtypes=dt.INTEGERS, large=False):
        (x,), _ = arguments(example, rng)
        expected = np.full(x.shape, -1, np.int64)
        for *row, i in np.ndindex(*x.shape):
            expected[(*row, i)] = max((j for j in range(i) if x[(*row, j)] == x[(*row, i)]), default=-1)
        np.testing.assert_array_equal(call(example.op, x), expected, err_msg=str(example))


def test_repeat_index_by_plain_loops(rng) -> None:
    for example in cases("repeat_index", dtypes=dt.INTEGERS):
        (counts,), how = arguments(example, rng)
        expected = [i for i, n in enumerate(counts.tolist()) for _ in range(n)]
        found = call(example.op, counts, how["size"])
        assert found.dtype == np.int64 and found.tolist() == expected


def test_one_hot_by_plain_loops(rng) -> None:
    for example in cases("one_hot", dtypes=(dt.int8, dt.uint64, dt.int32)):
        (indices,), how = arguments(example, rng)
        expected = np.zeros((*indices.shape, how["depth"]), how["dtype"])
        for index in np.ndindex(*expected.shape):
            expected[index] = int(indices[index[:-1]]) == index[-1]
        assert_agree(example.op, call(example.op, indices, *how.values()), expected, str(example))


@pytest.mark.parametrize("name", ["take", "scatter"])
@pytest.mark.parametrize("wrong", [4, -5, 2**40])
def test_an_index_out_of_range_is_an_error(name: str, wrong: int) -> None:
    x, indices = np.ones((2, 4)), np.array([[0, 1], [wrong, 0]])
    more = (np.ones((2, 2)),) * (name == "scatter")
    how = {"axis": 1, "batch": 1} | ({"mode": "max"} if more else {})
    with pytest.raises(OutOfRangeError, match=f"{name}: index {wrong} is out of range for an axis of length 4"):
        host(name, x, indices, *more, **how)


def test_counts_that_are_none() -> None:
    with pytest.raises(AttributeValueError, match="count -1 is negative"):
        host("repeat_index", np.array([2, -1]), size=1)
    with pytest.raises(ShapeError, match="add up to 3, not to 4"):
        host("repeat_index", np.array([2, 1]), size=4)


def test_named_dimensions_may_be_shared() -> None:
    n, m = Dim("n"), Dim("m")
    x, indices = TensorSpec((n, 3, m), dt.float32), TensorSpec((n, 2), dt.int64)
    assert OPERATORS["take"].infer(x, indices, 1, 1) == TensorSpec((n, 2, m), dt.float32)
    with pytest.raises(ShapeError, match="differ in their first 1 dimensions"):
        OPERATORS["take"].infer(x, TensorSpec((m, 2), dt.int64), 1, 1)
    assert OPERATORS["repeat_index"].infer(TensorSpec((n,), dt.int32), m) == TensorSpec((m,), dt.int64)
