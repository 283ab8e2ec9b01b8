"""Control flow made smaller as a whole: each rule with what it leaves, in bodies too, and what it must not drop."""

from __future__ import annotations

from collections import Counter
from typing import Any

from nnc_core.base import dtype as dt
from nnc_core.graph import reverse
from nnc_core.operator import Nodes
from nnc_core.operator.control import CASE_OF, LOOP
from nnc_core.symbol import Node, bodies_of, postorder
from nnc_core.type import TensorSpec
from tests.graph.stack import new_namespace
from tests.optimiser.control_flow import (
    INT,
    ROW,
    ROWS,
    body,
    everywhere,
    number,
    of,
    operators,
    optimised,
    run,
    scan,
    the,
    while_loop,
)


# ---- loops that do the same
def equal_loops(F: Nodes, x: Node) -> list[Node]:
    """Three loops that carry the same, and stack up different things; the last carries something else."""
    a = scan(F, [x], [], [], lambda G, c: [G.sin(c), G.exp(c)])
    b = scan(F, [x], [], [], lambda G, c: [G.sin(c)])
    c = scan(F, [x], [], [], lambda G, c: [G.sin(c), G.cos(c), G.exp(c)])
    d = scan(F, [x], [], [], lambda G, c: [G.cos(c), G.exp(c)])
    last = [F.slice(y, start=(3, 0), stop=(4, 3), step=(1, 1)) for y in (a[1], c[1], c[2], d[1])]
    return [F.add(F.add(a[0], b[0]), F.sum(F.concat(*last, axis=0), axis=(0,)))]


@everywhere(equal_loops)
def test_loops_that_carry_the_same_are_one(program: Any) -> None:
    found = operators(run(program))
    outer = program is not equal_loops and "call" not in found
    assert found["loop"] == 2 + outer
    assert (found["sin"], found["exp"], found["cos"]) == (1, 2, 2)


def test_loops_whose_inputs_become_equal_are_merged_too() -> None:
    """The second pair goes over what the first pair stacks up."""
    F = new_namespace()
    x = F.placeholder("x", ROW)
    firsts = [scan(F, [x], [], [], lambda G, c, k=k: [G.sin(c), *[G.exp(c)] * k])[1] for k in (1, 2)]
    seconds = [scan(F, [x], [ys], [], lambda G, c, y: [G.multiply(c, y)])[0] for ys in firsts]
    found = operators(optimised(F.subtract(*seconds), F.add(*firsts)))
    assert (found["loop"], found["sin"], found["exp"], found["multiply"]) == (2, 1, 1, 1)


def test_loops_in_opposite_directions_or_of_other_lengths_stay_apart() -> None:
    F = new_namespace()
    x, rows = F.placeholder("x", ROW), F.placeholder("rows", ROWS)

    def step(G: Nodes, c: Node, row: Node) -> list[Node]:
        return [G.add(c, row)]

    there, back = (scan(F, [x], [rows], [], step, reverse=r)[0] for r in (False, True))
    assert operators(optimised(there, back))["loop"] == 2
    short, long = (scan(F, [x], [], [], lambda G, c: [G.sin(c)], length=k)[0] for k in (2, 3))
    assert operators(optimised(short, long))["loop"] == 2


def test_the_taped_loop_of_a_gradient_is_the_loop_itself() -> None:
    """Values and gradients of two nested loops need the inner loop twice at most: once forward, once for its tape."""
    F = new_namespace()
    x = F.placeholder("x", ROW)

    def step(G: Nodes, c: Node) -> list[Node]:
        return scan(G, [c], [], [], lambda H, z: [H.sin(z)], length=2)

    (y,) = scan(F, [x], [], [], step)
    total = F.sum(y, axis=(0,))
    (dx,) = reverse(F, postorder([total]), {id(total): number(F, 1, dt.float32)}, [x])
    assert operators([total, dx])["loop"] > 4
    found = optimised(total, dx)
    assert operators(found)["loop"] == 4 and operators(found)["sin"] == 1 and operators(found)["cos"] == 1


# ---- what nobody reads
def unread(F: Nodes, x: Node) -> list[Node]:
    """A carried value that only itself reads, stacked results, a captured array and rows for them alone."""
    y, _, _ = scan(F, [x, x], [], [F.exp(x), x],
                   lambda G, a, b, e, k: [G.sin(G.add(a, k)), G.multiply(b, e), G.cos(b)])
    return [y]


@everywhere(unread)
def test_results_that_nobody_reads_are_dropped(program: Any) -> None:
    found = operators(run(program))
    assert (found["sin"], found["multiply"], found["cos"], found["exp"]) == (1, 0, 0, 0)


def test_operands_follow_what_is_dropped() -> None:
    F = new_namespace()
    x, rows, w = F.placeholder("x", ROW), F.placeholder("rows", ROWS), F.placeholder("w", ROW)
    y, _, ys = scan(F, [x, w], [rows, rows], [w, x],
                    lambda G, a, b, p, q, k, m: [G.add(a, p), G.add(b, m), G.multiply(p, k)])
    assert the(optimised(y, ys), LOOP).inputs == (x, rows, w)
    (found,) = optimised(y)
    loop = the([found], LOOP)
    assert loop.inputs == (x, rows) and len(bodies_of(loop)[0][1].outputs) == 1
    (found,) = optimised(ys)
    loop = the([found], LOOP)
    assert loop.inputs == (rows, w) and (of(loop).carried_count, of(loop).scanned_count) == (0, 1)


