"""Control flow made smaller as a whole: each rule with what it leaves, in bodies too, and what it must not drop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.graph import SymbolicGraph, reverse
from nnc_core.graph.drawing.unfolded import unfolded
from nnc_core.operator import OPERATORS, Nodes
from nnc_core.operator.control import CASE_OF, LOOP, LoopAttributes
from nnc_core.symbol import Body, Literal, Node, Number, bodies_of, postorder
from nnc_core.type import Dim, TensorSpec
from tests.graph.stack import GRAPHS, OPTIMISER, new_namespace

ROW, ROWS, INT = TensorSpec((3,), dt.float32), TensorSpec((4, 3), dt.float32), TensorSpec((), dt.int64)
BOOL = TensorSpec((), dt.boolean)


# ---- what is there
def inputs_of(outputs: Sequence[Node]) -> dict[str, Node]:
    return {x.attributes[0]: x for x in postorder(outputs) if x.op.name == "placeholder"}


def operators(outputs: Sequence[Node]) -> Counter[str]:
    """How often each operator stands anywhere, bodies included; placeholders and picks do not count."""
    found = Counter(node.op.name for node in everything(outputs))
    return Counter({k: v for k, v in found.items() if k not in ("placeholder", "pick")})


def everything(outputs: Sequence[Node]) -> list[Node]:
    """All nodes, those in bodies included."""
    graph = graph_of(outputs)
    return [drawn.node for drawn in unfolded(graph, graph.nodes)]


def graph_of(outputs: Sequence[Node]) -> SymbolicGraph:
    return SymbolicGraph(inputs_of(outputs), {f"y{i}": y for i, y in enumerate(outputs)})


def optimised(*outputs: Node) -> list[Node]:
    """Once; twice must be the same, to the letter."""
    once = OPTIMISER.run(outputs)
    again = OPTIMISER.run(once)
    assert str(graph_of(again)) == str(graph_of(once)) and again[0].op is once[0].op
    assert [y.spec for y in once] == [y.spec for y in outputs]
    return once


def of(loop: Node) -> LoopAttributes:
    return LoopAttributes.of(loop)


def the(outputs: Sequence[Node], op: Any) -> Node:
    (node,) = [n for n in postorder(outputs) if n.op is op]
    return node


# ---- how it is built
Step = Callable[..., Sequence[Node]]


def body(specs: Sequence[TensorSpec], step: Step, G: Nodes | None = None) -> Body:
    """step(G, *placeholders) as a body."""
    G = new_namespace() if G is None else G
    inputs = tuple([G.placeholder(f"p{i}", spec) for i, spec in enumerate(specs)])
    return Body(inputs, tuple(step(G, *inputs)))


def scan(F: Nodes, carried: Sequence[Node], rows: Sequence[Node], captured: Sequence[Node], step: Step,
         **options: Any) -> list[Node]:
    specs = [x.spec for x in carried] + [TensorSpec(x.shape[1:], x.dtype) for x in rows] + [x.spec for x in captured]
    return F.picks(F.loop(carried, rows, captured, body=body(specs, step), **{"length": 4, **options}))


def while_loop(F: Nodes, carried: Sequence[Node], captured: Sequence[Node], test: Step, step: Step) -> list[Node]:
    specs = [x.spec for x in (*carried, *captured)]
    return F.picks(F.loop(carried, (), captured, body=body(specs, step), cond=body(specs, test)))


def number(F: Nodes, value: Any, dtype: Any = dt.int64) -> Node:
    return F.filled(shape=(), number=Number(value, dtype))


def both(inner: Callable[..., list[Node]]) -> list[Callable[..., list[Node]]]:
    """A program by itself, in the body of a loop, and in a branch inside of a call: the rules reach everywhere."""

    def in_a_loop(F: Nodes, x: Node) -> list[Node]:
        return scan(F, [x], [], [], lambda G, c: inner(G, c)[:1])

    def in_a_branch(F: Nodes, x: Node) -> list[Node]:
        at = F.placeholder("at", INT)
        chosen = [body([x.spec], lambda G, y: inner(G, y)[:1]), body([x.spec], lambda G, y: [y])]
        called = body([INT, x.spec],
                      lambda G, i, y: [G.pick(G.case_of(i, [y], branches=tuple(chosen), otherwise=True), index=0)])
        return [F.pick(F.call([at, x], body=called, name="f"), index=0)]

    return [inner, in_a_loop, in_a_branch]


def run(program: Callable[..., list[Node]]) -> list[Node]:
    F = new_namespace()
    return optimised(*program(F, F.placeholder("x", ROW)))


def everywhere(inner: Callable[..., list[Node]]) -> Any:
    return pytest.mark.parametrize("program", both(inner), ids=["outside", "in a loop", "in a branch"])


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


# ---- what a loop carries without changing it
def constant(F: Nodes, x: Node) -> list[Node]:
    y, w, n = scan(F, [x, F.exp(x), number(F, 3)], [], [],
                   lambda G, c, w, n: [G.multiply(G.sin(c), G.cast(n, dtype=dt.float32)), w, n])
    return [F.add(F.multiply(y, w), F.cast(n, dtype=dt.float32))]


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


# ---- other rewrites go into bodies
def test_bodies_are_rewritten_folded_and_shared() -> None:
    F = new_namespace()
    x = F.placeholder("x", ROW)

    def inner(G: Nodes, c: Node) -> list[Node]:
        table = G.constant(Literal(np.array([1, 2, 3], np.int32)), TensorSpec((3,), dt.int32))
        folded = G.cast(G.add(table, number(G, 1, dt.int32)), dtype=dt.float32)
        again = G.add(G.multiply(G.sin(c), 1.0), G.reshape(G.reshape(G.sin(c), shape=(3, 1)), shape=(3,)))
        return [G.add(again, folded)]

    def outer(G: Nodes, c: Node) -> list[Node]:
        return scan(G, [c], [], [], inner, length=2)

    found = optimised(*scan(F, [x], [], [], outer))
    assert operators(found) == Counter(loop=2, sin=1, add=2, constant=1)


# ---- constants from around bodies
TABLE = np.array([1, 2, 3], np.int32)


def table(F: Nodes, values: Any = TABLE) -> Node:
    return F.constant(Literal(np.asarray(values)), TensorSpec(np.shape(values), np.asarray(values).dtype))


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


# ---- effects
class Seen:
    """A function of the host."""

    def __call__(self, arrays: Any, outputs: Any) -> Any:
        raise AssertionError("nothing runs here")

    def pull(self, *_: Any) -> Any:
        raise AssertionError("nothing runs here")


def printing(F: Nodes, x: Node, seen: Seen | None = None) -> Node:
    """x, after a function of the host has seen it."""
    return F.after(x, [F.callback([x], function=Seen() if seen is None else seen, spec=BOOL)])


def test_what_has_effects_is_neither_dropped_nor_merged() -> None:
    """In a loop, a branch and a call; equal calls of different callbacks stay two, one callback of two loops is one."""
    F = new_namespace()
    x, at = F.placeholder("x", ROW), F.placeholder("at", INT)
    (a,) = scan(F, [x], [], [], lambda G, c: [printing(G, c)])
    (b,) = scan(F, [x], [], [], lambda G, c: [printing(G, c)])
    branches = (body([ROW], lambda G, y: [printing(G, y)]), body([ROW], lambda G, y: [y]))
    c = F.pick(F.case_of(at, [x], branches=branches, otherwise=True), index=0)
    d = F.pick(F.call([x], body=body([ROW], lambda G, y: [printing(G, y)]), name="f"), index=0)
    found = operators(optimised(a, b, c, d))
    assert found["callback"] == found["after"] == 4 and found["loop"] == 2
    seen = Seen()
    taped, plain = (scan(F, [x], [], [], lambda G, c, k=k: [printing(G, G.sin(c), seen), *[c] * k]) for k in (1, 0))
    found = operators(optimised(F.add(taped[0], plain[0]), taped[1]))
    assert found["loop"] == found["callback"] == 1


def test_a_value_that_is_carried_unchanged_but_seen_stays_carried() -> None:
    """It never changes, but each round shows it."""
    F = new_namespace()
    x = F.placeholder("x", ROW)
    (y,) = scan(F, [x], [], [], lambda G, c: [printing(G, c)])
    (found,) = optimised(y)
    assert of(the([found], LOOP)).carried_count == 1


def test_a_branch_with_effects_that_is_known_keeps_them() -> None:
    F = new_namespace()
    x = F.placeholder("x", ROW)
    branches = (body([ROW], lambda G, y: [printing(G, y)]), body([ROW], lambda G, y: [G.sin(y)]))
    y = F.pick(F.case_of(number(F, 0), [x], branches=branches, otherwise=False), index=0)
    assert operators(optimised(y)) == Counter(callback=1, after=1)


def test_the_state_of_random_numbers_goes_on() -> None:
    """Draws that nobody reads are dropped; the key, which is read afterwards, moves as often as it did."""
    F = new_namespace()
    key, x = F.placeholder("key", TensorSpec((2,), dt.uint64)), F.placeholder("x", ROW)

    def step(G: Nodes, k: Node, c: Node) -> list[Node]:
        return [G.add(k, 1), G.add(c, G.uniform(k, shape=(3,), dtype=dt.float32))]

    after, _ = scan(F, [key, x], [], [], step)
    (found,) = optimised(after)
    assert operators([found]) == Counter(loop=1, add=1, filled=1) and the([found], LOOP).inputs == (key,)


def test_two_inputs_of_a_graph_stay_two() -> None:
    """An optimised graph has the inputs that it had, whatever its loops read of them."""
    F = new_namespace()
    x, w = F.placeholder("x", ROW), F.placeholder("w", ROW)
    y, _ = scan(F, [x, w], [], [], lambda G, c, v: [G.sin(c), G.cos(v)])
    graph = GRAPHS.optimise(SymbolicGraph({"x": x, "w": w}, {"y": y}))
    assert graph.list_inputs() == ["x", "w"] and operators([graph.outputs["y"]]) == Counter(loop=1, sin=1)
