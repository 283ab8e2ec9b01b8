"""A planner in near-linear time: a simulated allocator with free lists by size class.

The lists are those of Masmano et al., "TLSF: a New Dynamic Memory Allocator for Real-Time Systems" (2004):
eight classes to each doubling, a bit mask of the lists that are filled, free neighbours merged at once.
"""

from __future__ import annotations

import numpy as np

from nnc_core.engine.allocation.lifetime import Demand, IntArray


def size_classes(demand: Demand) -> IntArray:
    """In order of use, each lifetime in a free chunk of its class or the next one filled, split to fit."""
    lists = FreeLists(demand.segment)
    sizes = demand.sizes.tolist()
    offsets = [0] * len(sizes)
    for i, ended in demand.in_order_of_use():
        for j in ended:
            lists.put(offsets[j], offsets[j] + sizes[j])
        offsets[i] = lists.take(sizes[i])
    return np.array(offsets, np.int64)


def size_class(size: int) -> int:
    """Number of the class of a positive size: its exponent and the three bits after the leading one."""
    shift = size.bit_length() - 4
    return size if shift < 0 else (shift << 3) + (size >> shift)


class FreeLists:
    """The free chunks of an arena that grows at its top when no chunk fits.

    A list holds starts of chunks, some of them stale (merged or taken since): these are dropped when met, so
    that every operation takes constant time on average.  Chunks of different segments are never merged.
    """

    def __init__(self, segment: int | None) -> None:
        self.segment = segment
        self.top = 0
        self.end_of: dict[int, int] = {}
        self.start_of: dict[int, int] = {}
        self.lists: dict[int, list[int]] = {}
        self.filled = 0  # bit c: list c has entries

    def put(self, start: int, end: int) -> None:
        """Free the bytes from start to end."""
        if start in self.start_of and not self._parts(start):
            start = self._remove(self.start_of[start])[0]
        if end in self.end_of and not self._parts(end):
            end = self._remove(end)[1]
        self.end_of[start], self.start_of[end] = end, start
        which = size_class(end - start)
        self.lists.setdefault(which, []).append(start)
        self.filled |= 1 << which

    def take(self, size: int) -> int:
        """The start of `size` bytes that nobody uses."""
        chunk = self._find(size)
        if chunk is None:
            return self._grow(size)
        start, end = self._remove(chunk)
        if end - start > size:
            self.put(start + size, end)
        return start

    def _parts(self, offset: int) -> bool:
        return self.segment is not None and offset % self.segment == 0

    def _remove(self, start: int) -> tuple[int, int]:
        end = self.end_of.pop(start)
        del self.start_of[end]
        return start, end

    def _find(self, size: int) -> int | None:
        which = size_class(size)
        filled = self.filled >> which << which
        while filled:
            lowest = filled & -filled
            which = lowest.bit_length() - 1
            chunk = self._newest(which)
            if chunk is not None and self.end_of[chunk] - chunk >= size:
                return chunk
            filled ^= lowest
        return None

    def _newest(self, which: int) -> int | None:
        """The chunk freed last in a class, or None if all of its list was stale."""
        entries = self.lists[which]
        while entries:
            start = entries[-1]
            if start in self.end_of and size_class(self.end_of[start] - start) == which:
                return start
            entries.pop()
        self.filled ^= 1 << which
        return None

    def _grow(self, size: int) -> int:
        """Append to the arena, beginning with what is free at its top."""
        start = self.start_of.get(self.top, self.top)
        if self.segment is not None and start % self.segment + size > self.segment:
            return self._open_segment(size, self.segment)
        if start < self.top:
            self._remove(start)
        self.top = start + size
        return start

    def _open_segment(self, size: int, segment: int) -> int:
        start = self.top + -self.top % segment
        if start > self.top:
            self.put(self.top, start)
        self.top = start + size
        return start
