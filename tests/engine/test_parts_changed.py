"""Arrays changed part by part in place of what held them: nothing is copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.operator import Nodes
from nnc_core.stacks import Stack
from nnc_core.symbol import Node
from tests.engine.conftest import floats
from tests.engine.joins import X, joined, watched
from tests.engine.plans import both_ways, lowered


# ---- arrays changed part by part
def changed(F: Nodes, x: Node, row: int, value: Node) -> Node:
    return F.update_slice(x, value, start=(row, 0), step=(1, 1))


def rows_of(F: Nodes, x: Node, first: int, last: int) -> Node:
    return F.slice(x, start=(first, 0), stop=(last, 6), step=(1, 1))


def test_a_dead_value_is_changed_part_by_part_in_place(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 4, 6)
    y, small = F.exp(x), F.sin(rows_of(F, x, 0, 1))
    for row in range(4):
        y = changed(F, y, row, small) if row != 2 else y
    run = joined(stack, F, [x], y=F.sum(y, axis=(0, 1)))
    assert [s.note for s in run.plan.steps if s.group.op.name == "update_slice"] == ["in place of input 0"] * 3
    wanted = np.exp(X)
    wanted[[0, 1, 3]] = np.sin(X[0])
    np.testing.assert_allclose(watched(run, {"x0": X})["y"], wanted.sum(), rtol=1e-5)


@pytest.mark.parametrize(("first", "last", "row", "in_place"), [(0, 2, 2, True), (2, 4, 0, True), (1, 3, 2, False)])
def test_parts_that_are_read_later_may_lie_beside_what_is_changed(
        stack: Stack, F: Nodes, first: int, last: int, row: int, in_place: bool) -> None:
    """The slice is read after the row has been replaced; if that is one of its own rows, the old ones are kept."""
    x = floats(F, "x", 4, 6)
    old = F.exp(x)
    new = changed(F, old, row, F.sin(rows_of(F, x, 0, 1)))
    total = F.sum(new, axis=(0, 1), keepdims=True)
    run = joined(stack, F, [x], y=F.multiply(rows_of(F, old, first, last), F.cos(total)), total=F.sum(total, axis=(0,)))
    (note,) = [s.note for s in run.plan.steps if s.group.op.name == "update_slice"]
    assert (note == "in place of input 0") == in_place
    after = np.exp(X)
    after[row] = np.sin(X[0])
    found = watched(run, {"x0": X})["y"]
    np.testing.assert_allclose(found, np.exp(X)[first:last] * np.cos(after.sum()), rtol=1e-3)


def test_a_part_moves_within_its_array(stack: Stack, F: Nodes) -> None:
    """x[0:2] = x[2:4], in place: the rows that are read lie apart from those that are written."""
    x = floats(F, "x", 4, 6)
    old = F.exp(x)
    run = joined(stack, F, [x], y=F.sum(changed(F, old, 0, rows_of(F, old, 2, 4)), axis=(0,)))
    (step,) = [s for s in run.plan.steps if s.group.op.name == "update_slice"]
    assert step.note == "in place of input 0"
    e = np.exp(X)
    np.testing.assert_array_equal(watched(run, {"x0": X})["y"], np.concatenate([e[2:], e[2:]]).sum(0))
    overlapping = joined(stack, F, [x], y=F.sum(changed(F, old, 0, rows_of(F, old, 1, 4)), axis=(0,)))
    (step,) = [s for s in overlapping.plan.steps if s.group.op.name == "update_slice"]
    assert step.note == ""
    np.testing.assert_array_equal(watched(overlapping, {"x0": X})["y"], np.concatenate([e[1:], e[3:]]).sum(0))


def test_at_set_on_a_dead_value() -> None:
    def f(x: Any) -> Any:
        y = nnc.exp(x)
        kept = y[3]
        for i in range(3):
            y = y.at[i].set(nnc.sin(x[0]) * float(i))
        return nnc.sum(y) + nnc.sum(kept)

    for device in ("cpu:0", "strict:0"):
        run = lowered(f, X, device=device)
        updates = [s.note for s in run.plan.steps if s.group.op.name == "update_slice"]
        assert updates and set(updates) == {"in place of input 0"}
        both_ways(f, X, device=device)
