"""Memory of the strict devices: NumPy bytes that only the device sees."""

from __future__ import annotations

import weakref
from typing import TypeAlias

import numpy as np

from nnc_core.builtin.ledger import Ledger

Bytes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint8]]
POISON = 0xFF  # every float dtype reads it as NaN


class Block:
    """One allocation; given back when the last buffer on it is gone."""

    __slots__ = ("__weakref__", "content")

    def __init__(self, nbytes: int, alignment: int, poisons: bool, ledger: Ledger) -> None:
        ledger.take(nbytes)
        try:
            self.content = _aligned(nbytes, alignment)
        except BaseException:
            ledger.give_back(nbytes)
            raise
        if poisons:
            self.content.fill(POISON)
        weakref.finalize(self, _free, self.content, poisons, ledger).atexit = False


def _free(content: Bytes, poisons: bool, ledger: Ledger) -> None:
    if poisons:
        content.fill(POISON)
    ledger.give_back(content.nbytes)


def _aligned(nbytes: int, alignment: int) -> Bytes:
    room = np.empty(nbytes + alignment, np.uint8)
    start = -room.ctypes.data % alignment
    return room[start : start + nbytes]


class StrictBuffer:
    """A stretch of a block: it tells its size, and nothing else to anybody but its device."""

    __slots__ = ("__block", "__offset", "__owner", "__weakref__", "__whole", "nbytes")

    def __init__(self, block: Block, offset: int, nbytes: int, owner: object,
                 whole: StrictBuffer | None = None) -> None:
        self.__block, self.__offset, self.__owner, self.nbytes = block, offset, owner, nbytes
        self.__whole = whole

    def belongs_to(self, owner: object) -> bool:
        return self.__owner is owner

    def open(self, owner: object) -> Bytes:
        """The content, for the device that owns it."""
        assert owner is self.__owner, "only its device opens a buffer"
        return self.__block.content[self.__offset : self.__offset + self.nbytes]

    def part(self, offset: int, nbytes: int) -> StrictBuffer:
        """A part, which keeps the buffer that it is of."""
        return StrictBuffer(self.__block, self.__offset + offset, nbytes, self.__owner, self)

    def poison(self) -> None:
        """Make every float in it NaN."""
        self.open(self.__owner).fill(POISON)

    def __repr__(self) -> str:
        return f"<buffer of {self.nbytes} bytes>"


def poison(buffer: StrictBuffer) -> None:
    """Make every float in a buffer NaN."""
    buffer.poison()