def test_rows_and_results_that_come_twice_come_once() -> None:
    F = new_namespace()
    x, rows = F.placeholder("x", ROW), F.placeholder("rows", ROWS)
    y, a, b = scan(F, [x], [rows, rows], [x, x], lambda G, c, p, q, k, m: [
        G.add(c, G.subtract(p, q)), G.multiply(G.add(p, k), q), G.multiply(G.add(q, m), p)])
    found = optimised(y, a, b)
    loop = the(found, LOOP)
    assert loop.inputs == (x, rows, x) and len(of(loop).body.outputs) == 2 and found[1] is found[2]


def test_what_the_condition_reads_is_not_dropped() -> None:
    F = new_namespace()
    x, n = F.placeholder("x", ROW), F.placeholder("n", INT)
    _, y, _ = while_loop(F, [number(F, 0), x, x], [n], lambda G, i, y, z, n: [G.less(i, n)],
                         lambda G, i, y, z, n: [G.add(i, 1), G.sin(y), G.cos(z)])
    (found,) = optimised(y)
    loop = the([found], LOOP)
    assert len(loop.inputs) == 3 and operators([found])["less"] == operators([found])["add"] == 1
    assert operators([found])["cos"] == 0


def test_unread_results_of_branches_and_calls() -> None:
    F = new_namespace()
    x, w, at = F.placeholder("x", ROW), F.placeholder("w", ROW), F.placeholder("at", INT)
    two = tuple([body([ROW, ROW], lambda G, a, b, f=f: [f(G, a), G.exp(b)]) for f in (Nodes.sin, Nodes.cos)])
    y = F.pick(F.case_of(at, [x, w], branches=two, otherwise=False), index=0)
    z = F.pick(F.call([w, y], body=body([ROW, ROW], lambda G, a, b: [G.exp(a), G.tanh(b)]), name="f"), index=1)
    (found,) = optimised(z)
    assert the([found], CASE_OF).inputs == (at, x)
    assert operators([found]) == Counter(case_of=1, call=1, sin=1, cos=1, tanh=1)


def test_operands_that_come_twice_and_numbers() -> None:
    F = new_namespace()
    x, at = F.placeholder("x", ROW), F.placeholder("at", INT)
    two = number(F, 2.0, dt.float32)
    branches = (body([ROW, ROW, TensorSpec((), dt.float32)], lambda G, a, b, k: [G.add(G.sin(G.subtract(a, b)), k)]),
                body([ROW, ROW, TensorSpec((), dt.float32)], lambda G, a, b, k: [G.multiply(G.add(a, b), k)]))
    y = F.pick(F.case_of(at, [x, x, two], branches=branches, otherwise=True), index=0)
    (found,) = optimised(y)
    assert the([found], CASE_OF).inputs == (at, x)
    assert not any(n.op.name == "filled" for n in postorder([found]))  # they are in the branches
    z = F.pick(F.call([x, x, two], body=branches[1], name="f"), index=0)
    (call,) = [n for n in postorder(optimised(z)) if n.op.name == "call"]
    assert call.inputs == (x,)


# ---- branches that are known
def known(F: Nodes, x: Node) -> list[Node]:
    branches = tuple([body([x.spec], lambda G, a, f=f: [f(G, a)]) for f in (Nodes.sin, Nodes.cos, Nodes.exp)])
    found = [F.pick(F.case_of(number(F, i), [x], branches=branches, otherwise=True), index=0) for i in (1, 7, -1)]
    return [F.add(F.add(found[0], found[1]), found[2])]


@everywhere(known)
def test_a_branch_that_is_known_takes_the_place_of_the_choice(program: Any) -> None:
    """1 is the second; 7 and -1 are none, and the last one serves for them."""
    found = operators(run(program))
    assert (found["sin"], found["cos"], found["exp"]) == (0, 1, 1)
    assert found["case_of"] == (1 if program.__name__ == "in_a_branch" else 0)


def test_a_number_that_no_branch_has_stays_an_error() -> None:
    F = new_namespace()
    x = F.placeholder("x", ROW)
    branches = (body([ROW], lambda G, a: [G.sin(a)]),)
    y = F.pick(F.case_of(number(F, 1), [x], branches=branches, otherwise=False), index=0)
    assert operators(optimised(y))["case_of"] == 1


def test_an_index_that_is_known_in_the_body_only() -> None:
    """The loop captures a number; in the body it chooses, and what it chooses makes a carried value constant."""
    F = new_namespace()
    x, w = F.placeholder("x", ROW), F.placeholder("w", ROW)
    branches = (body([ROW], lambda G, a: [G.sin(a)]), body([ROW], lambda G, a: [a]))

    def step(G: Nodes, c: Node, v: Node, at: Node) -> list[Node]:
        return [G.add(c, v), G.pick(G.case_of(at, [v], branches=branches, otherwise=False), index=0)]

    y, _ = scan(F, [x, w], [], [number(F, 1)], step)
    (found,) = optimised(y)
    assert operators([found]) == Counter(loop=1, add=1) and the([found], LOOP).inputs == (x, w)
