"""Notes that kernels leave in their last buffer of indices that are out of range: looked at when they have run."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from nnc_core.base.errors import OutOfRangeError
from nnc_core.base.loopnest import NOTE_WORDS

Words = Any
"""An array of `ctypes`, whose words are read in a tenth of the time that NumPy takes."""
_WORDS = ctypes.c_int64 * NOTE_WORDS


def words_at(address: int) -> Words:
    """The words of a note that lies there, for as long as somebody holds its buffer."""
    return _WORDS.from_address(address)


def clear(words: Words) -> None:
    """Have nothing noted."""
    ctypes.memset(words, 0, ctypes.sizeof(words))


def look(words: Words) -> None:
    """OutOfRangeError if something is noted, which leaves to others what it was that was looked at."""
    if words[0]:
        error = OutOfRangeError(f"index {words[3]} is out of range")
        error.noted = words[1], words[3]
        raise error


class LookingLaunch:
    """A launch, and what follows where it has noted something."""

    __slots__ = ("launch", "noted", "words")

    def __init__(self, launch: Callable[[], object], noted: Callable[[], object], words: Words) -> None:
        self.launch, self.noted, self.words = launch, noted, words

    def __call__(self) -> None:
        clear(self.words)
        self.launch()
        if self.words[0]:
            self.noted()
