"""References of scans against plain loops over Python numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_plugins.conformance.agreement import assert_agree
from tests.operator.host import arguments, call, cases


def better(new, best, larger):
    if math.isnan(best) or math.isnan(new):
        return not math.isnan(best)
    return new > best if larger else new < best


def positions(row, larger):
    best = 0
    for place, number in enumerate(row):
        if place and better(number, row[best], larger):
            best = place
        yield best


def totals(step, start):
    def running(row):
        total = start
        for number in row:
            total = step(total, number)
            yield total

    return running


def log_add_exp(a, b):
    """Of the larger one out, so that nothing overflows."""
    high = max(a, b) if a == a and b == b else math.nan
    return high if math.isinf(high) else high + math.log(math.exp(a - high) + math.exp(b - high))


SCANS = {
    "cumulative_sum": totals(lambda a, b: a + b, 0), "cumulative_prod": totals(lambda a, b: a * b, 1),
    "logcumsumexp": totals(log_add_exp, -math.inf),
    "cummax": lambda row: [row[k] for k in positions(row, True)],
    "cummin": lambda row: [row[k] for k in positions(row, False)],
    "argcummax": lambda row: positions(row, True), "argcummin": lambda row: positions(row, False),
}  # fmt: skip


def recurrence(rows):
    last = 0
    for factor, value in zip(*rows, strict=True):
        last = last * factor + value
        yield last


def by_loops(f, xs, axis, reverse, dtype):
    """f on each row along the axis, from the end if reversed; integers wrap."""
    rows = [np.moveaxis(x, axis, -1) for x in xs]
    out = np.empty(rows[0].shape, dtype)
    for place in np.ndindex(rows[0].shape[:-1]):
        given = [row[place].tolist()[::-1] if reverse else row[place].tolist() for row in rows]
        found = list(f(given if len(given) > 1 else given[0]))
        if dtype.kind in "iu":
            bits = 8 * dtype.itemsize
            found = [n % 2**bits - (2**bits if dtype.kind == "i" and n % 2**bits >= 2 ** (bits - 1) else 0)
                     for n in found]  # fmt: skip
        out[place] = found[::-1] if reverse else found
    return np.ascontiguousarray(np.moveaxis(out, -1, axis))


@pytest.mark.parametrize("name", [*SCANS, "recurrence"])
def test_scans_by_plain_loops(name, rng) -> None:
    for example in cases(name, dtypes=(dt.int64, dt.uint8, dt.float32, dt.float64, dt.complex128)):
        xs, attributes = arguments(example, rng)
        axis, reverse = attributes["axis"], attributes["reverse"]
        result = call(example.op, *xs, axis, reverse)
        expected = by_loops(SCANS.get(name, recurrence), xs, axis, reverse, result.dtype)
        if name.startswith("arg") and reverse:
            expected = xs[0].shape[axis] - 1 - expected
        assert_agree(example.op, result, expected, str(example))


def test_halves_are_folded_in_float32(rng) -> None:
    """In float16 the sum would stop growing at 2048, and pass 65504 on the way to 60000."""
    x = np.ones(5000, np.float16)
    found = call(cases("cumulative_sum")[0].op, x, 0, False)
    assert found.dtype == np.float16
    assert found[-1] == 5000
    swing = np.array([60000, 60000, -60000], np.float16)
    assert call(cases("cumulative_sum")[0].op, swing, 0, False).tolist() == [60000, np.inf, 60000]
