"""The loop nest of a program: the formulas and nests of its operators written into one.

A value is written where it is read, from the results back: an element of a result asks for elements of what its step
reads.  What is folded, and what depends on the row alone, is written once for each row, before what goes through it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, TypeAlias

from nnc_core.base.command import Command
from nnc_core.base.dtype import boolean
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.loopnest import Access, Instruction, LoopNest
from nnc_core.codegen.merged_axes import with_merged_axes
from nnc_core.codegen.merged_stages import with_merged_stages
from nnc_core.codegen.scalar import Scalar
from nnc_core.operator.loops import Index, IndexLike, InlinedCommand, NestBuilder
from nnc_core.operator.movement import narrowed
from nnc_core.operator.program import ON_THE_WAY, Input, Literal, Operand, Program, Step, StepResult

Indices: TypeAlias = tuple[IndexLike, ...]
Key: TypeAlias = tuple[Any, ...]

_WRITTEN = LoopNest("written into another", (), (), ())


class Element(NamedTuple):
    """An element of an operand; `fill` is its value where a guarded index is outside."""

    operand: Operand
    at: Indices
    fill: Any

    @property
    def key(self) -> Key:
        return (self.operand, repr(self.fill), *[_key(i) for i in self.at])

    @property
    def guarded(self) -> bool:
        return any(not isinstance(i, int) and not i.inside for i in self.at)

    def on_axes_below(self, count: int) -> bool:
        """True if the element is the same wherever the axes from `count` on are."""
        return all(isinstance(i, int) or (i.gather is None and all(a < count for a, c in i.coefficients.items() if c))
                   for i in self.at)


def _key(index: IndexLike) -> Key:
    if isinstance(index, int):
        return (index,)
    terms = tuple(sorted((a, c) for a, c in index.coefficients.items() if c))
    gather = None if index.gather is None else index.gather.number
    if not terms and gather is None and index.inside and index.divisor == 1:
        return (index.offset,)
    return (index.offset, terms, index.divisor, gather, index.inside)


def fused_nest(command: Command, program: Program) -> LoopNest:
    """The nest of a program on these layouts.  NotSupportedError where its steps cannot be written as one.

    It is written again for as long as something is found that is to be written earlier, before what goes through the
    row.
    """
    composer = Composer(command, program, ())
    composer.write()
    while composer.needed:
        composer = Composer(command, program, [*composer.needed, *composer.early])
        composer.write()
    return with_merged_axes(with_merged_stages(composer.nest.build()))


class Composer:
    """Writes a nest; `early` is written for each row before anything goes through the row."""

    def __init__(self, command: Command, program: Program, early: Sequence[Element]) -> None:
        self.command, self.program, self.early = command, program, early
        self.nest = NestBuilder(command)
        self.needed: list[Element] = []
        """What was asked for within a row and depends on the row alone, each after what it asks for itself."""
        self.known: list[dict[Key, Any]] = [{}]
        """Values written so far: those of the row, then those of the point within the stage at hand."""
        self.rows = 0
        """The number of outer axes."""
        self.passing = {n: k for k, n in enumerate(program.results) if program.place_of(k) is ON_THE_WAY}
        """Numbers of the steps that are still to be written on the way, and of the results that they are."""

    def write(self) -> None:
        if self.program.anchor is None:
            self._by_rows()
        else:
            builder = _AnchorBuilder(self, self.program.anchor)
            builder.write()
        if self.passing:
            raise NotSupportedError(f"{self.program} nowhere goes through all elements of %{min(self.passing)}")

    def _by_rows(self) -> None:
        shape, inner = self.program.shape, self.program.inner
        place: list[IndexLike] = [0] * len(shape)
        outer = [axis for axis in range(len(shape)) if axis not in inner]
        for axis, index in zip(outer, self.outer([shape[axis] for axis in outer]), strict=True):
            place[axis] = index
        here = [k for k in range(len(self.program.results)) if self.program.place_of(k) is not ON_THE_WAY]
        once = [k for k in here if inner and self._is_of_row(k)]
        self.store(place, once)
        points: AbstractContextManager[list[Index]] = nullcontext([])
        with self.stage(*[shape[axis] for axis in inner]) if inner else points as at:
            for axis, index in zip(inner, at, strict=True):
                place[axis] = index
            self.store(place, [k for k in here if k not in once])

    def _is_of_row(self, result: int) -> bool:
        """True if each row has one element of a result."""
        shape = self.program.steps[self.program.results[result]].spec.static_shape
        return all(n == 1 or axis not in self.program.inner
                   for n, axis in zip(shape, self.program.place_of(result) or (), strict=True))

    def store(self, place: Sequence[IndexLike], results: Sequence[int]) -> None:
        """Write elements of some of the results, by their numbers."""
        elements = []
        for k in results:
            wanted, axes = StepResult(self.program.results[k]), self.program.place_of(k) or ()
            shape = self.program.spec_of(wanted).static_shape
            at = tuple([0 if n == 1 else place[axis] for n, axis in zip(shape, axes, strict=True)])
            elements.append(Element(wanted, at, 0))
        values = [self.value(element) for element in elements]
        for k, value, element in zip(results, values, elements, strict=True):
            self.nest.store(k, value, *element.at)

    # ---- the nest around
    def outer(self, lengths: Sequence[int]) -> list[Index]:
        """The rows; what each needs first is written at once."""
        self.rows = len(lengths)
        axes = self.nest.outer(*lengths)
        for element in self.early:
            self.value(element)
        return axes

    @contextmanager
    def stage(self, *lengths: int) -> Iterator[list[Index]]:
        if len(self.known) > 1:
            raise NotSupportedError("a fold within a fold is no loop nest")
        self.known.append({})
        with self.nest.stage(*lengths) as points:
            yield points
        self.known.pop()

    # ---- values
    def value(self, element: Element) -> Any:
        """An element as a scalar, written here unless it was written before."""
        if isinstance(element.operand, Literal):
            return self.nest.constant(element.operand.value.item(), element.operand.dtype)
        key = element.key
        for known in self.known:
            if key in known:
                return known[key]
        if len(self.known) > 1 and element.on_axes_below(self.rows):
            return self._of_row(element)
        value = self._written(element)
        self.known[-1][key] = value
        return value

    def _of_row(self, element: Element) -> Any:
        """Note what is asked for within a row and the row alone decides: the next attempt writes it before."""
        here, self.known = self.known, self.known[:1]
        nest, self.nest = self.nest, NestBuilder(self.command)
        self.nest.axes = nest.axes
        value = self._written(element)
        self.known, self.nest = here, nest
        self.known[0][element.key] = value
        self.needed.append(element)
        return value

    def _written(self, element: Element) -> Any:
        if isinstance(element.operand, Input):
            return self.nest.load(element.operand.number, *element.at, fill=element.fill)
        assert isinstance(element.operand, StepResult)
        number = element.operand.number
        value = self._of_step(number, self.program.steps[number], element.at)
        if number in self.passing and self._is_whole(element):
            self.nest.store(self.passing.pop(number), value, *element.at)
        return self._filled(element, value) if element.guarded else value

    def _is_whole(self, element: Element) -> bool:
        """True if the points of this stage, in all rows, ask for all elements of a step, each for one."""
        lengths = dict(enumerate([*self.nest.axes, *self.nest.inner]))
        for n, index in zip(self.program.spec_of(element.operand).static_shape, element.at, strict=True):
            if n != 1:
                axis = None if isinstance(index, int) else index.only_axis
                if axis is None or lengths.pop(axis, None) != n:
                    return False
        return all(n == 1 for n in lengths.values())

    def _of_step(self, number: int, step: Step, at: Indices) -> Any:
        if step.op.scalar is not None:
            operands = [self.value(Element(x, narrowed(at, self.program.spec_of(x).shape), 0)) for x in step.operands]
            return step.op.scalar(*operands, *step.attributes).cast(step.spec.dtype)
        if step.op.source is not None:
            (x,) = step.operands
            source = step.op.source(at, self.program.spec_of(x).shape, *step.attributes)
            if source is None:
                raise NotSupportedError(f"elements of {step} are not where multiples of indices say")
            return self.value(Element(x, tuple(source), 0))
        if number == self.program.anchor:
            raise NotSupportedError(f"{step} is asked for elsewhere than where it is computed")
        return _InlineBuilder(self, number, at).written()

    def _filled(self, element: Element, value: Any) -> Any:
        """The fill where the index is outside."""
        return self.valid(element.operand, element.at).select(value, value.constant(element.fill))

    def valid(self, operand: Operand, at: Indices) -> Scalar:
        """Tell whether an operand has that element.  What is computed has no memory, and none is touched here: it is
        as if it lay in any of the arguments."""
        shape = self.program.spec_of(operand).static_shape
        subscripts = tuple([_as_index(i).subscript(0, n) for i, n in zip(at, shape, strict=True)])
        access = Access(0, 0, tuple([s for s in subscripts if s.checked]))
        return Scalar(self.nest, self.nest.append(Instruction("valid", boolean, access=access)), boolean)


class _StepBuilder(NestBuilder):
    """Lets the rule of an operator write on the nest of a program."""

    def __init__(self, composer: Composer, number: int) -> None:
        step = composer.program.steps[number]
        specs = [composer.program.spec_of(x) for x in step.operands]
        outputs = (step.spec.layout(),)
        command = InlinedCommand(step.op.name, step.attributes, tuple([x.layout() for x in specs]), outputs)
        super().__init__(command)
        command.builder = self
        self.composer, self.step, self.number = composer, step, number
        self.stored: Any = None

    def rule(self) -> None:
        """Let the operator write.  NotSupportedError if it does so on a nest of its own."""
        nest = self.step.op.nest
        if nest is None or nest(self.command) is not _WRITTEN or self.stored is None:
            raise NotSupportedError(f"{self.step} is not written over its own axes")

    @contextmanager
    def stage(self, *lengths: int) -> Iterator[list[Index]]:
        with self.composer.stage(*lengths) as points:
            yield points

    def append(self, instruction: Instruction) -> int:
        return self.composer.nest.append(instruction)

    def fold(self, kind: str, value: Any, factor: Any = None) -> Any:
        return self.composer.nest.fold(kind, value, factor)

    def load(self, argument: int, *indices: IndexLike, fill: Any = 0) -> Any:
        shape = self.command.inputs[argument].shape
        at = [0 if n == 1 and not isinstance(i, int) and i.inside else i for n, i in zip(shape, indices, strict=True)]
        return self.composer.value(Element(self.step.operands[argument], tuple(at), fill))

    def valid(self, argument: int, *indices: IndexLike) -> Scalar:
        return self.composer.valid(self.step.operands[argument], indices)

    @property
    def noting(self) -> bool:
        return self.composer.nest.noting

    def note(self, wrong: Scalar, given: Scalar, check: int = 0) -> None:
        self.composer.nest.note(wrong, given, self.number)

    def build(self) -> LoopNest:
        return _WRITTEN


class _InlineBuilder(_StepBuilder):
    """Writes one element of a step, wherever it is asked for."""

    def __init__(self, composer: Composer, number: int, at: Indices) -> None:
        super().__init__(composer, number)
        self.at = tuple([0 if n == 1 else i for n, i in zip(self.step.spec.static_shape, at, strict=True)])
        self.may_be_outside = any(not isinstance(i, int) and not i.inside for i in self.at)

    def load(self, argument: int, *indices: IndexLike, fill: Any = 0) -> Any:
        """Load with a guard where the element that is asked for may be outside, and with it what is counted from it."""
        if self.may_be_outside:
            indices = tuple([i if isinstance(i, int) or i.gather is None else i.guarded() for i in indices])
        return super().load(argument, *indices, fill=fill)

    def note(self, wrong: Scalar, given: Scalar, check: int = 0) -> None:
        if self.may_be_outside:
            raise NotSupportedError(f"{self.step} looks at indices, also where nothing is asked for")
        super().note(wrong, given)

    def written(self) -> Any:
        self.rule()
        return self.stored

    def outer(self, *lengths: int) -> list[Index]:
        """The axes of the element that is asked for, in place of axes of the nest."""
        own = [(n, i) for n, i in zip(self.step.spec.static_shape, self.at, strict=True) if n != 1]
        if [n for n, _ in own] != [n for n in lengths if n != 1]:
            raise NotSupportedError(f"the loops of {self.step} do not follow its result")
        places = iter([i for _, i in own])
        return [Index() if n == 1 else _as_index(next(places)) for n in lengths]

    def store(self, output: int, value: Any, *indices: IndexLike) -> None:
        here = [0 if n == 1 else i for n, i in zip(self.step.spec.static_shape, indices, strict=True)]
        if self.stored is not None or list(map(_key, here)) != list(map(_key, self.at)):
            raise NotSupportedError(f"{self.step} is not stored where it is asked for")
        self.stored = value.cast(self.step.spec.dtype)


class _AnchorBuilder(_StepBuilder):
    """Lets one operator go through its own loops; what follows it is written where it stores its result."""

    def write(self) -> None:
        self.rule()

    def outer(self, *lengths: int) -> list[Index]:
        return self.composer.outer(lengths)

    def store(self, output: int, value: Any, *indices: IndexLike) -> None:
        if len(indices) != len(self.composer.program.shape):
            raise NotSupportedError(f"{self.step} has other axes than what follows it")
        self.stored = value.cast(self.step.spec.dtype)
        known = self.composer.known[-1]
        before = dict(known)
        known[Element(StepResult(self.number), narrowed(indices, self.step.spec.shape), 0).key] = self.stored
        self.composer.store(indices, range(len(self.composer.program.results)))
        known.clear()
        known.update(before)  # another store computes other values


def _as_index(index: IndexLike) -> Index:
    return Index(index) if isinstance(index, int) else index
