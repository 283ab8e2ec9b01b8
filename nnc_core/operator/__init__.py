"""Floor 5: every operator, one declaration each, as methods of a namespace over any kind of value."""

from __future__ import annotations

from typing import Any, Generic

from nnc_core.base.dtype import DType, is_float
from nnc_core.operator.control import CONTROL, Control
from nnc_core.operator.creation import CONSTANT, PLACEHOLDER, Creation, Transfer
from nnc_core.operator.declare import OPERATORS, Base, V
from nnc_core.operator.elementwise import Arithmetic, Casts, Comparison, Functions, Logic
from nnc_core.operator.host import Hosted
from nnc_core.operator.indexing import Indexing
from nnc_core.operator.linear import Linear
from nnc_core.operator.movement import Movement
from nnc_core.operator.neural import Neural
from nnc_core.operator.random import Random
from nnc_core.operator.reduction import Reduction
from nnc_core.operator.selection import Selection
from nnc_core.operator.window import Windows
from nnc_core.symbol import Literal, Node, Symbol, Table, Uid, checked_number
from nnc_core.type import Attributes, Op, TensorSpec

__all__ = ["CONSTANT", "CONTROL", "OPERATORS", "PLACEHOLDER", "Base", "Namespace", "Nodes", "Operator"]


class Namespace(
    Arithmetic[V], Functions[V], Comparison[V], Logic[V], Casts[V], Reduction[V], Linear[V], Movement[V], Indexing[V],
    Selection[V], Windows[V], Neural[V], Random[V], Creation[V], Transfer[V], Control[V], Hosted[V],
    Generic[V],
):  # fmt: skip
    """All operators over one kind of value."""


class Nodes(Namespace[Node]):
    """All operators over nodes: building a graph into one interning table."""

    def __init__(self, symbol: Symbol, table: Table) -> None:
        self.symbol, self.table = symbol, table

    def _apply(self, op: Op, inputs: tuple[Node | float, ...], attributes: Attributes) -> Node:
        dtype: DType | None = None
        for x in inputs:
            if x.__class__ is not Node:
                return self.symbol.node(self.table, op, self._operands(op, inputs), attributes)
            if dtype is None:
                dtype = x.spec.dtype
            elif x.spec.dtype is not dtype and op.promote:
                return self.symbol.node(self.table, op, self._operands(op, inputs), attributes)
        if op.to_float and not is_float(dtype):  # type: ignore[arg-type]
            inputs = self._operands(op, inputs)
        return self.symbol.node(self.table, op, inputs, attributes)  # type: ignore[arg-type]

    def _number(self, value: Any, dtype: DType, like: Node | None) -> Node:
        return self.filled(shape=(), number=checked_number(value, dtype))

    def _is_value(self, x: Any) -> bool:
        return isinstance(x, Node)

    def fresh(self) -> Nodes:
        """The same kind of namespace with a table of its own: for bodies, whose nodes are not those around them."""
        return Nodes(self.symbol, Table())

    def _bodies(self, like: Node) -> Nodes:
        return Nodes(self.symbol, Table())

    def _from(self, value: Node) -> None:
        self.table.line = value.line

    def placeholder(self, name: str, spec: TensorSpec) -> Node:
        """A fresh input, unlike every other even if name and spec are equal."""
        return self.symbol.node(self.table, PLACEHOLDER, (), (name, spec, Uid()))

    def constant(self, literal: Literal, spec: TensorSpec) -> Node:
        return self.symbol.node(self.table, CONSTANT, (), (literal, spec))


class Operator:
    """Layer 5: opens namespaces over nodes."""

    def __init__(self, symbol: Symbol) -> None:
        self.symbol = symbol

    def open(self, table: Table | None = None) -> Nodes:
        return Nodes(self.symbol, Table() if table is None else table)
