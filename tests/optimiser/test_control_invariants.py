"""What does not change while a loop runs: carried values, constants, work done once before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.operator import OPERATORS, Nodes
from nnc_core.operator.control import LOOP
from nnc_core.symbol import Node, postorder
from nnc_core.type import Dim, TensorSpec
from tests.graph.stack import new_namespace
from tests.optimiser.control_flow import (
    INT,
    ROW,
    body,
    constant,
    everything,
    everywhere,
    number,
    of,
    operators,
    optimised,
    printing,
    run,
    scan,
    table,
    the,
    while_loop,
)


@everywhere(constant)
def test_what_is_carried_but_never_changed_is_captured(program: Any) -> None:
    found = run(program)
    inner = next(node for node in everything(found) if node.op is LOOP)
    assert of(inner).carried_count == 1 and len(inner.inputs) == 1 and operators(found)["exp"] == 1
    assert operators(found)["cast"] == 0  # 3 is known in the body, and as a float


def test_what_becomes_constant_by_another_rewrite_is_captured_in_the_end() -> None:
    """w * 1 is w; then v + 0 * w is v, and z is a number that the loop need not carry."""
    F = new_namespace()
    x, w = F.placeholder("x", ROW), F.placeholder("w", TensorSpec((3,), dt.int32))
    y, *_ = scan(F, [x, w, w, number(F, 2)], [], [], lambda G, c, w, v, z: [
        G.add(c, G.cast(v, dtype=dt.float32)), G.multiply(w, 1), G.add(v, G.multiply(w, 0)), z])
    (found,) = optimised(y)
    assert the([found], LOOP).inputs == (x, cast_of(w, [found]))
    assert operators([found]) == Counter(loop=1, add=1, cast=1)


def cast_of(x: Node, outputs: Sequence[Node]) -> Node:
    """What does not change is computed before the loop."""
    node = the(outputs, OPERATORS["cast"])
    assert node.inputs == (x,)
    return node


def test_a_condition_keeps_its_meaning_when_its_operands_move() -> None:
    """n is carried unchanged, and read by the condition."""
    F = new_namespace()
    x, n = F.placeholder("x", ROW), F.placeholder("n", INT)
    i, last, y = while_loop(F, [number(F, 0), n, x], [], lambda G, i, n, y: [G.less(i, n)],
                            lambda G, i, n, y: [G.add(i, 1), n, G.sin(y)])
    found = optimised(i, last, y)
    loop = the(found, LOOP)
    cond, step, _, carried, *_ = loop.attributes
    assert carried == 2 and found[1] is n
    assert [x.spec for x in cond.inputs] == [INT, ROW, INT] == [x.spec for x in step.inputs]
    assert cond.outputs[0].inputs == (cond.inputs[0], cond.inputs[2])


def with_constants(F: Nodes, x: Node) -> list[Node]:
    """A constant that a loop captures, one that a condition reads, one of branches and one of a call."""
    k, at = table(F), F.placeholder("which", INT)
    (y,) = scan(F, [x], [], [k], lambda G, c, k: [G.add(c, G.cast(G.multiply(G.add(k, 1), k), dtype=dt.float32))])
    (z,) = while_loop(F, [y], [k], lambda G, c, k: [G.less(G.sum(c, axis=(0,)), G.cast(G.sum(k, axis=(0,)),
                                                                                       dtype=dt.float32))],
                      lambda G, c, k: [G.add(c, 1.0)])
    branches = tuple([body([ROW, k.spec], lambda G, a, k, f=f: [G.add(a, G.cast(f(G, k, k), dtype=dt.float32))])
                      for f in (Nodes.add, Nodes.multiply)])
    v = F.pick(F.case_of(at, [z, k], branches=branches, otherwise=True), index=0)
    return [F.pick(F.call([v, k], body=branches[0], name="f"), index=0)]


@everywhere(with_constants)
def test_what_bodies_compute_from_constants_is_folded(program: Any) -> None:
    found = run(program)
    left = operators(found)
    assert left["cast"] == left["multiply"] == 0 and left["sum"] == 1, "of the carried value alone"
    assert not [x for node in everything(found) if node.op.bodies for x in node.inputs if x.op.name == "constant"]


def test_what_has_no_one_value_is_not_folded_in_bodies_either() -> None:
    """An index out of range is an error when it runs, and a branch may never run."""
    F = new_namespace()
    x, at, k = F.placeholder("x", ROW), F.placeholder("at", INT), table(F, np.array([2, 3, 4]))
    wrong = body([ROW, k.spec], lambda G, a, k: [G.add(a, G.cast(G.take(k, k, axis=0), dtype=dt.float32))])
    right = body([ROW, k.spec], lambda G, a, k: [a])
    y = F.pick(F.case_of(at, [x, k], branches=(wrong, right), otherwise=True), index=0)
    assert operators(optimised(y))["take"] == 1


# ---- what does not change from round to round
def unchanging(F: Nodes, x: Node) -> list[Node]:
    """exp(w) and what is made from it; rows and the carried value change."""
    w = F.cos(x)
    y, ys = scan(F, [x], [F.broadcast_to(x, shape=(4, 3))], [w], lambda G, c, row, w: [
        G.add(G.multiply(c, G.exp(w)), G.sqrt(G.exp(w))), G.multiply(row, G.tanh(w))])
    return [F.add(y, F.sum(ys, axis=(0,)))]


@everywhere(unchanging)
def test_what_rounds_compute_anew_is_computed_before_them(program: Any) -> None:
    found = run(program)
    (loop,) = [node for node in everything(found) if node.op is LOOP and of(node).scanned_count]
    inside = operators(of(loop).body.outputs)
    assert inside == Counter(multiply=2, add=1)
    left = operators(found)
    assert left["exp"] == left["sqrt"] == left["tanh"] == left["cos"] == 1


def test_two_loops_deep_it_moves_all_the_way_out() -> None:
    F = new_namespace()
    x, w = F.placeholder("x", ROW), F.placeholder("w", ROW)

    def outer(G: Nodes, c: Node, w: Node) -> list[Node]:
        return scan(G, [c], [], [w], lambda H, z, v: [H.add(z, H.exp(v))], length=2)

    (found,) = optimised(*scan(F, [x], [], [w], outer))
    loop = the([found], LOOP)
    assert [x.op.name for x in loop.inputs] == ["placeholder", "exp"] and operators([found])["exp"] == 1


@pytest.mark.parametrize("loop", [
    lambda F, x, w: while_loop(F, [x], [w], lambda G, c, w: [G.less(G.sum(c, axis=(0,)), 9.0)],
                               lambda G, c, w: [G.add(c, G.log(w))]),
    lambda F, x, w: scan(F, [x], [], [w], lambda G, c, w: [G.add(c, G.log(w))], length=0),
    lambda F, x, w: scan(F, [x], [F.broadcast_to(x, shape=(Dim("n"), 3))], [w],
                         lambda G, c, row, w: [G.add(G.add(c, row), G.log(w))], length=Dim("n")),
])
def test_loops_that_may_not_run_keep_what_they_compute(loop: Any) -> None:
    """A NaN, an error or an infinity must not come from a loop that goes round no times."""
    F = new_namespace()
    (found,) = optimised(*loop(F, F.placeholder("x", ROW), F.placeholder("w", ROW)))
    assert "log" not in {n.op.name for n in postorder([found])} and operators([found])["log"] == 1


def test_branches_of_a_loop_keep_what_they_compute() -> None:
    F = new_namespace()
    x, w = F.placeholder("x", ROW), F.placeholder("w", ROW)
    branches = (body([ROW, ROW], lambda G, a, v: [G.add(a, G.log(v))]), body([ROW, ROW], lambda G, a, v: [a]))

    def step(G: Nodes, c: Node, v: Node) -> list[Node]:
        at = G.cast(G.less(G.sum(c, axis=(0,)), 0.0), dtype=dt.int64)
        return [G.pick(G.case_of(at, [c, v], branches=branches, otherwise=True), index=0)]

    (found,) = optimised(*scan(F, [x], [], [w], step))
    assert the([found], LOOP).inputs == (x, w)
    assert "log" not in {n.op.name for n in of(the([found], LOOP)).body.nodes}


def test_what_costs_nothing_where_it_is_read_stays_there() -> None:
    """Views, broadcasts, and elementwise operators that make much of little; what those are made of may go."""
    F = new_namespace()
    x, w = F.placeholder("x", TensorSpec((3, 3), dt.float32)), F.placeholder("w", ROW)

    def step(G: Nodes, c: Node, w: Node) -> list[Node]:
        column = G.reshape(G.exp(w), shape=(3, 1))
        return [G.add(G.multiply(c, G.permute(c, axes=(1, 0))), G.add(column, w))]

    (found,) = optimised(*scan(F, [x], [], [w], step))
    loop = the([found], LOOP)
    assert [x.op.name for x in loop.inputs] == ["placeholder", "placeholder", "exp"]
    assert operators(of(loop).body.outputs)["add"] == 2


def test_what_has_effects_stays_in_its_round() -> None:
    F = new_namespace()
    x, w = F.placeholder("x", ROW), F.placeholder("w", ROW)
    (found,) = optimised(*scan(F, [x], [], [w], lambda G, c, w: [G.add(c, G.exp(printing(G, w)))]))
    assert the([found], LOOP).inputs == (x, w) and {"callback", "after", "exp"} <= set(
        operators(of(the([found], LOOP)).body.outputs))
