"""References of movement against the place that each single element comes from."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_plugins.conformance.agreement import assert_agree
from tests.operator.host import arguments, call, cases


def moved(example, rng, place) -> None:
    """`place(index, *inputs, **attributes)` names the input and the index that an element comes from, or a number."""
    inputs, attributes = arguments(example, rng)
    result = call(example.op, *inputs, *attributes.values())
    expected = np.empty(result.shape, result.dtype)
    for index in np.ndindex(*result.shape):
        expected[index] = place(index, *inputs, **attributes)
    assert_agree(example.op, result, expected, str(example))


def padded(index, x, low, high, interior, value):
    source = []
    for i, a, k, n in zip(index, low, interior, x.shape, strict=True):
        if i < a or (i - a) % (k + 1) or (i - a) // (k + 1) >= n:
            return value
        source.append((i - a) // (k + 1))
    return x[tuple(source)]


def updated(index, x, value, start, step):
    source = []
    for i, a, k, n in zip(index, start, step, value.shape, strict=True):
        if i < a or (i - a) % k or (i - a) // k >= n:
            return x[index]
        source.append((i - a) // k)
    return value[tuple(source)]


def joined(index, *xs, axis):
    place = list(index)
    for x in xs:
        if place[axis] < x.shape[axis]:
            return x[tuple(place)]
        place[axis] -= x.shape[axis]
    raise AssertionError("no input holds this element")


def chosen(index, condition, a, b):
    shape = np.broadcast_shapes(condition.shape, a.shape, b.shape)
    condition, a, b = (np.broadcast_to(x, shape)[index] for x in (condition, a, b))
    return a if condition else b


MOVES = {
    "pad": padded, "update_slice": updated, "concat": joined,
    "slice": lambda index, x, start, stop, step: x[
        tuple(a + i * k for i, a, k in zip(index, start, step, strict=True))],
    "flip": lambda index, x, axes: x[tuple(n - 1 - i if a in axes else i for a, (i, n) in
                                          enumerate(zip(index, x.shape, strict=True)))],
    "permute": lambda index, x, axes: x[tuple(index[axes.index(a)] for a in range(len(axes)))],
    "broadcast_to": lambda index, x, shape: x[tuple(
        0 if n == 1 else i for i, n in zip(index[len(shape) - x.ndim :], x.shape, strict=True))],
    "reshape": lambda index, x, shape: list(x.flat)[int(np.ravel_multi_index(index, shape)) if shape else 0],
    "where": chosen,
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_movement_by_plain_loops(name, rng) -> None:
    for example in cases(name, dtypes=(dt.boolean, dt.int32, dt.float32)):
        if all(math.prod(x.shape) < 5000 for x in arguments(example, rng)[0]):
            moved(example, rng, MOVES[name])
