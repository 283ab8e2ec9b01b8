"""Snapshot and restore: assigned symbols with what was evaluated from them, random sources, cells."""

from __future__ import annotations

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import LostCellError
from nnc_core.symbols.assigned import AssignedGraph
from tests.tensors.faults import fails
from tests.tensors.symbols.evaluations import evaluations


@pytest.fixture
def graph(device: str) -> AssignedGraph:
    """out0 = tanh(a) + b, with a = [1, 2], b = [3, 4], evaluated"""
    a, b = nnc.var_arr("a", (2,)), nnc.var_arr("b", (2,))
    graph = nnc.make_graph([a, b], [nnc.tanh(a) + b])
    nnc.assign(a, [1.0, 2.0])
    nnc.assign(b, [3.0, 4.0])
    nnc.eval_graph(graph)
    return graph


def test_what_was_valid_is_valid_again_without_evaluation(graph: AssignedGraph) -> None:
    y, b = graph.outputs["out0"], graph.inputs["b"]
    wanted = nnc.unpack_arr(y)
    taken = nnc.snapshot(graph)
    nnc.assign(b, [0.0, 0.0])
    nnc.eval_graph(graph)
    assert (nnc.unpack_arr(y) != wanted).all()
    nnc.restore(taken)
    assert nnc.unpack_arr(b).tolist() == [3, 4]
    np.testing.assert_array_equal(nnc.unpack_arr(y), wanted)
    assert evaluations(y) == 0
    nnc.assign(b, [1.0, 1.0])
    assert evaluations(y) == 1, "and follows assignments as before"
    nnc.restore(taken)
    nnc.restore(taken)  # as often as one likes
    np.testing.assert_array_equal(nnc.unpack_arr(y), wanted)


def test_what_was_invalid_or_unassigned_is_so_again(device: str) -> None:
    a, b = nnc.var_arr("a", (2,)), nnc.var_arr("b", (2,))
    c = nnc.exp(a)
    y = c + b
    nnc.assign(a, [0.0, 0.0])
    nnc.eval_arr([c])
    nnc.assign(a, [1.0, 1.0])  # c is invalid now, b has no value
    taken = nnc.snapshot(y)
    nnc.assign(b, [1.0, 1.0])
    nnc.eval_arr([y])
    nnc.restore(taken)
    assert not nnc.is_assigned(b) and nnc.is_assigned(a) and not nnc.is_valid(c)
    with fails(ValueError, "not been evaluated"):
        nnc.unpack_arr(y)
    with fails(ValueError, "'b'", "has no value", line=False):
        nnc.eval_arr([y])
    nnc.assign(b, [1.0, 1.0])
    nnc.eval_arr([y])
    np.testing.assert_allclose(nnc.unpack_arr(y), np.exp([1, 1]) + 1, rtol=1e-6)


def test_what_lies_outside_the_snapshot_follows_it(device: str) -> None:
    """A value that was computed after the snapshot from a symbol of it must not be taken for valid."""
    a = nnc.var_arr("a", (2,))
    nnc.assign(a, [1.0, 1.0])
    taken = nnc.snapshot(a)
    later = a * 3
    nnc.assign(a, [5.0, 5.0])
    nnc.eval_arr([later])
    nnc.restore(taken)
    assert not nnc.is_valid(later)
    nnc.eval_arr([later])
    assert nnc.unpack_arr(later).tolist() == [3, 3]


def test_frozen_symbols_and_random_sources(device: str) -> None:
    g, x = nnc.var_random(5), nnc.var_arr("x", (16,))
    noise = g.normal((16,))
    y = x + noise
    nnc.assign(x, np.zeros(16))
    nnc.eval_arr([y])
    taken = nnc.snapshot([y])
    held = nnc.unpack_arr(y)
    sequences = []
    for _ in range(2):
        drawn = []
        for _ in range(3):
            nnc.eval_arr([y])
            drawn.append(nnc.unpack_arr(y))
        sequences.append(drawn)
        nnc.freeze(noise)
        nnc.restore(taken)
        assert not nnc.is_frozen(noise)
        np.testing.assert_array_equal(nnc.unpack_arr(y), held)
    np.testing.assert_array_equal(sequences[0], sequences[1], "the same draws again")
    nnc.freeze(noise)
    frozen = nnc.snapshot(y)
    nnc.unfreeze(noise)
    nnc.restore(frozen)
    assert nnc.is_frozen(noise)


def test_cells_and_generators(device: str) -> None:
    cell, g = nnc.Cell(nnc.ones(3), "weight"), nnc.Generator(4)

    @nnc.jit
    def step() -> nnc.Tensor:
        cell.write(cell.read() * 2)
        return nnc.sum(cell.read()) + g.uniform(())

    step()
    taken = nnc.snapshot({"cell": cell, "random": [g]})
    first = [step().item() for _ in range(3)]
    nnc.restore(taken)
    assert cell.read().tolist() == [2, 2, 2]
    assert [step().item() for _ in range(3)] == first
    assert "1 cells" in repr(nnc.snapshot(cell))
    cell.lose("a call failed")
    with pytest.raises(LostCellError):
        nnc.snapshot(cell)
    nnc.restore(taken)
    assert cell.read().tolist() == [2, 2, 2]


def test_a_cell_that_was_moved_is_restored_where_it_is(device: str) -> None:
    cell = nnc.Cell(nnc.ones(3))
    taken = nnc.snapshot(cell)
    cell.write(nnc.zeros(3))
    cell.move("strict:0")
    nnc.restore(taken)
    assert cell.device.id == "strict:0" and cell.read().tolist() == [1, 1, 1]


def test_a_snapshot_is_not_changed_by_what_follows(device: str) -> None:
    """Cells give up their memory to compiled code; what a snapshot holds is copied first."""
    cell = nnc.Cell(nnc.ones(1000))
    increment = nnc.jit(lambda: cell.write(cell.read() + 1))
    increment()
    taken = nnc.snapshot(cell)
    for _ in range(5):
        increment()
    nnc.restore(taken)
    increment()
    nnc.restore(taken)
    np.testing.assert_array_equal(cell.read().numpy(), np.full(1000, 2))


def test_what_has_no_state(x: nnc.Tensor) -> None:
    with fails(TypeError, "float32[2,3]", "never changes", line=False):
        nnc.snapshot(x)
    with fails(TypeError, "str", "no state", line=False):
        nnc.snapshot("a")
    with fails(NotImplementedError, "traced", line=False):
        nnc.jit(lambda y: (nnc.snapshot(), y)[1])(x)
    taken = nnc.snapshot()
    with fails(NotImplementedError, "traced", line=False):
        nnc.jit(lambda y: (nnc.restore(taken), y)[1])(x)
