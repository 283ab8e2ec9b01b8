"""Floor 5: every operator, one declaration each, as methods of a namespace over any kind of value."""

from __future__ import annotations

from typing import Any, Generic

from nnc_core.base.dtype import DType, int64, is_inexact
from nnc_core.operator.bits import Bits
from nnc_core.operator.complex import Complex
from nnc_core.operator.control import CONTROL, Control
from nnc_core.operator.creation import CONSTANT, PLACEHOLDER, Creation, Transfer
from nnc_core.operator.cumulative import Cumulative
from nnc_core.operator.declare import OPERATORS, Base, V
from nnc_core.operator.decompositions import Decompositions
from nnc_core.operator.eigen import Eigen
from nnc_core.operator.elementwise import Arithmetic, Casts, Comparison, Functions, Logic
from nnc_core.operator.equations import Equations
from nnc_core.operator.exponentials import Exponentials
from nnc_core.operator.fft import Fourier
from nnc_core.operator.gamma import GammaFunctions
from nnc_core.operator.host import Hosted
from nnc_core.operator.indexing import Indexing
from nnc_core.operator.linear import Linear
from nnc_core.operator.movement import Movement
from nnc_core.operator.neural import Neural
from nnc_core.operator.ordering import Ordering
from nnc_core.operator.palettes import Palettes
from nnc_core.operator.random import Random
from nnc_core.operator.reduction import Reduction
from nnc_core.operator.representation import Representation
from nnc_core.operator.roots import Roots
from nnc_core.operator.rounding import Rounding
from nnc_core.operator.scattering import Scattering
from nnc_core.operator.selection import Selection
from nnc_core.operator.solvers import Solvers
from nnc_core.operator.special import BesselFunctions, ErrorFunctions
from nnc_core.operator.summaries import Summaries
from nnc_core.operator.trigonometry import Hyperbolic, Trigonometry
from nnc_core.operator.window import Windows
from nnc_core.symbol import Literal, Node, Symbol, Table, Uid, checked_number
from nnc_core.type import Attributes, Dim, Op, TensorSpec

__all__ = ["CONSTANT", "CONTROL", "OPERATORS", "PLACEHOLDER", "Base", "Namespace", "Nodes", "Operator"]


class Namespace(
    Arithmetic[V], Functions[V], Exponentials[V], Trigonometry[V], Hyperbolic[V], Roots[V], Rounding[V],
    Representation[V], Bits[V], ErrorFunctions[V], BesselFunctions[V], GammaFunctions[V], Comparison[V], Logic[V],
    Casts[V], Complex[V], Reduction[V], Summaries[V],
    Cumulative[V], Ordering[V], Linear[V], Solvers[V], Decompositions[V], Eigen[V], Equations[V],
    Fourier[V], Movement[V],
    Indexing[V], Scattering[V], Selection[V], Windows[V], Neural[V], Random[V], Creation[V], Transfer[V], Control[V],
    Hosted[V], Palettes[V], Generic[V],
):  # fmt: skip
    """All operators over one kind of value."""


class Nodes(Namespace[Node]):
    """All operators over nodes: building a graph into one interning table."""

    def __init__(self, symbol: Symbol, table: Table) -> None:
        self.symbol, self.table = symbol, table

    def apply(self, op: Op, inputs: tuple[Node | float, ...], attributes: Attributes) -> Node:
        dtype: DType | None = None
        for x in inputs:
            if x.__class__ is not Node:
                return self.symbol.node(self.table, op, self.operands(op, inputs), attributes)
            if dtype is None:
                dtype = x.spec.dtype
            elif x.spec.dtype is not dtype and op.promote:
                return self.symbol.node(self.table, op, self.operands(op, inputs), attributes)
        if op.to_float and not is_inexact(dtype):  # type: ignore[arg-type]
            inputs = self.operands(op, inputs)
        return self.symbol.node(self.table, op, inputs, attributes)  # type: ignore[arg-type]

    def operands(self, op: Op, inputs: tuple[Node | float, ...]) -> tuple[Node, ...]:
        """A named dimension beside a node is counted when the graph runs."""
        if any([isinstance(x, Dim) for x in inputs]):
            dtype = next((x.dtype for x in inputs if isinstance(x, Node)), int64)
            inputs = tuple([self._size(x, dtype) if isinstance(x, Dim) else x for x in inputs])
        return super().operands(op, inputs)

    def _size(self, d: Dim, dtype: DType) -> Node:
        return self.cast(self.sum(self.full(shape=(d,), value=1, dtype=int64), axis=(0,)), dtype=dtype)

    def number(self, value: Any, dtype: DType, like: Node | None) -> Node:
        return self.filled(shape=(), number=checked_number(value, dtype))

    def is_value(self, x: Any) -> bool:
        return isinstance(x, Node)

    def fresh(self) -> Nodes:
        """The same kind of namespace with a table of its own: for bodies, whose nodes are not those around them."""
        return Nodes(self.symbol, Table())

    def for_bodies(self, like: Node) -> Nodes:
        return Nodes(self.symbol, Table())

    def at_line_of(self, value: Node) -> None:
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
