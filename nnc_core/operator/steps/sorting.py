"""Sorting rows on a device: the launches that it takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nnc_core.base.dtype import DType
from nnc_core.operator.steps.program import EntryLaunch
from nnc_core.operator.steps.sorting_text import BLOCK, GROUP

PLACE = 4
"""Bytes of a place in a row."""
SHARES = 4
"""Work items of each core, at most, of those that sort whole rows."""


class Sorting(NamedTuple):
    """Rows of so many keys of a dtype."""

    rows: int
    length: int
    key: DType

    @property
    def wide(self) -> int:
        """The length of rows of a bitonic network."""
        return 1 << max(self.length - 1, 1).bit_length()

    @property
    def pairs(self) -> int:
        """All its pairs: whole blocks."""
        return -(-self.rows * self.wide // BLOCK) * BLOCK

    def items(self, cores: int) -> int:
        """Work items that sort whole rows."""
        return min(self.rows, SHARES * cores)

    def workspace(self, grouped: bool, cores: int) -> int:
        """Bytes of keys and their places."""
        size = self.key.itemsize + PLACE
        return size * self.pairs if grouped else 2 * size * self.items(cores) * self.length

    def steps(self, grouped: bool, cores: int) -> Iterator[EntryLaunch]:
        """The launches, in order."""
        if not grouped:
            yield EntryLaunch("sort_rows", self.items(cores), 1)
            return
        blocks = self.pairs // BLOCK * GROUP
        yield EntryLaunch("fill", self.pairs, GROUP)
        yield EntryLaunch("near", blocks, GROUP, min(BLOCK, self.wide), 1)
        size = 2 * BLOCK
        while size <= self.wide:
            step = size // 2
            while step >= BLOCK:
                yield EntryLaunch("far", rounded(self.pairs // 2), GROUP, size, step)
                step //= 2
            yield EntryLaunch("near", blocks, GROUP, size, size // 2)
            size *= 2
        yield EntryLaunch("finish", rounded(self.rows * self.length), GROUP)


def rounded(items: int) -> int:
    """Whole groups of work items."""
    return -(-items // GROUP) * GROUP
