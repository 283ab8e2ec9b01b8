"""General nests: nests that differ only in where their arrays begin and how long large outer axes are share code.

`general(nest)` takes those numbers out.  A kernel of the general nest gets them as arguments; what makes its loops and
tiles (inner axes, strides, short outer axes) stays in its code, and so do checks of subscripts: one that no index of
the given nest can fail is left out, and a nest where one can is another general nest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from nnc_core.base.dtype import DType
from nnc_core.base.loopnest import Access, Instruction, LoopNest, Stage, Subscript
from nnc_core.codegen.ranges import always_valid, axis_lengths, index_type

LARGE = 16
"""Outer axes of more points are taken out."""
ANY_LENGTH = 2**63 - 1
"""The length of an axis that was taken out: what holds for indices along it, holds for those of every length."""


@dataclass(frozen=True, slots=True)
class GeneralNest:
    """A loop nest without some of its numbers.

    Its kernel takes them behind the buffers, as int64: for each argument the element that offsets count from, then the
    lengths of the outer axes `lengths`.
    """

    nest: LoopNest
    lengths: tuple[int, ...]
    """Outer axes whose length is given to the kernel; in the nest they have ANY_LENGTH."""
    index: DType
    """int32 or int64, in which all addresses of the nests that this one stands for can be computed."""

    @property
    def numbers(self) -> int:
        """The count of numbers that a kernel takes."""
        return len(self.nest.arguments) + len(self.lengths)


AnyNest: TypeAlias = LoopNest | GeneralNest


def general(nest: LoopNest) -> tuple[GeneralNest, tuple[int, ...]]:
    """The general nest of a nest, and the numbers that make it this one."""
    plain = [_with_accesses(stage, _plain(axis_lengths(nest, stage))) for stage in nest.stages]
    first = _first_offsets(len(nest.arguments), plain)
    stages = tuple(_with_accesses(stage, _moved([-offset for offset in first])) for stage in plain)
    lengths = tuple(axis for axis, length in enumerate(nest.axes) if length > LARGE)
    axes = tuple(ANY_LENGTH if length > LARGE else length for length in nest.axes)
    made = GeneralNest(LoopNest(nest.name, nest.arguments, axes, stages), lengths, index_type(nest))
    return made, (*first, *(nest.axes[axis] for axis in lengths))


def specific(nest: GeneralNest, numbers: Sequence[int]) -> LoopNest:
    """The nest for which these numbers stand: what the kernel of a general nest does with them."""
    count = len(nest.nest.arguments)
    length = dict(zip(nest.lengths, numbers[count:], strict=True))
    axes = tuple(length.get(axis, n) for axis, n in enumerate(nest.nest.axes))
    stages = tuple(_with_accesses(stage, _moved(numbers[:count])) for stage in nest.nest.stages)
    return LoopNest(nest.nest.name, nest.nest.arguments, axes, stages)


def _with_accesses(stage: Stage, change: Callable[[Access], Access]) -> Stage:
    def changed(instruction: Instruction) -> Instruction:
        access = instruction.access
        return instruction if access is None else instruction._replace(access=change(access))

    return Stage(stage.axes, tuple(map(changed, stage.body)), stage.reductions, tuple(map(changed, stage.running)))


def _plain(lengths: Sequence[int]) -> Callable[[Access], Access]:
    """The access with the offsets of subscripts that need no check in its own."""

    def plain(access: Access) -> Access:
        offset, subscripts = access.offset, list[Subscript]()
        for subscript in access.subscripts:
            if subscript.divisor == 1 and subscript.gather is None and always_valid(subscript, lengths):
                offset += subscript.stride * subscript.offset
                subscript = subscript._replace(offset=0, extent=0, checked=False)
            elif not subscript.checked:
                subscript = subscript._replace(extent=0)
            if subscript.coefficients or subscript.offset or subscript.gather is not None or subscript.checked:
                subscripts.append(subscript)
        return Access(access.argument, offset, tuple(subscripts))

    return plain


def _moved(by: Sequence[int]) -> Callable[[Access], Access]:
    return lambda access: access._replace(offset=access.offset + by[access.argument])


def _first_offsets(arguments: int, stages: Sequence[Stage]) -> tuple[int, ...]:
    """The smallest offset at which each argument is accessed; 0 for one that is not."""
    first: dict[int, int] = {}
    for access in _accesses(stages):
        first[access.argument] = min(first.get(access.argument, access.offset), access.offset)
    return tuple(first.get(argument, 0) for argument in range(arguments))


def _accesses(stages: Sequence[Stage]) -> Iterator[Access]:
    for stage in stages:
        yield from (i.access for i in stage.instructions if i.access is not None)
