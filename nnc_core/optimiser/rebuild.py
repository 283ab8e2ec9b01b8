"""Copying graphs node by node, into the bodies of control flow too, with each node changed as it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from nnc_core.operator import Nodes, Operator
from nnc_core.operator.control import CALL, PICK
from nnc_core.symbol import Body, Node, Table, map_bodies, postorder
from nnc_core.type import Attributes, Op

Make: TypeAlias = Callable[[Nodes, Op, "tuple[Node, ...]", Attributes], Node]


def rebuild(outputs: Sequence[Node], F: Nodes, make: Make | None = None,
            replaced: Mapping[Node, Node] | None = None, order: Sequence[Node] | None = None) -> list[Node]:
    """Copy a graph into F's table, inputs first; nodes that nothing changes stay themselves.  Lines follow.

    `make` builds each node instead of F; `replaced` gives nodes that stand for others; `order` is all that the outputs
    depend on, where it is known.
    """
    new: dict[Node, Node] = dict(replaced or {})
    changed = bool(F.operator.replaced)
    for node in order or postorder(outputs, {id(n) for n in new}):
        if node in new:
            continue
        F.table.line = node.line
        inputs = tuple(map(new.__getitem__, node.inputs))
        attributes = node.attributes
        if node.op.bodies:
            attributes = map_bodies(attributes, lambda body: rebuild_body(body, F, make))
        if make is not None:
            new[node] = make(F, node.op, inputs, attributes)
        elif node.op.bodies:
            new[node] = F.apply(node.op, inputs, attributes)
        elif inputs == node.inputs:
            adopted = F.table.adopt(node)
            new[node] = F.apply(node.op, inputs, node.attributes) if changed else F.kept(adopted)
        else:
            new[node] = F.apply(node.op, inputs, node.attributes)
        if new[node] is not node:
            F.follow(node, new[node])
    F.table.line = None
    return [new[o] for o in outputs]


def rebuild_body(body: Body, F: Nodes, make: Make | None = None) -> Body:
    """A body as `rebuild` makes it; the same object if nothing changes."""
    nodes = rebuild([*body.inputs, *body.outputs], F.fresh(), make)
    split = len(body.inputs)
    if all(a is b for a, b in zip(nodes, [*body.inputs, *body.outputs], strict=True)):
        return body
    return Body(tuple(nodes[:split]), tuple(nodes[split:]))


def inline_body(body: Body, F: Nodes, inputs: Sequence[Node]) -> list[Node]:
    """The nodes of a body among those of F, its placeholders replaced."""
    return rebuild(body.outputs, F, replaced=dict(zip(body.inputs, inputs, strict=True)))


class Expanding(Nodes):
    """Composites are replaced by their bodies when they are made."""

    def __init__(self, operator: Operator, table: Table, wanted: Callable[[Node], bool]) -> None:
        super().__init__(operator, table)
        self.wanted = wanted

    def fresh(self) -> Expanding:
        return self.operator.open(partial(Expanding, wanted=self.wanted))

    def simplify(self, node: Node) -> Node:
        if node.op.decompose is None or not self.wanted(node):
            return node
        return node.op.decompose(self, *node.inputs, *node.attributes)  # type: ignore[no-any-return]


class Inlining(Nodes):
    """Calls replaced by their bodies: results are picked from these instead."""

    def __init__(self, operator: Operator, table: Table) -> None:
        super().__init__(operator, table)
        self.inlined: dict[Node, list[Node]] = {}

    def fresh(self) -> Inlining:
        return self.operator.open(Inlining)

    def simplify(self, node: Node) -> Node:
        if node.op is not PICK or node.inputs[0].op is not CALL:
            return node
        (call,), (index,) = node.inputs, node.attributes
        if call not in self.inlined:
            self.inlined[call] = inline_body(call.attributes[0], self, call.inputs)
        return self.inlined[call][index]
