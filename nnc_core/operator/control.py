"""Control flow: nodes that hold bodies, and the picking of one result among several.

These operators have no kernels: the engine turns them into records (jumps, loops, sub-lists), and their derivatives,
which take whole bodies apart, are in `nnc_core.graph`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from nnc_core.operator.declare import Base, V
from nnc_core.shape import control as rule
from nnc_core.symbol import Body, Node
from nnc_core.type import Dim, DimLike, Op, TensorSpec

if TYPE_CHECKING:
    from nnc_core.operator import Namespace

W = TypeVar("W")

PICK = Op("pick", ("x",), ("index",), rule.pick, storage=True,
          doc="One of the results of an operator that has several.")
LOOP = Op("loop", ("*operands",), ("cond", "body", "length", "carried", "scanned", "reverse"), rule.loop,
          doc="A body run again and again: while a condition holds, or along a first axis.", bodies=True, storage=True)
CASE_OF = Op("case_of", ("index", "*operands"), ("branches", "otherwise"), rule.case_of,
             doc="One of several bodies, chosen by an integer.", bodies=True, storage=True)
CALL = Op("call", ("*operands",), ("body", "name"), rule.call, doc="A body run once: a compiled function.",
          bodies=True, storage=True)
TOGETHER = Op("together", ("*x",), (), rule.together, doc="Several values as the results of one operator.",
              reference=lambda *arrays: arrays, vjp=lambda F, g, y, *x: g, jvp=lambda F, tangents, y, *x: tangents,
              storage=True)
CONTROL = {op.name: op for op in (PICK, TOGETHER, LOOP, CASE_OF, CALL)}
"""They are not among OPERATORS, whose members all have kernels, expressions or bodies of their own."""

TRIPS = Dim("trips")
"""The length of what a loop under a condition stacks up: known when it has run."""


def is_tape(spec: TensorSpec) -> bool:
    """Tell whether a loop that runs while a condition holds stacks it up: only loops read it, row by row."""
    return bool(spec.shape) and spec.shape[0].__class__ is Dim and spec.shape[0] == TRIPS


def add_rows(F: Namespace[V], a: V, b: V) -> V:
    """a + b of two tapes of the same loop."""
    G = F.for_bodies(a)
    row = TensorSpec(a.spec.shape[1:], a.spec.dtype)
    rows = tuple([G.placeholder(name, row) for name in "ab"])
    return F.pick(F.loop((), (a, b), (), body=Body(rows, (G.add(*rows),))), index=0)


class LoopAttributes(NamedTuple):
    """The attributes of LOOP, in their order."""

    cond: Body | None
    """The loop goes on while its only result holds; it takes the carried and the captured values."""
    body: Body
    """One round: takes carried values, a row of each scanned value and captured values, gives carried values and rows
    to be stacked up."""
    length: DimLike
    """The number of rounds, where it is known: that of the rows; otherwise TRIPS."""
    carried_count: int
    scanned_count: int
    reverse: bool
    """Rounds go from the last row to the first."""

    @staticmethod
    def of(loop: Any) -> LoopAttributes:
        """Those of a node, a value or a command."""
        return LoopAttributes._make(loop.attributes)

    def split(self, of_operands: Sequence[W]) -> tuple[list[W], list[W], list[W]]:
        """Something for each operand, as that of the carried, of the scanned and of the captured ones."""
        n, end = self.carried_count, self.carried_count + self.scanned_count
        return list(of_operands[:n]), list(of_operands[n:end]), list(of_operands[end:])

    @property
    def carried(self) -> tuple[Node, ...]:
        """The placeholders of the carried values in the body."""
        return self.body.inputs[: self.carried_count]

    @property
    def scanned(self) -> tuple[Node, ...]:
        """The placeholders of the rows in the body."""
        return self.body.inputs[self.carried_count : self.carried_count + self.scanned_count]

    @property
    def captured(self) -> tuple[Node, ...]:
        """The placeholders of the captured values in the body."""
        return self.body.inputs[self.carried_count + self.scanned_count :]

    @property
    def carried_on(self) -> tuple[Node, ...]:
        """The results that the next round begins with."""
        return self.body.outputs[: self.carried_count]

    @property
    def stacked(self) -> tuple[Node, ...]:
        """The results that are rows of the loop's."""
        return self.body.outputs[self.carried_count :]


class Control(Base[V], Generic[V]):
    def pick(self, x: V, *, index: int) -> V:
        """One of the results of x, an operator that has several."""
        return self.apply(PICK, (x,), (index,))

    def picks(self, x: V) -> list[V]:
        """All results."""
        parts: Any = x.spec
        return [self.pick(x, index=i) for i in range(len(parts.parts))]

    def together(self, *x: V) -> V:
        """Several values as the results of one operator: the end of a composite that has several."""
        return self.apply(TOGETHER, x, ())

    def loop(self, carried: Sequence[V], scanned: Sequence[V], captured: Sequence[V], *, body: Body,
             cond: Body | None = None, length: DimLike = TRIPS, reverse: bool = False) -> V:
        """Results: the carried values at the end, then the body's other outputs stacked along a new first axis.

        The body takes carried values, one row of each scanned value, and the captured ones; the condition the carried
        and captured ones.  `length` is that of the scanned and stacked values; `reverse` goes from the last row to
        the first.  With a condition there is nothing scanned and the length is TRIPS.
        """
        return self.apply(LOOP, (*carried, *scanned, *captured),
                          LoopAttributes(cond, body, length, len(carried), len(scanned), reverse))

    def case_of(self, index: V, operands: Sequence[V], *, branches: tuple[Body, ...], otherwise: bool) -> V:
        """The results of branch number `index`.  With `otherwise` the last branch serves every number that none of
        the others has; without it, such a number is an error when the graph runs."""
        return self.apply(CASE_OF, (index, *operands), (branches, otherwise))

    def call(self, operands: Sequence[V], *, body: Body, name: str) -> V:
        """The results of a body."""
        return self.apply(CALL, tuple(operands), (body, name))
