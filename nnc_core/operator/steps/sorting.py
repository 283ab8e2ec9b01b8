"""Sorting rows on a device: the launches that it takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nnc_core.base.dtype import DType
from nnc_core.operator.steps.digits_text import BITS, GROUP, TILE, VALUES
from nnc_core.operator.steps.program import EntryLaunch
from nnc_core.operator.steps.sorting_text import BLOCK

PLACE = COUNT = 4
"""Bytes of a place in a row, and of a count of keys."""
SHARES = 4
"""Work items of each core, at most, of those that sort whole rows."""


class Sorting(NamedTuple):
    """Rows of so many keys of a dtype, whose lowest bytes differ: so many."""

    rows: int
    length: int
    key: DType
    digits: int

    @property
    def network(self) -> int:
        """The length of rows of a bitonic network."""
        return 1 << max(self.length - 1, 1).bit_length()

    @property
    def long(self) -> bool:
        """Groups sort by digits: they read keys twice for each, and keys and places are moved once."""
        pair, doublings = self.key.itemsize + PLACE, max(self.network // BLOCK, 1).bit_length() - 1
        by_network = self.network * (doublings * (doublings + 1) // 2 + doublings) * 2 * pair
        return 2 * self.passes * self.length * (2 * pair + self.key.itemsize) < by_network

    @property
    def passes(self) -> int:
        """Digits that groups sort by: an even number, so that what is sorted lies where it was."""
        return 8 // BITS * self.digits

    @property
    def wide(self) -> int:
        """The length of rows as groups have them."""
        return self.length if self.long else self.network

    @property
    def tiles(self) -> int:
        """Those of all rows."""
        return self.rows * -(-self.length // TILE)

    @property
    def pairs(self) -> int:
        """All pairs that groups have: whole blocks."""
        return -(-self.rows * self.wide // BLOCK) * BLOCK

    def items(self, cores: int) -> int:
        """Work items that sort whole rows."""
        return min(self.rows, SHARES * cores)

    def workspace(self, grouped: bool, cores: int) -> int:
        """Bytes of keys and their places."""
        size = self.key.itemsize + PLACE
        if not grouped:
            return 2 * size * self.items(cores) * self.length
        return 2 * size * self.pairs + self.tiles * VALUES * COUNT if self.long else size * self.pairs

    def steps(self, grouped: bool, cores: int) -> Iterator[EntryLaunch]:
        """The launches, in order."""
        if not grouped:
            yield EntryLaunch("sort_rows", self.items(cores), 1)
            return
        yield EntryLaunch("fill", self.pairs, GROUP)
        yield from self._by_digits() if self.long else self._by_network()
        yield EntryLaunch("finish", rounded(self.rows * self.length), GROUP)

    def _by_digits(self) -> Iterator[EntryLaunch]:
        for number in range(self.passes):
            yield EntryLaunch("tally", self.tiles * GROUP, GROUP, number * BITS, number % 2)
            yield EntryLaunch("ranks", self.rows * GROUP, GROUP, number * BITS, number % 2)
            yield EntryLaunch("move", self.tiles * GROUP, GROUP, number * BITS, number % 2)

    def _by_network(self) -> Iterator[EntryLaunch]:
        blocks = self.pairs // BLOCK * GROUP
        yield EntryLaunch("near", blocks, GROUP, min(BLOCK, self.wide), 1)
        size = 2 * BLOCK
        while size <= self.wide:
            step = size // 2
            while step >= BLOCK:
                yield EntryLaunch("far", rounded(self.pairs // 2), GROUP, size, step)
                step //= 2
            yield EntryLaunch("near", blocks, GROUP, size, size // 2)
            size *= 2


def rounded(items: int) -> int:
    """Whole groups of work items."""
    return -(-items // GROUP) * GROUP
