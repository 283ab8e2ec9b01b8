"""Floor 4: nodes (tensor symbols), their interning, their source lines."""

from __future__ import annotations

from nnc_core.base.errors import AttributeValueError
from nnc_core.base.line import Line, Lines, called_at, is_users, show_line, user_line, users_frame
from nnc_core.shape import Shape
from nnc_core.symbol.body import Body, bodies_in, bodies_of, in_sequence, map_bodies
from nnc_core.symbol.collector import without_collector
from nnc_core.symbol.node import Node, Table, Uid
from nnc_core.symbol.number import Literal, Number, checked_number, float_attribute, is_negative_zero, number_of
from nnc_core.symbol.order import postorder
from nnc_core.type import Attributes, Op

__all__ = [
    "Body", "Line", "Lines", "Literal", "Node", "Number", "Symbol", "Table", "Uid", "bodies_in", "bodies_of",
    "called_at", "checked_number", "float_attribute", "in_sequence", "is_negative_zero", "is_users", "map_bodies",
    "number_of", "postorder", "show_line", "user_line", "users_frame", "without_collector",
]  # fmt: skip


class Symbol:
    """Layer 4: makes nodes."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def node(self, table: Table, op: Op, inputs: tuple[Node, ...], attributes: Attributes) -> Node:
        """The node of that table for this operator on these inputs; its spec is inferred when it is new."""
        key = (op, inputs, attributes)
        try:
            node = table.nodes.get(key)
        except TypeError:
            raise AttributeValueError(f"attributes {attributes} cannot be compared", operator=op.name,
                                      hint="give tuples instead of lists or arrays") from None
        if node is None:
            spec = self.shape.once(table.specs, op, tuple([x.spec for x in inputs]), attributes)
            node = table.nodes[key] = Node(op, inputs, attributes, spec, table.line)
        return node
