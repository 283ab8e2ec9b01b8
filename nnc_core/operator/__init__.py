"""Floor 5: every operator, one declaration each, as methods of a namespace over any kind of value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

from nnc_core.base.dtype import DType, int64, is_inexact
from nnc_core.operator.activation import Activations
from nnc_core.operator.attention import Attention
from nnc_core.operator.bits import Bits
from nnc_core.operator.complex import Complex
from nnc_core.operator.control import CONTROL, PICK, TOGETHER, Control
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
from nnc_core.operator.integer_products import IntegerProducts
from nnc_core.operator.linear import Linear
from nnc_core.operator.movement import Movement
from nnc_core.operator.normalisation import Normalisations
from nnc_core.operator.ordering import Ordering
from nnc_core.operator.palettes import Palettes
from nnc_core.operator.random import Random
from nnc_core.operator.recurrent import Recurrent
from nnc_core.operator.reduction import Reduction
from nnc_core.operator.replacing import Replacement, comes_to, replaced, replacements
from nnc_core.operator.representation import Representation
from nnc_core.operator.roots import Roots
from nnc_core.operator.rounding import Rounding
from nnc_core.operator.scattering import Scattering
from nnc_core.operator.selection import Selection
from nnc_core.operator.softmax import Softmaxes
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
    Cumulative[V], Ordering[V], Linear[V], IntegerProducts[V], Solvers[V], Decompositions[V], Eigen[V], Equations[V],
    Fourier[V], Movement[V],
    Indexing[V], Scattering[V], Selection[V], Windows[V], Activations[V], Softmaxes[V], Normalisations[V],
    Attention[V], Recurrent[V], Random[V], Creation[V], Transfer[V], Control[V], Hosted[V], Palettes[V], Generic[V],
):  # fmt: skip
    """All operators over one kind of value."""


class Nodes(Namespace[Node]):
    """All operators over nodes: building a graph into one interning table.

    Subclasses change nodes as they are made (`simplify`); `Operator.open` makes them all.
    """

    def __init__(self, operator: Operator, table: Table) -> None:
        self.operator, self.symbol, self.table = operator, operator.symbol, table

    def apply(self, op: Op, inputs: tuple[Node | float, ...], attributes: Attributes) -> Node:
        operands = self._promoted_nodes(op, inputs)
        if op is PICK and operands[0].op is TOGETHER:
            return operands[0].inputs[attributes[0]]
        if self.operator.replaced:
            found = self.operator.instead(self, op, operands, attributes)
            if found is not None:
                return found  # type: ignore[no-any-return]
        return self.simplify(self.symbol.node(self.table, op, operands, attributes))

    def _promoted_nodes(self, op: Op, inputs: tuple[Node | float, ...]) -> tuple[Node, ...]:
        """The inputs themselves where they are nodes that agree."""
        dtype: DType | None = None
        for x in inputs:
            if x.__class__ is not Node:
                return self.operands(op, inputs)
            if dtype is None:
                dtype = x.spec.dtype
            elif x.spec.dtype is not dtype and op.promote:
                return self.operands(op, inputs)
        if op.to_float and not is_inexact(dtype):  # type: ignore[arg-type]
            return self.operands(op, inputs)
        return inputs  # type: ignore[return-value]

    def simplify(self, node: Node) -> Node:
        """The node that stands for one that has just been made: itself."""
        return node

    def kept(self, node: Node) -> Node:
        """The node that stands for one of a graph that is copied, whose inputs stay as they were."""
        return self.simplify(node)

    def follow(self, old: Node, new: Node) -> None:
        """Learn that a node of a graph that is copied is now another one."""

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
        return self.operator.open()

    def for_bodies(self, like: Node) -> Nodes:
        return self.operator.open()

    def at_line_of(self, value: Node) -> None:
        self.table.line = value.line

    def placeholder(self, name: str, spec: TensorSpec) -> Node:
        """A fresh input, unlike every other even if name and spec are equal."""
        return self.symbol.node(self.table, PLACEHOLDER, (), (name, spec, Uid()))

    def constant(self, literal: Literal, spec: TensorSpec) -> Node:
        return self.symbol.node(self.table, CONSTANT, (), (literal, spec))


N = TypeVar("N", bound=Nodes)


class Operator:
    """Layer 5: the maker of namespaces over nodes, and what operators are on its stack.

    A method of a subclass that is called like an operator takes its place, in eager, deferred and compiled code:

        class Muted(Operator):
            def tanh(self, F, x):
                return F.multiply(x, 0.0)

    It gets the namespace F, promoted inputs, and attributes by name, and keeps shape and dtype; its gradient is that
    of what it is made of.  Composites whose bodies use a replaced operator are computed by their bodies.
    """

    def __init__(self, symbol: Symbol) -> None:
        self.symbol = symbol
        self.replaced: Mapping[Op, Replacement] = replacements(self, Operator)
        self._reached: dict[Any, bool] = {}

    @overload
    def open(self, kind: Callable[[Operator, Table], N], table: Table | None = None) -> N: ...
    @overload
    def open(self, *, table: Table | None = None) -> Nodes: ...
    def open(self, kind: Any = Nodes, table: Table | None = None) -> Any:
        """A namespace of that kind, with a table of its own or the one given."""
        return kind(self, Table() if table is None else table)

    def instead(self, F: Any, op: Op, inputs: Sequence[Any], attributes: Attributes,
                spec: TensorSpec | None = None) -> Any:
        """The result that takes an operator's place on this stack; None for the operator itself."""
        rule = self.replaced.get(op)
        if rule is not None:
            if spec is None:
                spec = self.symbol.shape.infer(op, tuple([x.spec for x in inputs]), attributes)
            return replaced(rule, self, F, op, inputs, attributes, spec)
        if op.decompose is not None and self.reaches(op, tuple([x.spec for x in inputs]), attributes):
            return op.decompose(F, *inputs, *attributes)
        return None

    def reaches(self, op: Op, specs: tuple[TensorSpec, ...], attributes: Attributes) -> bool:
        """Tell whether the body of a composite comes to an operator that is replaced."""
        if op.decompose is None or not self.replaced:
            return False
        key = (op, specs, attributes)
        known = self._reached.get(key)
        if known is None:
            F = Operator(self.symbol).open()
            made = op.decompose(F, *[F.placeholder("x", spec) for spec in specs], *attributes)
            known = comes_to(made, self.replaced, lambda node: self.reaches(
                node.op, tuple([x.spec for x in node.inputs]), node.attributes))
            self._reached[key] = known
        return known
