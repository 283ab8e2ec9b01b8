"""Effects in bodies are kept when control flow is made smaller."""

from __future__ import annotations

from collections import Counter

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.operator.control import LOOP
from nnc_core.symbol import Literal, Node
from nnc_core.type import TensorSpec
from tests.graph.stack import GRAPHS, new_namespace
from tests.optimiser.control_flow import (
    INT,
    ROW,
    Seen,
    body,
    number,
    of,
    operators,
    optimised,
    printing,
    scan,
    the,
)


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
