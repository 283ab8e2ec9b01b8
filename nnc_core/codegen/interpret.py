"""A plain interpreter of loop nests: the meaning of the form, without any driver.

Outer points are independent and run as arrays, in chunks that bound the memory.  The inner points of a stage
run as arrays too, and are then folded one after the other in row-major order; where a stage may read what it
writes, they run one by one.  Values are arrays (outer points, inner points) with 1 where they do not vary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np

from nnc_core.base.dtype import DType, boolean, is_float
from nnc_core.base.errors import NotSupportedError, OutOfRangeError
from nnc_core.base.loopnest import SPLIT, Access, Instruction, LoopNest, Reduction, Stage, Subscript
from nnc_core.codegen.numpy_instructions import compute
from nnc_core.codegen.numpy_reductions import Fold, PartialFolds
from nnc_core.codegen.ranges import axis_lengths, element_range

Values = np.ndarray[Any, Any]
Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]

InParts: TypeAlias = Callable[[Reduction, Stage, LoopNest], bool]
"""Tells whether a reduction of a stage of a nest is folded in parts."""

FEW = 1 << 10
"""Elements that are looked at as quickly as the ranges of their subscripts."""
CHUNK = 1 << 16
"""Points computed at once."""
ALWAYS: Values = np.broadcast_to(np.True_, (1, 1))
"""The validity of accesses that ask for none."""


def nowhere(reduction: Reduction, stage: Stage, nest: LoopNest) -> bool:
    """Every reduction in order."""
    return False


def everywhere(reduction: Reduction, stage: Stage, nest: LoopNest) -> bool:
    """Every reduction in parts that may be."""
    return True


def interpret(nest: LoopNest, buffers: Sequence[Bytes], *, in_parts: InParts = nowhere) -> None:
    """Run a nest on one-dimensional, contiguous arrays of bytes, one for each argument; written ones change.

    Sums are folded in order, or, where `in_parts` says so, as partial sums: the two ways that `loopnest` allows.
    OutOfRangeError if a valid access leaves its buffer, before or instead of touching what lies outside.
    """
    arrays = [_elements(a.dtype, buffer) for a, buffer in zip(nest.arguments, buffers, strict=True)]
    longest = max((prod(stage.axes) for stage in nest.stages), default=1)
    step = max(1, CHUNK // max(longest, 1))
    with np.errstate(all="ignore"):
        for begin in range(0, nest.points, step):
            points = np.arange(begin, min(begin + step, nest.points))
            _Run(nest, arrays, _positions(points, nest.axes), in_parts).stages()


def _elements(dtype: DType, buffer: Bytes) -> Values:
    """The buffer as elements; booleans stay bytes.  A tail shorter than an element is left out."""
    stored = np.dtype(np.uint8) if dtype == boolean else dtype
    return buffer[: len(buffer) // stored.itemsize * stored.itemsize].view(stored)


def _positions(points: Values, axes: tuple[int, ...]) -> list[Values]:
    """Positions of flat points on each axis."""
    if len(axes) == 1:
        return [points]
    return [p.astype(np.int64, copy=False) for p in np.unravel_index(points, axes)] if axes else []


@dataclass
class _Run:
    """One chunk of outer points on its way through the stages."""

    nest: LoopNest
    arrays: Sequence[Values]
    outer: list[Values]
    in_parts: InParts
    values: dict[int, Values] = field(default_factory=dict)

    def stages(self) -> None:
        first = 0
        for stage in self.nest.stages:
            self.stage(stage, first)
            first += stage.values

    def stage(self, stage: Stage, first: int) -> None:
        """Run a stage whose body's first value has the number `first`."""
        folds = [self.fold_of(reduction, stage) for reduction in stage.reductions]
        lengths = axis_lengths(self.nest, stage)
        after = first + len(stage.body)
        for points in self.inner_chunks(stage):
            inner = _positions(points, stage.axes)
            axes = [p[:, None] for p in self.outer] + [p[None, :] for p in inner]
            for number, instruction in enumerate(stage.body, first):
                self.values[number] = self.run(instruction, axes, lengths)
            for number, fold in enumerate(folds, after):
                self.fold(fold, number, len(points), bool(stage.running))
            for number, instruction in enumerate(stage.running, after + len(folds)):
                self.values[number] = self.run(instruction, axes, lengths)
        for number, fold in enumerate(folds, after):
            self.values[number] = fold.result

    def fold_of(self, reduction: Reduction, stage: Stage) -> Fold | PartialFolds:
        splits = reduction.kind in SPLIT and is_float(reduction.dtype) and not stage.running
        in_parts = splits and self.in_parts(reduction, stage, self.nest)
        return PartialFolds(reduction) if in_parts else Fold(reduction)

    def fold(self, fold: Fold | PartialFolds, number: int, columns: int, running: bool) -> None:
        """Fold further inner points; value `number` is what it was after each of them, where that is read."""
        rows = max(len(self.values[operand]) for operand in fold.reduction.operands)
        operands = [_broadcast(self.values[o], (rows, columns)) for o in fold.reduction.operands]
        if running:
            assert isinstance(fold, Fold), "what is read at each point is folded in order"
            self.values[number] = fold.scan(*operands)
        else:
            fold.add(*operands)

    def inner_chunks(self, stage: Stage) -> Iterator[Values]:
        points = prod(stage.axes)
        if points == 1:
            yield np.arange(1)
            return
        rows = max(1, len(self.outer[0]) if self.outer else 1)
        step = 1 if self.needs_order(stage) else max(1, CHUNK // rows)
        for begin in range(0, points, step):
            yield np.arange(begin, min(begin + step, points))

    def needs_order(self, stage: Stage) -> bool:
        """True if inner points might see each other's stores."""
        stores = [i.access.argument for i in stage.instructions if i.operation == "store" and i.access]
        loads = {i.access.argument for i in stage.instructions if i.operation == "load" and i.access}
        touched = [*stores, *loads]
        return any(
            np.may_share_memory(self.arrays[a], self.arrays[b])
            for place, a in enumerate(stores)
            for b in touched[place + 1 :]
        )

    def run(self, instruction: Instruction, axes: Sequence[Values], lengths: Sequence[int]) -> Values:
        operation, dtype = instruction.operation, instruction.dtype
        if operation == "constant":
            return np.array([[instruction.literal]], dtype)
        if operation == "axis":
            assert instruction.axis is not None, "an axis instruction names its axis"
            return axes[instruction.axis]
        operands = [self.values[operand] for operand in instruction.operands]
        if instruction.access is None:
            return compute(operation, dtype, operands)
        if operation == "note":
            self.note(instruction, operands, axes, lengths)
            return operands[1]
        elements, valid = self.locate(instruction.access, axes)
        self.guard(operation, instruction.access, elements, valid, lengths)
        array = self.arrays[instruction.access.argument]
        if operation == "load":
            return _load(array, elements, valid, instruction)
        if operation == "store":
            _store(array, elements, valid, operands[0])
            return operands[0]
        if operation == "valid":
            return valid
        raise NotSupportedError(f"no access by the scalar instruction {operation}")

    def note(self, instruction: Instruction, operands: Sequence[Values], axes: Sequence[Values],
             lengths: Sequence[int]) -> None:
        """Note the first of the points where a check fails, unless what is noted comes before it."""
        wrong, value = operands
        if not wrong.any():
            return
        place: Values = np.zeros((1, 1), np.int64)
        for axis, length in zip(axes, lengths, strict=True):
            place = place * length + axis
        wrong, value, place = np.broadcast_arrays(wrong, value, place)
        first = np.argmin(place[wrong])
        found = (int(instruction.literal or 0), int(place[wrong][first]), int(value[wrong][first]))
        assert instruction.access is not None
        words = self.arrays[instruction.access.argument]
        if not words[0] or found < tuple(words[1:4].tolist()):
            words[0], words[1:4] = 1, found

    def locate(self, access: Access, axes: Sequence[Values]) -> tuple[Values, Values]:
        """Element numbers and validity at the points."""
        elements: Values | int = access.offset
        valid = ALWAYS
        for subscript in access.subscripts:
            index, holds = self.index(subscript, axes)
            elements = _sum(elements, subscript.stride, index)
            if holds is not None:
                valid = holds if valid is ALWAYS else valid & holds
        return _array(elements), valid

    def index(self, subscript: Subscript, axes: Sequence[Values]) -> tuple[Values, Values | None]:
        """The index of one dimension; None for validity means always."""
        place: Values | int = subscript.offset
        for axis, coefficient in subscript.coefficients:
            place = _sum(place, coefficient, axes[axis])
        index = _array(place)
        whole = None
        if subscript.divisor != 1:
            index, rest = np.divmod(index, subscript.divisor)
            whole = rest == 0
        if subscript.gather is not None:
            index = index + self.values[subscript.gather].astype(np.int64)
        if not subscript.checked:
            return index, None
        inside = (index >= 0) & (index < subscript.extent)
        return index, inside if whole is None else inside & whole

    def guard(self, name: str, access: Access, elements: Values, valid: Values, lengths: Sequence[int]) -> None:
        """OutOfRangeError for accesses outside the buffer; looks at many only if the axes prove nothing."""
        size = self.arrays[access.argument].size
        if name == "valid" or not elements.size:
            return
        if valid is ALWAYS and elements.size < FEW:
            if elements.min() >= 0 and elements.max() < size:
                return
        elif (reach := element_range(access, lengths)) is not None and reach[0] >= 0 and reach[1] < size:
            return
        outside = valid & ((elements < 0) | (elements >= size))
        if outside.any():
            worst = int(np.broadcast_to(elements, outside.shape)[outside][0])
            dtype = self.nest.arguments[access.argument].dtype
            raise OutOfRangeError(
                f"loop nest {self.nest.name}: {name} of element {worst} of argument {access.argument}, "
                f"whose buffer holds {size} elements of {dtype}",
                hint="check the offsets, strides and extents of the access, and the indices gathered by",
            )


def _sum(place: Values | int, factor: int, steps: Values) -> Values:
    """place + factor * steps: most places are 0, and most factors 1."""
    product = steps if factor == 1 else factor * steps
    return place + product if isinstance(place, np.ndarray) or place else product


def _array(place: Values | int) -> Values:
    return place if isinstance(place, np.ndarray) else np.array([[place]], np.int64)


def _broadcast(values: Values, shape: tuple[int, int]) -> Values:
    return values if values.shape == shape else np.broadcast_to(values, shape)


def _load(array: Values, elements: Values, valid: Values, instruction: Instruction) -> Values:
    dtype = instruction.dtype
    if valid is ALWAYS or valid.all():
        loaded = array[elements]
    else:
        shape = np.broadcast_shapes(elements.shape, valid.shape)
        elements, valid = np.broadcast_to(elements, shape), np.broadcast_to(valid, shape)
        loaded = np.full(shape, instruction.literal, array.dtype)
        loaded[valid] = array[elements[valid]]
    return loaded != 0 if dtype == boolean else loaded


def _store(array: Values, elements: Values, valid: Values, value: Values) -> None:
    """Store where valid; of several values for one element the last point's stays."""
    if valid is not ALWAYS or elements.shape != value.shape:
        elements, valid, value = np.broadcast_arrays(elements, valid, value)
    if valid is ALWAYS or valid.all():
        array[elements.ravel()] = value.ravel()
    else:
        array[elements[valid]] = value[valid]
