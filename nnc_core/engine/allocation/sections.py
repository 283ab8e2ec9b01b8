"""The places where lifetimes meet: the steps at which a largest set of them is alive together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from nnc_core.engine.allocation.lifetime import Demand, IntArray

EXACT = 1 << 61
NARROW = 1 << 29


@dataclass(frozen=True, slots=True)
class Sections:
    """A demand as its sections: sets of lifetimes alive together that no other such set includes.

    Whatever holds for each section holds for the plan: two lifetimes overlap if and only if a section has both.
    Bytes are counted in the largest unit that divides all sizes and the segment.

    sizes: of each lifetime.
    low, high: first and last section of each lifetime.
    totals: sum of the sizes in each section; the largest is the bound.
    members: (most in one section, sections) the lifetimes of each section; shorter ones repeat their first.
    segment: as in the demand; None as well if no offset reaches its end.
    """

    unit: int
    sizes: IntArray
    low: IntArray
    high: IntArray
    totals: IntArray
    members: IntArray
    segment: int | None

    @classmethod
    def of(cls, demand: Demand) -> Self:
        """The sections of a demand that is not empty; numbers are as narrow as offsets allow."""
        unit = math.gcd(int(np.gcd.reduce(demand.sizes)), demand.segment or 0)
        steps = _full_steps(demand)
        low = np.searchsorted(steps, demand.first)
        high = np.searchsorted(steps, demand.last, side="right") - 1
        sizes = demand.sizes // unit
        narrow = np.dtype(np.int32 if _reach(sizes) < NARROW else np.int64)
        segment = None if demand.segment is None else demand.segment // unit
        if segment is not None and segment > _reach(sizes):
            segment = None
        return cls(unit, sizes.astype(narrow), low.astype(np.int32), high.astype(np.int32),
                   demand.live_at(steps) // unit, _members(low, high), segment)

    @property
    def bound(self) -> int:
        return int(self.totals.max())

    @property
    def exact(self) -> bool:
        """Tell whether offsets are so small that one number orders them and, among equals, ranks."""
        return _reach(self.sizes) < EXACT // len(self.sizes)


def most_members(demand: Demand) -> int:
    """At least as large as a demand's table of members, without building it."""
    ones = Demand(np.ones_like(demand.sizes), demand.first, demand.last, demand.index, None)
    return len(ones.births) * ones.bound


def _full_steps(demand: Demand) -> IntArray:
    """The births after which something ends before the next birth: what lives at other steps, lives there too."""
    births, ends = demand.births, np.sort(demand.last)
    next_end = ends[np.searchsorted(ends, births)]
    return births[next_end < np.append(births[1:], ends[-1] + 1)]


def _members(low: IntArray, high: IntArray) -> IntArray:
    count = high - low + 1
    lifetime = np.repeat(np.arange(len(low)), count)
    section = np.arange(len(lifetime)) - np.repeat(np.cumsum(count) - count - low, count)
    order = np.argsort(section, kind="stable")
    begins = np.flatnonzero(np.diff(section[order], prepend=-1))
    alive = np.diff(begins, append=len(order))
    depth = np.arange(alive.max())[:, None]
    return lifetime[order][begins + np.where(depth < alive, depth, 0)]


def _reach(sizes: IntArray) -> int:
    """No offset can be larger: what is left free below a segment's end is less than what is put above it."""
    return 2 * int(sizes.sum(dtype=np.int64))
