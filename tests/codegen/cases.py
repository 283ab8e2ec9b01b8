"""Hand-written nests with what NumPy, or a loop written here, says that they compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np

from nnc_core.base.dtype import boolean, float16, float32, float64, int32, int64
from tests.codegen.nests import Case, Values, Writer, at
from tests.codegen.scans import scan_cases

bfloat16 = np.dtype(ml_dtypes.bfloat16)
NAN, INF = float("nan"), float("inf")


def movement_cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    yield broadcast_and_flip(rng)
    yield strided_slice(rng)
    yield padded(rng)
    yield repeated()
    yield offset_bfloat16()
    yield from (gathered(rng, index) for index in (np.int64, np.int32, np.uint8, np.uint64))
    yield scattered_store()
    yield far_away()
    yield positions()
    yield constants()
    yield one_number()
    yield no_points()
    yield booleans()


def broadcast_and_flip(rng: np.random.Generator) -> Case:
    x, y = rng.standard_normal((3, 1, 5), np.float32), rng.standard_normal((4, 5), np.float32)
    n = Writer("broadcast and flip", (3, 4, 5), [(float32, False), (float32, False), (float32, True)])
    a = n.load(0, at({0: 1}, 5), at({1: 1}, 0), at({2: 1}, 1))
    b = n.load(1, at({1: -1}, 5, offset=3), at({2: -1}, 1, offset=4))
    n.store(2, n.op("add", float32, a, b), at({0: 1}, 20), at({1: 1}, 5), at({2: 1}, 1))
    return Case(n.build(), [x, y, np.zeros((3, 4, 5), np.float32)], {2: x + y[::-1, ::-1]})


def strided_slice(rng: np.random.Generator) -> Case:
    x = rng.standard_normal((7, 9))
    n = Writer("int", (3, 1, 4), [(float64, False), (float64, True)])  # a keyword of C, for a name
    a = n.load(0, at({0: 2}, 9), at({2: 2}, 1), offset=10)
    n.store(1, n.op("multiply", float64, a, a), at({0: -4}, 1, offset=8), at({2: 1}, 1))
    return Case(n.build(), [x, np.zeros((3, 4))], {1: np.ascontiguousarray((x[1:7:2, 1:9:2] ** 2)[::-1])})


def padded(rng: np.random.Generator) -> Case:
    x = rng.integers(-9, 9, (3, 4)).astype(np.int32)
    n = Writer("pad", (6, 8), [(int32, False), (int32, True), (boolean, True)])
    subscripts = (
        at({0: 1}, 4, offset=-1, extent=3, checked=True),
        at({1: 1}, 1, offset=-3, extent=4, checked=True),
    )
    a, inside = n.load(0, *subscripts, fill=-7), n.valid(0, *subscripts)
    n.store(1, a, at({0: 1}, 8), at({1: 1}, 1))
    n.store(2, inside, at({0: 1}, 8), at({1: 1}, 1))
    widths = ((1, 2), (3, 1))
    expected = {1: np.pad(x, widths, constant_values=-7), 2: np.pad(np.ones((3, 4), bool), widths)}
    return Case(n.build(), [x, np.zeros((6, 8), np.int32), np.zeros((6, 8), bool)], expected)


def repeated() -> Case:
    """An unchecked division rounds down, below zero too."""
    x = np.arange(5, dtype=np.float32)
    n = Writer("repeat", (9,), [(float32, False), (float32, True)])
    n.store(1, n.load(0, at({0: 1}, 1, offset=-4, divisor=2), offset=2), at({0: 1}, 1))
    return Case(n.build(), [x, np.zeros(9, np.float32)], {1: x[(np.arange(9) - 4) // 2 + 2]})


def offset_bfloat16() -> Case:
    x = np.arange(10).astype(bfloat16)
    n = Writer("bfloat16", (4,), [(bfloat16, False), (bfloat16, True)])
    third = n.op("divide", bfloat16, n.load(0, at({0: 2}, 1), offset=3), n.constant(3.0, bfloat16))
    n.store(1, third, at({0: 1}, 1))
    return Case(n.build(), [x, np.zeros(4, bfloat16)], {1: x[3::2] / bfloat16.type(3)})


def gathered(rng: np.random.Generator, dtype: type[np.integer]) -> Case:
    """Rows taken by an index that may point anywhere; outside, the fill value."""
    x = rng.standard_normal((5, 3), np.float32)
    index = np.array([4, 0, 9, 2, 4, 5, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    if np.dtype(dtype).itemsize == 8:
        index[2] = 2**32 + 1  # would be 1 in 32 bits
    n = Writer(f"gather by {np.dtype(dtype)}", (8, 3), [(float32, False), (dtype, False), (float32, True)])
    i = n.load(1, at({0: 1}, 1))
    row = n.load(0, at({}, 3, extent=5, checked=True, gather=i), at({1: 1}, 1), fill=NAN)
    n.store(2, row, at({0: 1}, 3), at({1: 1}, 1))
    rows = [x[int(k)] if 0 <= int(k) < 5 else np.full(3, NAN, np.float32) for k in index]
    return Case(n.build(), [x, index, np.zeros((8, 3), np.float32)], {2: np.array(rows)})


def scattered_store() -> Case:
    """A checked store does nothing outside; a gathered one goes where it is sent."""
    x, index = np.arange(1, 6, dtype=np.int64), np.array([3, -1, 0, 7, 5], np.int64)
    n = Writer("scatter", (5,), [(int64, False), (int64, False), (int64, True)])
    value, to = n.load(0, at({0: 1}, 1)), n.load(1, at({0: 1}, 1))
    n.store(2, value, at({}, 1, extent=6, checked=True, gather=to))
    return Case(n.build(), [x, index, np.full(6, -1)], {2: np.array([3, -1, -1, 1, -1, 5])})


def far_away() -> Case:
    """Subscripts that need 64 bits: in 32, each would come back to 0 and be valid."""
    n = Writer("far away", (4,), [(float32, False), (float32, True)])
    value = n.load(0, at({0: 2**32}, 1, extent=1, checked=True), fill=-1.0)
    n.store(1, value, at({0: 1}, 1))
    expected = np.array([7, -1, -1, -1], np.float32)
    return Case(n.build(), [np.array([7], np.float32), np.zeros(4, np.float32)], {1: expected})


CONSTANTS = [
    (float32, [0.1, -0.0, NAN, -INF, 1e-45]), (float64, [0.1, 5e-324, INF, -2.5]), (float16, [0.1, 1e-7, INF]),
    (bfloat16, [0.1, NAN, -3e38]), (boolean, [True, False]), (int64, [-(2**63), 2**63 - 1]),
    (int32, [-(2**31), 2**31 - 1]), (np.dtype(np.int8), [-128, 127]), (np.dtype(np.uint64), [2**64 - 1, 2**63]),
    (np.dtype(np.uint16), [65535]),
]  # fmt: skip


def constants() -> Case:
    """Every kind of literal, at a nest without outer axes."""
    n = Writer("constants!", (), [(dtype, True) for dtype, _ in CONSTANTS])
    for place, (dtype, literals) in enumerate(CONSTANTS):
        for index, literal in enumerate(literals):
            n.store(place, n.constant(literal, dtype), offset=index)
    expected = {place: np.array(literals).astype(d) for place, (d, literals) in enumerate(CONSTANTS)}
    return Case(n.build(), [np.zeros_like(array) for array in expected.values()], expected)


def one_number() -> Case:
    """One outer point, several axes of length one."""
    n = Writer("one number", (1, 1), [(float32, False), (float32, True)])
    n.store(1, n.load(0, at({0: 3}, 2**40, offset=0), at({1: 1}, 1), offset=2), at({0: 1}, 1))
    x = np.arange(3, dtype=np.float32)
    return Case(n.build(), [x, np.zeros(1, np.float32)], {1: x[2:]})


def no_points() -> Case:
    n = Writer("no points", (3, 0), [(float32, False), (float32, True)])
    n.store(1, n.load(0, at({0: 1}, 1)), at({0: 1}, 1))
    return Case(n.build(), [np.zeros(0, np.float32), np.ones(3, np.float32)], {1: np.ones(3, np.float32)})


def positions() -> Case:
    n = Writer("positions", (2, 3), [(int64, True), (int64, True)])
    i, j = n.op("axis", int64, axis=0), n.op("axis", int64, axis=1)
    n.store(0, n.op("multiply", int64, i, j), at({0: 3}, 1), at({1: 1}, 1))
    n.stage(4)
    k = n.op("axis", int64, axis=2)
    total = n.reduce("sum", n.op("add", int64, k, i), int64)
    n.stage()
    n.store(1, total, at({0: 3, 1: 1}, 1))
    rows, columns = np.indices((2, 3))
    return Case(n.build(), [np.zeros((2, 3), np.int64)] * 2, {0: rows * columns, 1: 6 + 4 * rows})


def booleans() -> Case:
    """A byte other than 0 is true; a stored truth is the byte 1."""
    x = np.array([0, 1, 2, 255], np.uint8).view(bool)
    n = Writer("booleans", (4,), [(boolean, False), (boolean, True), (int32, True)])
    value = n.load(0, at({0: 1}, 1))
    n.store(1, n.op("bitwise_invert", boolean, value), at({0: 1}, 1))
    n.store(2, n.op("cast", int32, value), at({0: 1}, 1))
    return Case(n.build(), [x, np.zeros(4, bool), np.zeros(4, np.int32)],
                {1: np.array([True, False, False, False]), 2: np.array([0, 1, 1, 1], np.int32)})  # fmt: skip


def reduction_cases() -> Iterator[Case]:
    rng = np.random.default_rng(1)
    for dtype in (float16, bfloat16, float32, float64, int32, np.dtype(np.uint8)):
        for kind in ("sum", "product", "maximum", "minimum", "argmax", "argmin"):
            yield reduced(kind, (rng.standard_normal((6, 4, 5)) * 4).astype(dtype), dtype)
    for kind in ("all", "any", "maximum", "argmin"):
        yield reduced(kind, rng.random((8, 2, 3)) < 0.3, boolean)
    for dtype in (float16, bfloat16, float32, float64):
        for kind in ("maximum", "minimum", "argmax", "argmin"):
            yield reduced(kind, special_rows().astype(dtype), dtype, "specials")
    for kind in ("sum", "product", "maximum", "minimum", "all", "any", "argmax", "argmin"):
        dtype = boolean if kind in ("all", "any") else float32
        yield reduced(kind, np.zeros((3, 0, 2), dtype), dtype, "no points")
    yield reduced("minimum", np.zeros((3, 2, 0), np.int32), int32, "no points")
    yield reduced("sum", np.zeros((0, 2, 2), np.float32), float32, "no outer points")
    yield reduced("sum", rng.standard_normal((1, 300, 301), np.float32), float32, "long")
    yield reduced("argmax", rng.integers(0, 40, (1, 300, 301)).astype(np.float32), float32, "long")
    yield wide_sum(rng)
    yield softmax(rng)
    yield in_place_prefix_sum()


def special_rows() -> Values:
    rows = [
        [1, NAN, 3, NAN], [INF, 1, INF, 2], [-INF] * 4, [2, 2, 1, 1], [0.0, -0.0, 0.0, -0.0],
        [-0.0, 0.0, -0.0, 0.0], [NAN, 5, 6, -7], [1, 2, 3, NAN], [-INF, NAN, INF, 0],
    ]  # fmt: skip
    return np.array(rows).reshape(9, 2, 2)


def fold(kind: str, row: Values) -> object:
    """The contract once more, as a plain loop over one row."""
    if kind in ("argmax", "argmin"):
        best = 0
        for place in range(1, len(row)):
            better = row[place] > row[best] if kind == "argmax" else row[place] < row[best]
            if row[best] == row[best] and (better or row[place] != row[place]):
                best = place
        return best
    if kind in ("maximum", "minimum"):
        return row[fold("arg" + kind[:3], row)] if len(row) else empty_extreme(kind, row.dtype)
    start = {"sum": 0, "product": 1, "all": 1, "any": 0}[kind]
    step: Callable[[object, object], object] = {
        "sum": np.add, "product": np.multiply, "all": np.logical_and, "any": np.logical_or,
    }[kind]  # fmt: skip
    total: object = np.array(start, row.dtype)
    with np.errstate(all="ignore"):
        for value in row:
            total = step(total, value)
    return total


def empty_extreme(kind: str, dtype: np.dtype) -> object:
    if dtype.kind == "i":
        return np.iinfo(dtype).min if kind == "maximum" else np.iinfo(dtype).max
    return -INF if kind == "maximum" else INF


def reduced(kind: str, x: Values, dtype: np.dtype, note: str = "random") -> Case:
    """Fold the two last axes, then an epilogue that adds the result to itself or stores it."""
    rows, n0, n1 = x.shape
    result = int64 if kind in ("argmax", "argmin") else dtype
    n = Writer(f"{kind} {dtype} {note}", (rows,), [(dtype, False), (result, True)])
    n.stage(n0, n1)
    value = n.load(0, at({0: n0 * n1}, 1), at({1: n1, 2: 1}, 1))
    total = n.reduce(kind, value, dtype)
    n.stage()
    n.store(1, total if result == boolean else n.op("add", result, total, total), at({0: 1}, 1))
    folded = np.array([fold(kind, row) for row in x.reshape(rows, n0 * n1)]).astype(result)
    with np.errstate(all="ignore"):
        expected = folded if result == boolean else folded + folded
    return Case(n.build(), [x, np.zeros(rows, result)], {1: expected})


def wide_sum(rng: np.random.Generator) -> Case:
    """float16 values summed in float32."""
    x = rng.standard_normal((5, 70)).astype(float16)
    n = Writer("wide sum", (5,), [(float16, False), (float32, True)])
    n.stage(70)
    total = n.reduce("sum", n.load(0, at({0: 1}, 70), at({1: 1}, 1)), float32)
    n.stage()
    n.store(1, total, at({0: 1}, 1))
    expected = np.add.accumulate(x.astype(np.float32), axis=1)[:, -1]
    return Case(n.build(), [x, np.zeros(5, np.float32)], {1: expected})


def softmax(rng: np.random.Generator) -> Case:
    """Three stages; the last stores at inner points and works in place."""
    x = rng.standard_normal((4, 11))
    n = Writer("softmax", (4,), [(float64, True)])
    subscripts = at({0: 1}, 11), at({1: 1}, 1)
    n.stage(11)
    largest = n.reduce("maximum", n.load(0, *subscripts), float64)
    n.stage(11)
    grown = n.op("exp", float64, n.op("subtract", float64, n.load(0, *subscripts), largest))
    total = n.reduce("sum", grown, float64)
    n.stage(11)
    grown = n.op("exp", float64, n.op("subtract", float64, n.load(0, *subscripts), largest))
    n.store(0, n.op("divide", float64, grown, total), *subscripts)
    exact = np.exp(x - x.max(1, keepdims=True))
    return Case(n.build(), [x], {0: exact / exact.sum(1, keepdims=True)}, ulp=8)


def in_place_prefix_sum() -> Case:
    """A stage that reads what its earlier inner points wrote."""
    x = np.arange(12, dtype=np.int64).reshape(3, 4)
    n = Writer("prefix sum", (3,), [(int64, True)])
    n.stage(3)
    before, here = n.load(0, at({0: 4, 1: 1}, 1)), n.load(0, at({0: 4, 1: 1}, 1, offset=1))
    n.store(0, n.op("add", int64, before, here), at({0: 4, 1: 1}, 1, offset=1))
    return Case(n.build(), [x], {0: x.cumsum(1)})


def contraction_cases() -> Iterator[Case]:
    rng = np.random.default_rng(2)
    yield matmul(rng)
    for stride, dilation, padding in ((1, 1, 0), (2, 1, 1), (2, 3, 2), (3, 2, 4)):
        yield conv_backward(rng, stride, dilation, padding)


def matmul(rng: np.random.Generator) -> Case:
    """a @ b.T + bias, in whole numbers, so that the order of the sum does not matter."""
    a, b = rng.integers(-9, 9, (7, 5)).astype(np.float32), rng.integers(-9, 9, (6, 5)).astype(np.float32)
    bias = np.arange(6, dtype=np.float32)
    n = Writer("matmul", (7, 6), [(float32, False)] * 3 + [(float32, True)])
    n.stage(5)
    left, right = n.load(0, at({0: 1}, 5), at({2: 1}, 1)), n.load(1, at({1: 1}, 5), at({2: 1}, 1))
    total = n.reduce("sum", n.op("multiply", float32, left, right), float32)
    n.stage()
    sum_ = n.op("add", float32, total, n.load(2, at({1: 1}, 1)))
    n.store(3, sum_, at({0: 1}, 6), at({1: 1}, 1))
    return Case(n.build(), [a, b, bias, np.zeros((7, 6), np.float32)], {3: a @ b.T + bias})


def conv_backward(rng: np.random.Generator, stride: int, dilation: int, padding: int) -> Case:
    """The input's gradient of a 1-d convolution: output position (i + padding - dilation * k) / stride."""
    length, taps = 13, 3
    outputs = (length + 2 * padding - dilation * (taps - 1) - 1) // stride + 1
    g, w = (rng.integers(-9, 9, n).astype(np.float32) for n in (outputs, taps))
    name = f"conv backward {stride} {dilation} {padding}"
    n = Writer(name, (length,), [(float32, False), (float32, False), (float32, True)])
    n.stage(taps)
    position = at({0: 1, 1: -dilation}, 1, offset=padding, extent=outputs, checked=True, divisor=stride)
    product = n.op("multiply", float32, n.load(0, position, fill=0), n.load(1, at({1: 1}, 1)))
    total = n.reduce("sum", product, float32)
    n.stage()
    n.store(2, total, at({0: 1}, 1))
    expected = np.zeros(length + 2 * padding, np.float32)
    for o in range(outputs):
        for k in range(taps):
            expected[o * stride + k * dilation] += g[o] * w[k]
    expected = expected[padding : padding + length]
    return Case(n.build(), [g, w, np.zeros(length, np.float32)], {2: expected})


def structure_cases() -> list[Case]:
    return [*movement_cases(), *reduction_cases(), *contraction_cases(), *scan_cases()]
