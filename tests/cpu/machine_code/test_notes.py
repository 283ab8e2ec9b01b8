"""Notes of indices that are out of range: machine code keeps the one that the interpreter keeps, whatever the width."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from nnc_core.base.command import Command
from nnc_core.base.errors import NotSupportedError, OutOfRangeError
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import NOTE_WORDS, LoopNest
from nnc_core.codegen import interpret
from nnc_core.operator import OPERATORS
from nnc_core.operator.inlining import fused_nest
from nnc_core.operator.loops import NotedCommand
from nnc_core.operator.program import Input, Program, Step, StepResult
from nnc_core.type import TensorSpec
from nnc_cpu.partial_sums import in_parts
from tests.codegen.nests import as_bytes
from tests.cpu.machine_code.running import HOSTS, kernels, run

SHAPES = {
    "rows": ((50, 33), (7, 3), 0, 0), "columns": ((5, 50), (21,), 1, 0), "numbers": ((90,), (4, 19), 0, 0),
    "shared rows": ((6, 40), (6, 17), 1, 1), "an axis behind": ((3, 50, 18), (3, 9), 1, 1), "one": ((50,), (), 0, 0),
}  # fmt: skip
"""x, indices, axis, batch."""
Noted = tuple[int, int, int] | None


def nest_of(shapes: str, index: str, noted: bool = True) -> LoopNest:
    x, i, axis, batch = SHAPES[shapes]
    out = OPERATORS["take"].infer(TensorSpec(x, np.dtype("float32")), TensorSpec(i, np.dtype(index)), axis, batch)
    inputs = (Layout.packed(x, np.dtype("float32")), Layout.packed(i, np.dtype(index)))
    kind = NotedCommand if noted else Command
    return OPERATORS["take"].nest(kind("take", (axis, batch), inputs, (out.layout(),)))


def by_machine(nest: LoopNest, host: str, arrays: list[Any]) -> Noted:
    """What is noted: the check, the place of the point, and the value."""
    notes = np.full(NOTE_WORDS, -1, np.int64)
    try:
        run(kernels([nest], host)[0], [*arrays, notes])
    except OutOfRangeError as error:
        assert error.noted is not None
        return error.noted[0], -1, error.noted[1]
    return None


def by_interpreter(nest: LoopNest, arrays: list[Any]) -> Noted:
    notes = np.zeros(NOTE_WORDS, np.int64)
    interpret(nest, [as_bytes(array) for array in [*arrays, notes]], in_parts=in_parts)
    return tuple(notes[1:4].tolist()) if notes[0] else None


def indices_of(shapes: str, dtype: str, rng: Any, wrong: int) -> Any:
    """Indices in range, negative ones too where there are such, but for some."""
    x, i, axis, _ = SHAPES[shapes]
    low = -x[axis] if np.dtype(dtype).kind == "i" else 0
    found = rng.integers(low, x[axis], i).astype(dtype)
    flat = found.reshape(-1)
    for k in rng.choice(flat.size, min(wrong, flat.size), replace=False):
        flat[k] = rng.choice([x[axis], x[axis] + 5, 120, low - 1 if low else 127])
    return flat.reshape(i)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "int8"])
@pytest.mark.parametrize("shapes", SHAPES)
def test_the_first_is_kept(shapes: str, dtype: str, host: str) -> None:
    rng, nest = np.random.default_rng(len(shapes)), nest_of(shapes, dtype)
    x, _, axis, batch = SHAPES[shapes]
    values = rng.standard_normal(x).astype(np.float32)
    for wrong in (0, 1, 4):
        i = indices_of(shapes, dtype, rng, wrong)
        out = [np.zeros(tuple(nest_shape(shapes)), np.float32) for _ in (0, 1)]
        found, wanted = by_machine(nest, host, [values, i, out[0]]), by_interpreter(nest, [values, i, out[1]])
        assert (found is None) == (wanted is None) == (wrong == 0)
        if wanted is not None and found is not None:
            outside = i[(i.astype(int) >= x[axis]) | (i.astype(int) < -x[axis])]
            assert found[2] == wanted[2] == outside.flat[0]
        else:
            reference = OPERATORS["take"].reference
            assert reference is not None
            assert out[0].tobytes() == out[1].tobytes() == reference(values, i, axis, batch).tobytes()


def nest_shape(shapes: str) -> tuple[int, ...]:
    x, i, axis, batch = SHAPES[shapes]
    return (*x[:axis], *i[batch:], *x[axis + 1 :])


@pytest.mark.parametrize("host", HOSTS)
def test_of_two_checks_the_one_that_comes_first_is_kept(host: str) -> None:
    """Though a later one fails at an earlier point; also from one fold to the next."""
    take, sums, add = OPERATORS["take"], OPERATORS["sum"], OPERATORS["add"]
    x, i = TensorSpec((30, 24), np.dtype("float32")), TensorSpec((20,), np.dtype("int64"))
    rows, whole = TensorSpec((20, 24), x.dtype), TensorSpec((20, 1), x.dtype)
    steps = (Step(take, (0, 0), (Input(0), Input(1)), rows), Step(take, (0, 0), (Input(0), Input(2)), rows),
             Step(sums, ((1,), True), (StepResult(1),), whole), Step(add, (), (StepResult(0), StepResult(2)), rows))
    program = Program(steps, (x, i, i), (3,), inner=(1,))
    inputs = (x.layout(), i.layout(), i.layout())
    nest = fused_nest(NotedCommand("fused", (program,), inputs, (rows.layout(),)), program)
    values, good = np.ones((30, 24), np.float32), np.arange(20)
    bad, worse = good.copy(), good.copy()
    bad[17], worse[3] = 77, -99
    out = np.zeros((20, 24), np.float32)
    for one, other, wanted in ((bad, worse, (0, 77)), (good, worse, (1, -99)), (bad, good, (0, 77))):
        arrays = [values, one, other, out]
        found, known = by_machine(nest, host, arrays), by_interpreter(nest, arrays)
        assert found is not None and known is not None and (found[0], found[2]) == (known[0], known[2]) == wanted
    assert by_machine(nest, host, [values, good, good, out]) is None


@pytest.mark.parametrize("host", HOSTS)
def test_the_last_lanes_have_no_point(host: str) -> None:
    """What lies behind the indices is looked at by nobody."""
    nest = nest_of("numbers", "int64")
    x, i = np.zeros(90, np.float32), np.zeros((4, 19), np.int64)
    assert by_machine(nest, host, [x, i, np.zeros((4, 19), np.float32)]) is None
    i[3, 18] = 90
    found = by_machine(nest, host, [x, i, np.zeros((4, 19), np.float32)])
    assert found is not None and found[2] == 90


def test_places_count_points_in_row_major_order() -> None:
    notes: Any = by_interpreter(nest_of("rows", "int64"), [
        np.zeros((50, 33), np.float32), np.array([[0] * 3] * 6 + [[0, 51, 52]]), np.zeros((7, 3, 33), np.float32)])
    assert notes == (0, 19 * 33, 51)


def test_a_command_that_is_not_to_note_takes_no_further_argument() -> None:
    assert len(nest_of("rows", "int64", noted=False).arguments) == 3 and not nest_of("rows", "int64", noted=False).notes
    assert len(nest_of("rows", "int64").arguments) == 4 and nest_of("rows", "int64").notes


def test_a_nest_without_points_looks_at_nothing_and_is_refused() -> None:
    x, i, out = (Layout.packed(shape, np.dtype(dtype)) for shape, dtype in
                 (((5, 0), "float32"), ((3,), "int64"), ((3, 0), "float32")))
    with pytest.raises(NotSupportedError, match="looks at no index"):
        OPERATORS["take"].nest(NotedCommand("take", (0, 0), (x, i), (out,)))
    assert math.prod(OPERATORS["take"].nest(Command("take", (0, 0), (x, i), (out,))).axes) == 0
