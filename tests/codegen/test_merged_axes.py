"""Nests over as few axes as they allow give what they gave over all, positions that they compute included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnc_core.base.dtype import int64
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import interpret
from nnc_core.codegen.merged_axes import with_merged_axes
from tests.codegen.nests import Writer, as_bytes, at

Steps = dict[int, int]
SHAPE = (3, 4, 5)
PACKED = {0: 20, 1: 5, 2: 1}

POSITIONS: dict[str, tuple[list[Steps], tuple[int, ...]]] = {
    "none": ([], (60,)),
    "the whole": ([PACKED], (60,)),
    "the whole times two": ([{a: 2 * step for a, step in PACKED.items()}], (60,)),
    "in a row": ([{1: 5, 2: 1}], (3, 20)),
    "the row": ([{0: 4, 1: 1}], (12, 5)),
    "the whole and the first axis": ([PACKED, {0: 1}], (3, 20)),
    "of other steps": ([{0: 21, 1: 5, 2: 1}], (3, 20)),
    "the last axis": ([{2: 1}], (12, 5)),
    "the one between": ([{1: 1}], (3, 4, 5)),
}


def position(n: Writer, steps: Steps) -> int:
    """The sum of multiples of axes, and of 7."""
    total = n.constant(7, int64)
    for axis, step in steps.items():
        term = n.op("multiply", int64, n.op("axis", int64, axis=axis), n.constant(step, int64))
        total = n.op("add", int64, total, term)
    return total


def run(nest: LoopNest, *arrays: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    result = np.full(size, -1, np.int64)
    interpret(nest, [as_bytes(x) for x in (*arrays, result)])
    return result


@pytest.mark.parametrize("case", POSITIONS)
def test_positions_are_kept_apart_only_where_they_step_otherwise(case: str) -> None:
    positions, merged = POSITIONS[case]
    n = Writer("positions", SHAPE, [(int64, False), (int64, True)])
    total = n.load(0, at(PACKED, 1))
    for steps in positions:
        total = n.op("bitwise_xor", int64, total, position(n, steps))
    n.store(1, total, at(PACKED, 1))
    nest, x = n.build(), np.arange(60)[::-1] * 100
    found = with_merged_axes(nest)
    assert found.axes == merged
    np.testing.assert_array_equal(run(found, x, size=60), run(nest, x, size=60))


def test_an_axis_of_one_is_no_part_of_a_position() -> None:
    n = Writer("one", (3, 1, 5), [(int64, True)])
    n.store(0, n.op("negative", int64, position(n, {0: 5, 1: 3, 2: 1})), at({0: 5, 1: 5, 2: 1}, 1))
    nest = n.build()
    found = with_merged_axes(nest)
    assert found.axes == (15,)
    np.testing.assert_array_equal(run(found, size=15), run(nest, size=15))


@pytest.mark.parametrize(("steps", "inner"), [({1: 5, 2: 1}, (20,)), ({1: 1, 2: 1}, (4, 5))])
def test_positions_in_a_stage(steps: Steps, inner: tuple[int, ...]) -> None:
    """They are of its own axes; another stage's may be merged otherwise."""
    n = Writer("stages", (3,), [(int64, True)])
    n.stage(4, 5)
    first = n.reduce("sum", n.op("bitwise_xor", int64, position(n, {0: 1}), position(n, steps)), int64)
    n.stage(4, 5)
    both = n.op("bitwise_xor", int64, first, position(n, {1: 5, 2: 1}))
    second = n.reduce("sum", both, int64)
    n.stage()
    n.store(0, second, at({0: 1}, 1))
    nest = n.build()
    found = with_merged_axes(nest)
    assert [stage.axes for stage in found.stages] == [(), inner, (20,), ()]
    np.testing.assert_array_equal(run(found, size=3), run(nest, size=3))


def test_a_position_that_an_access_reads_is_one() -> None:
    """The elements that it names are those of all axes, not of the last."""
    n = Writer("gather", SHAPE, [(int64, False), (int64, True)])
    whole = position(n, PACKED)
    n.store(1, n.load(0, at({}, 1, gather=whole, extent=100)), at(PACKED, 1))
    nest, x = n.build(), np.arange(100) * 3
    found = with_merged_axes(nest)
    assert found.axes == (60,)
    np.testing.assert_array_equal(run(found, x, size=60), run(nest, x, size=60))
