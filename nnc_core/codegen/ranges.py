"""Ranges of subscripts: which integers hold them, and whether an access stays in its buffer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from nnc_core.base.dtype import DType, int32, int64
from nnc_core.base.loopnest import Access, LoopNest, Stage, Subscript

_INT32_MAX = 2**31 - 1


def axis_lengths(nest: LoopNest, stage: Stage) -> tuple[int, ...]:
    """Lengths of all axes that the stage's instructions see, by number."""
    return nest.axes + stage.axes


def numerator_range(subscript: Subscript, lengths: Sequence[int]) -> tuple[int, int]:
    """Lowest and highest of offset + sum(coefficient * axis)."""
    low = high = subscript.offset
    for axis, coefficient in subscript.coefficients:
        reach = coefficient * max(lengths[axis] - 1, 0)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


def index_range(subscript: Subscript, lengths: Sequence[int]) -> tuple[int, int] | None:
    """Lowest and highest index of a valid access; None if only a gathered value knows."""
    low, high = (bound // subscript.divisor for bound in numerator_range(subscript, lengths))
    last = subscript.extent - 1
    if subscript.checked:
        return (0, last) if subscript.gather is not None else (max(low, 0), min(high, last))
    return (low, high) if subscript.gather is None else None


def element_range(access: Access, lengths: Sequence[int]) -> tuple[int, int] | None:
    """Bounds of the elements that valid accesses touch, generous where subscripts depend on each other.

    None if a gathered value decides; an empty range (low above high) if no access can be valid.
    """
    low = high = access.offset
    for subscript in access.subscripts:
        indices = index_range(subscript, lengths)
        if indices is None:
            return None
        if indices[0] > indices[1]:
            return 0, -1
        ends = [subscript.stride * index for index in indices]
        low, high = low + min(ends), high + max(ends)
    return low, high


def always_valid(subscript: Subscript, lengths: Sequence[int]) -> bool:
    """True if the check can be left out."""
    if not subscript.checked:
        return True
    low, high = numerator_range(subscript, lengths)
    return subscript.gather is None and subscript.divisor == 1 and low >= 0 and high < subscript.extent


def index_type(nest: LoopNest) -> DType:
    """int32, or int64 where some axis, subscript or element number may need it."""
    return int32 if all(size <= _INT32_MAX for size in _sizes(nest)) else int64


def _sizes(nest: LoopNest) -> Iterator[int]:
    """Upper bounds of every intermediate result of address arithmetic."""
    yield nest.points
    for stage in nest.stages:
        lengths = axis_lengths(nest, stage)
        yield prod(stage.axes)
        for instruction in stage.instructions:
            if instruction.access is not None:
                yield from _access_sizes(instruction.access, lengths)


def _access_sizes(access: Access, lengths: Sequence[int]) -> Iterator[int]:
    total = abs(access.offset)
    for subscript in access.subscripts:
        reach = [abs(c) * max(lengths[axis] - 1, 0) for axis, c in subscript.coefficients]
        numerator = abs(subscript.offset) + sum(reach)
        yield from (numerator, subscript.divisor + numerator, subscript.extent, abs(subscript.stride))
        indices = index_range(subscript, lengths)
        if indices is None:  # only the extent tells how far an unchecked gather reaches
            indices = (0, subscript.extent or _INT32_MAX + 1)
        total += abs(subscript.stride) * max(map(abs, (*indices, numerator)))
    yield total
