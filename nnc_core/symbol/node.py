"""The tensor symbol: a node of a graph, written once."""

from __future__ import annotations

from nnc_core.base.line import Line, show_line
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
