"""Memory that the C library keeps between arrays that are gone.

glibc maps an array apart from the heap only if it is larger than any that has been freed before, up to 32 MiB.  So the
arrays that NumPy makes on the way to the weights of a network leave holes between those that stay, and the blocks of
the pool come on top of them: a network whose weights are read from a file takes a quarter more than they do.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

LARGE = 1 << 20
"""Bytes of a block that is worth counting."""
STEP = 1 << 24
"""Bytes of fresh blocks after which holes are looked for: that takes less time than the first touch of these."""
_reserved = 0
"""Bytes of such blocks since."""


def reserving(nbytes: int) -> None:
    """Note that so much fresh memory is asked for, and give back before that what has been left, now and then."""
    global _reserved
    if nbytes < LARGE:
        return
    _reserved += nbytes
    if _reserved >= STEP:
        _reserved = 0
        give_back()


def give_back() -> None:
    """Have the C library give pages to the system that it holds between arrays that are gone; nothing where it has no
    such function."""
    trim = _trimmer()
    if trim is not None:
        trim(0)


@cache
def _trimmer() -> Callable[[int], int] | None:
    try:
        found = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # of glibc alone; TypeError: Windows
        return None
    found.argtypes, found.restype = [ctypes.c_size_t], ctypes.c_int
    return found
