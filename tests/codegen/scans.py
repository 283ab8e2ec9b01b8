"""Nests with scans: what is folded so far, read at each inner point.  Compared with plain loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp, inf, log1p, nan

import ml_dtypes
import numpy as np

from nnc_core.base.dtype import boolean, float16, float32, float64, int32, int64
from nnc_core.base.loopnest import FACTORED
from tests.codegen.exactly import multiplied_and_added
from tests.codegen.nests import Case, Values, Writer, at

bfloat16 = np.dtype(ml_dtypes.bfloat16)
ROWS = np.array([
    [1, nan, 3, nan, 2], [inf, 1, inf, 2, -inf], [-inf, -inf, 0, -inf, 1], [2, 2, 1, 3, 3], [0.0, -0.0, 0.0, 1, -0.0],
])  # fmt: skip


def scan_cases() -> Iterator[Case]:
    rng = np.random.default_rng(3)
    for dtype in (float16, bfloat16, float32, float64, int32, np.dtype(np.uint8)):
        for kind in ("sum", "product", "maximum", "minimum", "argmax", "argmin", "recurrence", "dot"):
            yield scanned(kind, (rng.standard_normal((4, 3, 5)) * 4).astype(dtype), "random")
    for kind in ("maximum", "minimum", "argmax", "argmin", "sum"):
        yield scanned(kind, ROWS.reshape(5, 1, 5), "specials")
    for kind in ("all", "any", "maximum"):
        yield scanned(kind, rng.random((3, 2, 3)) < 0.5, "random")
    for dtype in (float32, float64):
        yield scanned("logsumexp", (rng.standard_normal((4, 3, 5)) * 40).astype(dtype), "random", ulp=4)
        yield scanned("logsumexp", ROWS.reshape(5, 1, 5).astype(dtype), "specials", ulp=4)
    yield scanned("sum", np.zeros((2, 0, 3), np.float32), "no points")
    yield in_place(rng)
    yield two_at_once(rng)
    yield half_sum(rng)
    yield used_afterwards(rng)


def log_add_exp(a: float, b: float) -> float:
    if a == b or a != a or b != b:
        return a + b if a != a or b != b else a + float(np.log(2))
    return max(a, b) + log1p(exp(-abs(a - b)))


def running(kind: str, row: Values) -> Iterator[object]:
    """The contract as a plain loop over one row."""
    best, total = 0, np.array({"product": 1, "all": 1, "logsumexp": -inf}.get(kind, 0), row.dtype)
    steps: dict[str, Callable[[Values, Values], object]] = {
        "sum": np.add, "product": np.multiply, "all": np.logical_and, "any": np.logical_or,
        "logsumexp": lambda a, b: row.dtype.type(log_add_exp(float(a), float(b))),
        "recurrence": lambda a, b: a * b + b,
        "dot": lambda a, b: multiplied_and_added(b, b, a),
    }  # fmt: skip
    for place, value in enumerate(row):
        if kind in steps:
            total = np.asarray(steps[kind](total, value)).astype(row.dtype)
            yield total
            continue
        better = value > row[best] if kind in ("maximum", "argmax") else value < row[best]
        if row[best] == row[best] and (better or value != value):
            best = place
        yield best if kind.startswith("arg") else row[best]


def scanned(kind: str, x: Values, note: str, ulp: float = 0.0) -> Case:
    """Over the two last axes; afterwards the last result is stored beside."""
    rows, n0, n1 = x.shape
    result = int64 if kind in ("argmax", "argmin") else x.dtype
    n = Writer(f"running {kind} {x.dtype} {note}", (rows,), [(x.dtype, False), (result, True), (result, True)])
    n.stage(n0, n1)
    subscripts = at({0: n0 * n1}, 1), at({1: n1, 2: 1}, 1)
    value = n.load(0, *subscripts)
    total = n.reduce(kind, value, x.dtype, value if kind in FACTORED else None)
    n.store(1, total, *subscripts)
    n.stage()
    n.store(2, total, at({0: 1}, 1))
    with np.errstate(all="ignore"):
        every = np.array([list(running(kind, row)) for row in x.reshape(rows, n0 * n1)], result)
    every = every.reshape(rows, n0 * n1)
    last = every[:, -1] if n0 * n1 else np.zeros(rows, result)
    arrays = [x, np.zeros(x.shape, result), np.zeros(rows, result)]
    return Case(n.build(), arrays, {1: every, 2: last}, ulp=ulp)


def in_place(rng: np.random.Generator) -> Case:
    """Each element is read just before it is written."""
    x = rng.integers(-9, 9, (3, 7))
    n = Writer("running sum in place", (3,), [(int64, True)])
    n.stage(7)
    subscripts = at({0: 7}, 1), at({1: -1}, 1, offset=6)
    n.store(0, n.reduce("sum", n.load(0, *subscripts), int64), *subscripts)
    return Case(n.build(), [x], {0: x[:, ::-1].cumsum(1)[:, ::-1]})


def two_at_once(rng: np.random.Generator) -> Case:
    """A running mean: two reductions, and instructions that read both and the body."""
    x = rng.integers(-9, 9, (2, 6)).astype(np.float32)
    n = Writer("running mean", (2,), [(float32, False), (float32, True)])
    n.stage(6)
    subscripts = at({0: 6}, 1), at({1: 1}, 1)
    value = n.load(0, *subscripts)
    total, largest = n.reduce("sum", value, float32), n.reduce("maximum", value, float32)
    count = n.op("add", int64, n.op("axis", int64, axis=1), n.constant(1, int64))
    mean = n.op("divide", float32, total, n.op("cast", float32, count))
    n.store(1, n.op("subtract", float32, n.op("add", float32, mean, largest), value), *subscripts)
    means = x.cumsum(1) / np.arange(1, 7, dtype=np.float32)
    return Case(n.build(), [x, np.zeros_like(x)], {1: means + np.maximum.accumulate(x, 1) - x})


def half_sum(rng: np.random.Generator) -> Case:
    """Summed in float32, rounded where it is stored."""
    x = rng.standard_normal((2, 40)).astype(float16)
    n = Writer("running half sum", (2,), [(float16, False), (float16, True)])
    n.stage(40)
    subscripts = at({0: 40}, 1), at({1: 1}, 1)
    total = n.reduce("sum", n.op("cast", float32, n.load(0, *subscripts)), float32)
    n.store(1, n.op("cast", float16, total), *subscripts)
    return Case(n.build(), [x, np.zeros_like(x)], {1: x.astype(np.float32).cumsum(1, dtype=np.float32).astype(float16)})


def used_afterwards(rng: np.random.Generator) -> Case:
    """The stage after a scan reads the whole, and what comes later is numbered right; exp is expanded in between."""
    x = rng.integers(0, 5, (3, 4)).astype(float64)
    n = Writer("shares", (3,), [(float64, False), (float64, True), (boolean, True)])
    n.stage(4)
    subscripts = at({0: 4}, 1), at({1: 1}, 1)
    total = n.reduce("sum", n.load(0, *subscripts), float64)
    n.store(1, n.op("exp", float64, n.op("negative", float64, total)), *subscripts)
    n.stage(4)
    n.store(2, n.op("less", boolean, n.load(0, *subscripts), total), *subscripts)
    expected = {1: np.exp(-x.cumsum(1)), 2: x < x.sum(1, keepdims=True)}
    return Case(n.build(), [x, np.zeros_like(x), np.zeros(x.shape, bool)], expected, ulp=4)
