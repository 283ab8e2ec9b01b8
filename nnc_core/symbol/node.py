"""The tensor symbol: a node of a graph, and the table in which equal nodes of one graph are one."""

from __future__ import annotations

from typing import Any

from nnc_core.base.line import Line, show_line
from nnc_core.shape import Specs
from nnc_core.type import Attributes, Op, Specified, TensorSpec


class Node(Specified):
    """An operator applied to nodes.  Never changed; compared by identity; names no device."""

    __slots__ = ("attributes", "inputs", "line", "op", "spec")
    tracked = True  # derivatives go through every node; through values of the tape only where they are wanted

    def __init__(self, op: Op, inputs: tuple[Node, ...], attributes: Attributes, spec: TensorSpec,
                 line: Line | None) -> None:
        self.op, self.inputs, self.attributes, self.spec, self.line = op, inputs, attributes, spec, line

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.spec} {show_line(self.line)}>"


class Uid:
    """Makes a placeholder unlike every other."""

    __slots__ = ()


class Table:
    """The nodes of one graph under construction; dies with it, so that nothing is kept alive or locked."""

    __slots__ = ("line", "nodes", "specs")

    def __init__(self) -> None:
        self.nodes: dict[tuple[Any, ...], Node] = {}
        self.specs: Specs = {}
        """What was inferred for kinds of operands: layers are alike."""
        self.line: Line | None = None
        """The line that nodes made now are said to come from."""

    def adopt(self, node: Node) -> Node:
        """Make a node of another table known here; its inputs are known already."""
        return self.nodes.setdefault((node.op, node.inputs, node.attributes), node)
