"""What vectors do otherwise than single elements: positions found lane by lane, lanes that lie backwards, vectors
abreast."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnc_core.base.dtype import bfloat16, boolean, float16, float32, float64, int8, int64, uint8
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import interpret
from nnc_cpu.llvm.strategy import chains, choose, rows_abreast, vectors_abreast
from nnc_cpu.partial_sums import in_parts
from tests.codegen.nests import Writer, as_bytes, at
from tests.cpu.machine_code.running import HOSTS, kernels, run

Values = np.ndarray[Any, Any]
LENGTHS = (1, 2, 3, 15, 16, 17, 40, 64, 100, 150, 257)


def positions(kind: str, rows: int, length: int, dtype: Any) -> LoopNest:
    n = Writer(f"{kind} of {length}", (rows,), [(dtype, False), (int64, True)])
    n.stage(length)
    found = n.reduce(kind, n.load(0, at({0: length, 1: 1}, 1)), dtype)
    n.stage()
    n.store(1, found, at({0: 1}, 1))
    return n.build()


def rows_of(length: int, dtype: Any, rng: np.random.Generator) -> Values:
    """Few values, so that there are many equal ones; NaN, infinities and zeros of both signs among the floats."""
    few = rng.integers(0, 3, (24, length)).astype(dtype)
    if np.dtype(dtype).kind not in "fV":
        return few
    few[rng.random(few.shape) < 0.2] = -0.0
    few[:4] = -np.inf
    few[4:8] = np.inf
    few[8:14][rng.random((6, length)) < 0.1] = np.nan
    few[14] = np.nan
    few[2, -1] = few[3, length // 2] = 0
    return few


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("dtype", [float32, float64, float16, bfloat16, int8, uint8, int64, boolean], ids=str)
def test_positions_are_the_first_of_equals_in_whatever_lane(dtype: Any, host: str, rng: np.random.Generator) -> None:
    cases = [(kind, length) for kind in ("argmax", "argmin") for length in LENGTHS]
    made = kernels([positions(kind, 24, length, dtype) for kind, length in cases], host)
    for (kind, length), kernel in zip(cases, made, strict=True):
        rows, found = rows_of(length, dtype, rng), np.zeros(24, np.int64)
        run(kernel, [rows, found])
        expected = getattr(np, kind)(rows.astype(np.float64) if dtype == bfloat16 else rows, axis=1)
        np.testing.assert_array_equal(found, expected, err_msg=f"{kind} of {length}")


def folded(kind: str, rows: int, length: int, dtype: Any, result: Any) -> LoopNest:
    n = Writer(f"{kind} of {length}", (rows,), [(dtype, False), (result, True)])
    n.stage(length)
    x = n.load(0, at({0: length, 1: 1}, 1))
    found = n.reduce(kind, x if dtype == result else n.op("cast", result, x), result)
    n.stage()
    n.store(1, found, at({0: 1}, 1))
    return n.build()


FREE = (("sum", int8, int64), ("sum", int64, int64), ("product", int8, int8), ("maximum", uint8, uint8),
        ("minimum", int64, int64), ("all", boolean, boolean), ("any", boolean, boolean))


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(("kind", "dtype", "result"), FREE, ids=str)
def test_what_has_no_order_is_folded_in_chains(kind: str, dtype: Any, result: Any, host: str,
                                               rng: np.random.Generator) -> None:
    nests = [folded(kind, 24, length, dtype, result) for length in LENGTHS]
    for nest, kernel, length in zip(nests, kernels(nests, host), LENGTHS, strict=True):
        rows = rng.integers(0, 2, (24, length)).astype(bool) if dtype == boolean else rng.integers(
            np.iinfo(dtype).min, np.iinfo(dtype).max, (24, length), dtype)
        if dtype == boolean:
            rows[:6], rows[6:12] = kind == "all", kind != "any"
            rows[3:9, -1] ^= True
        got, wanted = np.zeros(24, result), np.zeros(24, result)
        run(kernel, [rows, got])
        interpret(nest, [as_bytes(rows), as_bytes(wanted)])
        np.testing.assert_array_equal(got, wanted, err_msg=nest.name)


def test_floats_that_have_an_order_are_folded_in_one_chain() -> None:
    def of(kind: str, dtype: Any, result: Any) -> int:
        nest = folded(kind, 24, 640, dtype, result) if kind != "argmax" else positions(kind, 24, 640, dtype)
        [stage] = [stage for stage in nest.stages if stage.reductions]
        return chains(nest, stage, 40)

    assert [of(kind, float32, float32) for kind in ("sum", "product", "maximum", "minimum")] == [1, 1, 1, 1]
    assert [of(*case) for case in FREE] == [4, 2, 4, 4, 2, 4, 4]
    assert (of("argmax", float32, int64), of("argmax", float64, int64)) == (4, 2)


def backwards(size: int, dtype: Any, stores: bool, margin: int) -> LoopNest:
    """x from its end to its beginning; margin: elements of zeros before it, which are not in memory."""
    n = Writer("backwards", (size,), [(dtype, False), (dtype, True)])
    mirrored, straight = at({0: -1}, 1, offset=size - 1), at({0: 1}, 1)
    if margin:
        mirrored = at({0: -1}, 1, offset=size - 1 - margin, extent=size - margin, checked=True)
    x = n.load(0, straight if stores else mirrored, fill=0)
    n.store(1, x, mirrored if stores else straight)
    return n.build()


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("margin", [0, 3])
@pytest.mark.parametrize("stores", [False, True], ids=["loads", "stores"])
@pytest.mark.parametrize("dtype", [float32, int8, float16, boolean], ids=str)
def test_lanes_that_lie_backwards(dtype: Any, stores: bool, margin: int, host: str, rng: np.random.Generator) -> None:
    sizes = (4, 7, 16, 17, 31, 33, 5000)
    nests = [backwards(size, dtype, stores, margin) for size in sizes]
    for nest, kernel, size in zip(nests, kernels(nests, host), sizes, strict=True):
        arrays = [rng.integers(0, 2, size).astype(dtype), np.ones(size, dtype)]
        expected = [array.copy() for array in arrays]
        interpret(nest, [as_bytes(array) for array in expected])
        if not stores and margin:
            arrays[0], expected[0] = arrays[0][: size - margin].copy(), expected[0][: size - margin]
        run(kernel, arrays)
        for array, wanted in zip(arrays, expected, strict=True):
            assert array.tobytes() == wanted.tobytes()


def of_columns(columns: int, rows: int) -> LoopNest:
    """Of each column the sum of the squares of what it has beyond its mean, the place of its maximum, and running
    maxima."""
    n = Writer("columns", (columns,), [(float32, False), (float32, True), (int64, True), (float32, True)])
    n.stage(rows)
    mean = n.reduce("sum", n.load(0, at({0: 1}, 1), at({1: 1}, columns)), float32)
    n.stage()
    mean = n.op("divide", float32, mean, n.constant(rows, float32))
    n.stage(rows)
    x = n.op("subtract", float32, n.load(0, at({0: 1}, 1), at({1: 1}, columns)), mean)
    square = n.op("multiply", float32, x, x)
    total, place = n.reduce("sum", square, float32), n.reduce("argmax", x, float32)
    n.stage()
    n.store(1, total, at({0: 1}, 1))
    n.store(2, place, at({0: 1}, 1))
    return n.build()


def norm(columns: int, rows: int) -> LoopNest:
    """Columns that are centred and divided by the root of their mean square: more instructions than a single fold."""
    n = Writer("norm", (columns,), [(float32, False), (float32, True)])
    place = at({0: 1}, 1), at({1: 1}, columns)
    n.stage(rows)
    total = n.reduce("sum", n.load(0, *place), float32)
    n.stage()
    mean = n.op("divide", float32, total, n.constant(rows, float32))
    n.stage(rows)
    x = n.op("subtract", float32, n.load(0, *place), mean)
    squares = n.reduce("sum", n.op("multiply", float32, x, x), float32)
    n.stage()
    variance = n.op("divide", float32, squares, n.constant(rows, float32))
    root = n.op("sqrt", float32, n.op("add", float32, variance, n.constant(1e-5, float32)))
    n.stage(rows)
    x = n.op("subtract", float32, n.load(0, *place), mean)
    n.store(1, n.op("divide", float32, x, root), *place)
    return n.build()


def running_maxima(columns: int, rows: int) -> LoopNest:
    n = Writer("running", (columns,), [(float32, False), (float32, True)])
    n.stage(rows)
    place = at({0: 1}, 1), at({1: 1}, columns)
    n.store(1, n.reduce("maximum", n.load(0, *place), float32), *place)
    return n.build()


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_columns_are_taken_several_vectors_at_a_time(rows: int, host: str, rng: np.random.Generator) -> None:
    sizes = (3, 15, 16, 17, 63, 64, 65, 100, 128, 300)
    nests = [make(columns, rows) for make in (of_columns, running_maxima, norm) for columns in sizes]
    assert {vectors_abreast(nest, 0) for nest in nests} == ({4, 8} if rows > 1 else {1})
    for nest, kernel in zip(nests, kernels(nests, host), strict=True):
        columns = nest.axes[0]
        arrays = [rng.standard_normal((rows, columns)).astype(np.float32)]
        arrays += [np.zeros((rows, columns), a.dtype) for a in nest.arguments[1:]]
        expected = [array.copy() for array in arrays]
        interpret(nest, [as_bytes(array) for array in expected], in_parts=in_parts)
        run(kernel, arrays)
        for array, wanted in zip(arrays, expected, strict=True):
            assert array.tobytes() == wanted.tobytes(), (nest.name, columns)


def test_rows_that_lie_across_the_lanes_are_taken_by_themselves() -> None:
    n = Writer("rows", (100,), [(float32, False), (float32, True)])
    n.stage(40)
    place = at({0: 40}, 1), at({1: 1}, 1)
    n.store(1, n.reduce("sum", n.load(0, *place), float32), *place)
    assert vectors_abreast(n.build(), 0) == 1


def of_rows(rows: int, length: int, planes: int = 1) -> LoopNest:
    """Of each row what it has beyond its mean, in units of its largest: three stages go through it."""
    n = Writer("rows", (planes, rows), [(float32, False), (float32, True)])
    place = at({0: rows, 1: 1}, length), at({2: 1}, 1)
    n.stage(length)
    mean = n.reduce("sum", n.load(0, *place), float32)
    n.stage()
    mean = n.op("divide", float32, mean, n.constant(length, float32))
    n.stage(length)
    largest = n.reduce("maximum", n.op("subtract", float32, n.load(0, *place), mean), float32)
    n.stage(length)
    beyond = n.op("subtract", float32, n.load(0, *place), mean)
    n.store(1, n.op("divide", float32, beyond, largest), *place)
    return n.build()


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("length", [16, 37])
def test_rows_are_folded_side_by_side(length: int, host: str, rng: np.random.Generator) -> None:
    nests = [of_rows(*shape) for shape in ((1, length), (3, length), (4, length), (5, length), (23, length),
                                           (6, length, 3))]
    assert {rows_abreast(nest)[1] for nest in nests} == {1, 3, 4}
    for nest, kernel in zip(nests, kernels(nests, host), strict=True):
        rows = rng.standard_normal((nest.points, length)).astype(np.float32)
        rows[-1, 3] = np.nan
        got, wanted = np.zeros_like(rows), np.zeros_like(rows)
        interpret(nest, [as_bytes(rows), as_bytes(wanted)], in_parts=in_parts)
        run(kernel, [rows, got])
        assert got.tobytes() == wanted.tobytes(), nest.axes
        run(kernel, [rows, rows])
        assert rows.tobytes() == wanted.tobytes(), "in place"


def test_rows_that_are_long_or_much_work_are_folded_by_themselves() -> None:
    assert [rows_abreast(of_rows(9, length))[1] for length in (900, 2000, 4000)] == [4, 2, 1]
    n = Writer("much", (9,), [(float32, False), (float32, True)])
    n.stage(40)
    x = n.load(0, at({0: 40}, 1), at({1: 1}, 1))
    for _ in range(12):
        x = n.op("multiply", float32, x, x)
    total = n.reduce("sum", x, float32)
    n.stage()
    n.store(1, total, at({0: 1}, 1))
    assert rows_abreast(n.build())[1] == 1


def written_over(rows: int, columns: int, dtype: Any) -> LoopNest:
    """Rows of few columns, each of which has a number of its own, written over."""
    n = Writer(f"{rows} x {columns}", (rows, columns), [(dtype, True), (dtype, False)])
    x = n.load(0, at({0: columns, 1: 1}, 1))
    n.store(0, n.op("maximum", dtype, x, n.load(1, at({1: 1}, 1))), at({0: columns, 1: 1}, 1))
    return n.build()


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("dtype", [float32, float64, float16, int8, int64], ids=str)
def test_rows_that_fill_no_vector_are_written_over(dtype: Any, host: str, rng: np.random.Generator) -> None:
    nests = [written_over(5, columns, dtype) for columns in range(1, 36)]
    for columns, kernel in enumerate(kernels(nests, host), 1):
        x, numbers = (rng.integers(-100, 100, shape).astype(dtype) for shape in ((5, columns), (columns,)))
        expected = np.maximum(x, numbers)
        run(kernel, [x, numbers])
        np.testing.assert_array_equal(x, expected, err_msg=f"{columns} columns")


@pytest.mark.parametrize("columns", [5, 10, 40])
def test_lanes_lie_along_rows_of_few_columns(columns: int) -> None:
    """Storing a lane here and another there costs more than lanes that stay empty."""
    for operations in (1, 40):
        n = Writer("columns", (1000, columns), [(float32, False), (float32, False), (float32, True)])
        x = n.load(0, at({0: columns, 1: 1}, 1))
        for _ in range(operations):
            x = n.op("add", float32, x, n.load(1, at({1: 1}, 1)))
        n.store(2, x, at({0: columns, 1: 1}, 1))
        assert choose(n.build(), 16) == 1
