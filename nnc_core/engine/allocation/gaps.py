"""Placing lifetimes one by one into the gaps between those already placed.

The search is that of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (2020):
among the placed lifetimes that overlap in time, in order of their offsets, find a gap that is large enough.
"""

from __future__ import annotations

import numpy as np

from nnc_core.engine.allocation.lifetime import ADDRESSABLE, Demand, IntArray


class Placed:
    """Lifetimes placed so far (first, last, low, high), sorted by low: that spares a sort per search."""

    def __init__(self, capacity: int) -> None:
        self.count = 0
        self.columns = np.empty((4, capacity), np.int64)

    def insert(self, first: int, last: int, low: int, high: int) -> None:
        count, columns = self.count, self.columns
        at = int(columns[2, :count].searchsorted(low, side="right"))
        columns[:, at + 1:count + 1] = columns[:, at:count]
        columns[:, at] = first, last, low, high
        self.count = count + 1

    def occupied(self, first: int, last: int) -> tuple[IntArray, IntArray]:
        """Low and high ends, by low, of what is alive at some step from first to last."""
        begins, ends, lows, highs = self.columns[:, :self.count]
        hit = ((begins <= last) & (ends >= first)).nonzero()[0]
        return lows[hit], highs[hit]


def next_start(start: IntArray, size: int | IntArray, segment: int | None) -> IntArray:
    """The lowest offsets from `start` on at which `size` bytes lie within one segment."""
    if segment is None:
        return start
    room = -start % segment
    return np.where((room != 0) & (room < size), start + room, start)


def find_gap(lows: IntArray, highs: IntArray, size: int, segment: int | None, tightest: bool) -> int:
    """Offset of the lowest (or tightest) gap that holds `size` bytes; above all others if there is none."""
    if not len(lows):
        return 0
    start = np.zeros(len(lows) + 1, np.int64)
    np.maximum.accumulate(highs, out=start[1:])
    if segment is not None and start[-1] + size > segment:
        start = next_start(start, size, segment)
    room = lows - start[:-1]
    if tightest:
        room[room < size] = ADDRESSABLE
        found = room.argmin()
    else:
        found = (room >= size).argmax()
    return int(start[found if size <= room[found] < ADDRESSABLE else -1])


def place_in_order(demand: Demand, order: IntArray, *, tightest: bool) -> IntArray:
    """Offsets, in the order of the demand, when lifetimes are placed in the given one; O(n^2), vectorised."""
    offsets = np.zeros(len(demand), np.int64)
    placed = Placed(len(demand))
    columns = (order, demand.sizes[order], demand.first[order], demand.last[order])
    for i, size, first, last in zip(*(column.tolist() for column in columns), strict=True):
        low = find_gap(*placed.occupied(first, last), size, demand.segment, tightest)
        placed.insert(first, last, low, low + size)
        offsets[i] = low
    return offsets
