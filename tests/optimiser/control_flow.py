"""Loops and branches built node by node, and what is left of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.graph import SymbolicGraph
from nnc_core.graph.drawing.unfolded import unfolded
from nnc_core.operator import Nodes
from nnc_core.operator.control import LoopAttributes
from nnc_core.symbol import Body, Literal, Node, Number, postorder
from nnc_core.type import TensorSpec
from tests.graph.stack import OPTIMISER, new_namespace

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


# ---- what a loop carries without changing it
def constant(F: Nodes, x: Node) -> list[Node]:
    y, w, n = scan(F, [x, F.exp(x), number(F, 3)], [], [],
                   lambda G, c, w, n: [G.multiply(G.sin(c), G.cast(n, dtype=dt.float32)), w, n])
    return [F.add(F.multiply(y, w), F.cast(n, dtype=dt.float32))]


# ---- constants from around bodies
TABLE = np.array([1, 2, 3], np.int32)


def table(F: Nodes, values: Any = TABLE) -> Node:
    return F.constant(Literal(np.asarray(values)), TensorSpec(np.shape(values), np.asarray(values).dtype))


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
