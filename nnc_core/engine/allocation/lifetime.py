"""The input and the result of a memory planner: lifetimes in, offsets out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nnc_core.base.errors import AttributeValueError, DeviceMemoryError

IntArray = NDArray[np.int64]

ADDRESSABLE = 1 << 62


def distinct(numbers: IntArray) -> IntArray:
    """The distinct numbers, ascending.  (`np.unique` imports all of NumPy's masked arrays when it is first called.)"""
    ordered = np.sort(numbers)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(ordered)]]


class Lifetime(NamedTuple):
    """`nbytes` bytes that must stay untouched from step `first` to step `last`, both included."""

    nbytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ArenaAllocation:
    """The offset of each lifetime in the arena.

    offsets: bytes, in the order of the lifetimes; 0 for those without bytes.
    peak: bytes the arena takes, rounding included: the sum of `segments`.
    bound: most bytes (rounded) alive at one step; no plan can have a smaller peak.
    total: sum of all sizes as given, what it would take without sharing.
    planner: name of the planner that found it.
    segments: bytes to allocate for each segment; segment i holds the offsets from i * segment on.  One entry
        where the arena is not segmented, none where there is nothing to place.
    """

    offsets: tuple[int, ...]
    peak: int
    bound: int
    total: int
    planner: str
    segments: tuple[int, ...] = ()

    @property
    def ratio(self) -> float:
        """Peak over bound; 1.0 is provably optimal."""
        return self.peak / self.bound if self.bound else 1.0


@dataclass(frozen=True)
class Demand:
    """Lifetimes as arrays of equal length, with sizes rounded up to the alignment and none of them zero.

    index: position of each among the lifetimes given.
    segment: bytes that no lifetime may straddle a multiple of, or None.
    """

    sizes: IntArray
    first: IntArray
    last: IntArray
    index: IntArray
    segment: int | None

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def births(self) -> IntArray:
        """The steps at which something begins, ascending: memory in use can only grow there."""
        return distinct(self.first)

    @cached_property
    def breadth(self) -> IntArray:
        """Bytes alive at each of `births`."""
        return self.live_at(self.births)

    @property
    def bound(self) -> int:
        return int(self.breadth.max(initial=0))

    def in_order_of_use(self) -> Iterator[tuple[int, list[int]]]:
        """Each lifetime in order of use (equals: as given), with those that ended since the one before it."""
        first, last = self.first.tolist(), self.last.tolist()
        endings, at = np.argsort(self.last, kind="stable").tolist(), 0
        for i in np.argsort(self.first, kind="stable").tolist():
            seen = at
            while last[endings[at]] < first[i]:  # stops at i at the latest
                at += 1
            yield i, endings[seen:at]

    def live_at(self, steps: IntArray) -> IntArray:
        """Bytes alive at each of the steps: all that has begun less all that has ended."""
        return _sum_before(self.first, self.sizes, steps + 1) - _sum_before(self.last, self.sizes, steps)


def _sum_before(keys: IntArray, sizes: IntArray, steps: IntArray) -> IntArray:
    """For each step, the sum of the sizes whose key is smaller."""
    order = np.argsort(keys, kind="stable")
    sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes[order])))
    return sums[np.searchsorted(keys[order], steps)]


def make_demand(lifetimes: Sequence[Lifetime], *, alignment: int, segment: int | None = None) -> Demand:
    """Check and round what is to be planned.

    Raises AttributeValueError for lifetimes or an alignment that make no sense, DeviceMemoryError for a
    lifetime larger than a segment or for a sum beyond 2**62 bytes.
    """
    _check_arena(alignment, segment)
    if sum(item[0] for item in lifetimes) + alignment * len(lifetimes) > ADDRESSABLE:
        raise DeviceMemoryError(f"{len(lifetimes)} values need more than {ADDRESSABLE} bytes together",
                                hint="look for a dimension that is far too large")
    table = np.array(lifetimes, dtype=np.int64).reshape(-1, 3)
    _check_lifetimes(table, segment)
    index = np.flatnonzero(table[:, 0])
    nbytes, first, last = np.ascontiguousarray(table[index].T)
    return Demand((nbytes + alignment - 1) // alignment * alignment, first, last, index, segment)


def _check_arena(alignment: int, segment: int | None) -> None:
    if alignment < 1:
        raise AttributeValueError(f"alignment is {alignment}, expected a positive number of bytes")
    if segment is not None and (segment < alignment or segment % alignment):
        raise AttributeValueError(f"segment is {segment} bytes, expected a multiple of alignment {alignment}",
                                  hint=f"{max(segment // alignment, 1) * alignment} bytes")


def _check_lifetimes(table: IntArray, segment: int | None) -> None:
    wrong = np.flatnonzero((table[:, 0] < 0) | (table[:, 2] < table[:, 1]))
    if wrong.size:
        nbytes, first, last = table[wrong[0]].tolist()
        raise AttributeValueError(f"lifetime {wrong[0]} has {nbytes} bytes from step {first} to step {last}, "
                                  "expected no negative size and no end before the beginning")
    large = np.flatnonzero(table[:, 0] > segment) if segment is not None else wrong
    if large.size:
        nbytes, first, _ = table[large[0]].tolist()
        raise DeviceMemoryError(
            f"value {large[0]} of step {first} needs {nbytes} bytes in one piece, a single allocation of the "
            f"device holds at most {segment} bytes",
            hint="a smaller batch, a smaller dtype, the value split into parts, or a device with more memory")
