"""Groups of nodes that one command computes, and which nodes need none."""

from __future__ import annotations

from typing import NamedTuple

from nnc_core.operator import CONSTANT, OPERATORS, PLACEHOLDER
from nnc_core.operator.control import is_tape
from nnc_core.operator.fused import FUSED
from nnc_core.symbol import Line, Lines, Node
from nnc_core.type import Attributes, Op

LEAVES = (PLACEHOLDER, CONSTANT)
COPY = OPERATORS["copy"]


class NodeGroup(NamedTuple):
    """One command to be: an operator, its inputs, and the node whose value it computes."""

    op: Op
    inputs: tuple[Node, ...]
    attributes: Attributes
    node: Node
    lines: tuple[Line | None, ...] = ()
    """Of each operator of a program."""
    left: str = ""
    """Reasons for which its code took no more in; empty where there are none."""

    @property
    def label(self) -> str:
        """The operator's name, and what it runs if that is several."""
        return f"fused({self.attributes[0]})" if self.op is FUSED else self.op.name

    @property
    def line(self) -> Line | None:
        """The user's line; all of them, where the command runs several operators."""
        return Lines(self.lines) if self.lines else self.node.line

    @staticmethod
    def of(node: Node) -> NodeGroup:
        """A node by itself."""
        lines = (node.line,) * len(node.attributes[0].steps) if node.op is FUSED else ()
        return NodeGroup(node.op, node.inputs, node.attributes, node, lines)


def with_own_outputs(outputs: dict[str, Node]) -> dict[str, Node]:
    """Outputs that are inputs, constants, numbers or views are copied, so that each output has memory of its own;
    equal outputs stay one node."""
    copies: dict[Node, Node] = {}

    def own(node: Node) -> Node:
        if (node.op not in LEAVES and node.op.view is None and not is_number(node)) or is_tape(node.spec):
            return node
        if node not in copies:
            copies[node] = Node(COPY, (node,), (), node.spec, node.line)
        return copies[node]

    return {name: own(node) for name, node in outputs.items()}


def is_number(node: Node) -> bool:
    """A number is known when the graph is compiled and needs no command."""
    return node.op.name == "filled" and node.shape == ()
