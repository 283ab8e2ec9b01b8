"""Interning: equal nodes of one graph are one node."""

from __future__ import annotations

from typing import Any

from nnc_core.base.line import Line
from nnc_core.symbol.node import Node


class Uid:
    """Makes a placeholder unlike every other."""

    __slots__ = ()


class Table:
    """The nodes of one graph under construction; dies with it, so that nothing is kept alive or locked."""

    __slots__ = ("line", "nodes")

    def __init__(self) -> None:
        self.nodes: dict[tuple[Any, ...], Node] = {}
        self.line: Line | None = None
        """The line that nodes made now are said to come from."""

    def adopt(self, node: Node) -> Node:
        """Make a node of another table known here; its inputs are known already."""
        return self.nodes.setdefault((node.op, node.inputs, node.attributes), node)
