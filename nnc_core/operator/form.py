"""The form of an operator, read off its declaration: whether it can be written among others, and what it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from math import prod
from typing import Any, NamedTuple, TypeAlias

from nnc_core.base.cache import LRU
from nnc_core.base.command import Command
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen.work import weight_of_point
from nnc_core.operator.inlining import Composer, Element
from nnc_core.operator.loops import Index, IndexLike
from nnc_core.operator.program import Input, Program, Step
from nnc_core.type import Attributes, Op, TensorSpec

FORMS_KEPT = 4096

Affine: TypeAlias = "tuple[int, tuple[tuple[Any, int], ...]] | None"
"""offset + sum(coefficient * axis), with terms (axis, coefficient); None for an index of any other kind."""


class Kind(Enum):
    """Places where an operator can be written."""

    POINTWISE = "one element of the result needs no loop: it is written wherever it is read"
    FOLD = "one element is a fold of its own: it is written once for each row"
    ANCHOR = "it goes through loops of its own: others are written into these"
    OPAQUE = "it is a command by itself"


class Load(NamedTuple):
    """A read of an input for one element of the result.  Axes from the result's rank on are those of the fold."""

    argument: int
    at: tuple[Affine, ...]
    stage: tuple[int, ...] | None
    """Lengths of the axes of the fold within which it is read; None outside of folds."""
    times: int
    """How often it is read for the whole result."""
    scattered: bool
    """True if it is gathered, and few neighbours of it with it: reading it again costs as much as at first."""
    folded: int
    """Points of the fold within which it is read; 0 outside of folds."""
    here: bool
    """True if it is read just where the element of the result is asked for."""


NEIGHBOURS = 16
"""Elements side by side that are worth reading again: a line of the cache."""


class Form(NamedTuple):
    """The kind of an operator for operands of some shapes, and what it reads."""

    kind: Kind
    loads: tuple[Load, ...] = ()
    weight: int = 0
    """About how many additions one element takes as long as; of a fold, all that it is folded of."""
    operations: frozenset[str] = frozenset()
    """The names of its instructions."""

    @property
    def scattered(self) -> bool:
        """True if what it reads lies here and there."""
        return any(load.scattered for load in self.loads)


_FORMS: LRU[Any, Form] = LRU(FORMS_KEPT)


def form_of(op: Op, inputs: tuple[TensorSpec, ...], attributes: Attributes, spec: TensorSpec) -> Form:
    """The form of an operator of static shapes with one result."""
    return _FORMS.find((op, inputs, attributes, spec), lambda: _form(op, inputs, attributes, spec))


def _form(op: Op, inputs: tuple[TensorSpec, ...], attributes: Attributes, spec: TensorSpec) -> Form:
    apart = op.host or op.bodies or op.control_dependency or op.virtual or op.data_dependent or op.fallible
    if apart or op.reference is None:
        return Form(Kind.OPAQUE)
    step = Step(op, attributes, tuple([Input(i) for i in range(len(inputs))]), spec)
    for anchor in (None, 0):
        reader = _Reader(Program((step,), inputs, (0,), anchor=anchor))
        try:
            reader.write()
        except NotSupportedError:
            continue
        if anchor is not None:  # its axes are its own, not those of the result
            loads = [load._replace(at=(None,) * len(load.at), here=False) for load in reader.loads]
            return _form_of(Kind.ANCHOR, loads, reader.nest.build())
        return _form_of(Kind.FOLD if reader.folds else Kind.POINTWISE, reader.loads, reader.nest.build())
    return Form(Kind.OPAQUE)


def _form_of(kind: Kind, loads: Sequence[Load], nest: LoopNest) -> Form:
    operations = frozenset([i.operation for stage in nest.stages for i in stage.instructions])
    return Form(kind, tuple(loads), weight_of_point(nest), operations)


class _Reader(Composer):
    """Writes a step by itself, and notes what it reads."""

    def __init__(self, program: Program) -> None:
        layouts = tuple([x.layout() for x in program.inputs])
        super().__init__(Command("form", (program,), layouts, (program.steps[0].spec.layout(),)), program, ())
        self.loads: list[Load] = []
        self.points = 1
        self.lengths: tuple[int, ...] | None = None
        """Of the stage at hand; None outside of stages."""
        self.folds = False

    def outer(self, lengths: Sequence[int]) -> list[Index]:
        self.points = prod(lengths)
        return super().outer(lengths)

    @contextmanager
    def stage(self, *lengths: int) -> Iterator[list[Index]]:
        with super().stage(*lengths) as points:
            self.folds, self.lengths = True, lengths
            yield points
            self.lengths = None

    def _of_row(self, element: Element) -> Any:
        lengths, self.lengths = self.lengths, None
        value = super()._of_row(element)
        self.lengths = lengths
        return value

    def _written(self, element: Element) -> Any:
        if isinstance(element.operand, Input):
            at = tuple(map(_affine, element.at))
            folded = 0 if self.lengths is None else prod(self.lengths)
            times, scattered = self.points * max(folded, 1), self._is_scattered(element)
            here = not folded and at == _own_axes(self.program.steps[0].spec.ndim)
            self.loads.append(Load(element.operand.number, at, self.lengths, times, scattered, folded, here))
        return super()._written(element)

    def _is_scattered(self, element: Element) -> bool:
        shape = self.program.spec_of(element.operand).static_shape
        gathered = [k for k, i in enumerate(element.at) if not isinstance(i, int) and i.gather is not None]
        return bool(gathered) and prod(shape[gathered[-1] + 1 :]) < NEIGHBOURS


def _affine(index: IndexLike) -> Affine:
    if isinstance(index, int):
        return index, ()
    if index.divisor != 1 or index.gather is not None:
        return None
    return index.offset, tuple(sorted([(a, c) for a, c in index.coefficients.items() if c]))


def _own_axes(rank: int) -> tuple[Affine, ...]:
    return tuple([(0, ((axis, 1),)) for axis in range(rank)])
