"""Memory that compiled programs keep for their next run: bounded in bytes, given back when it is needed elsewhere."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, Any

from nnc_core.base.config import config

if TYPE_CHECKING:
    from nnc_core.device.capture import Program

LIMIT = 1 << 30
"""Bytes that programs keep on a device that does not say how much memory it has."""
SHARE = 4
"""Programs keep at most one part in so many of a device's memory."""

tick = count(1).__next__
"""The number of a run, counted over all programs: `Program.used`."""


class _Kept(weakref.ref[Any]):
    """A program with memory of its own.  `idle`: the programs of its graph that wait for a call."""

    __slots__ = ("idle", "key", "nbytes")
    idle: weakref.ref[deque[Program]]
    key: int
    nbytes: int


class Arenas:
    """The programs of one device that have memory of their own, running or idle.

    They keep at most `config.arena_limit` bytes together (None: `default`): above that, idle programs are dropped,
    those that have not run for longest first.  Graphs make another when they are called again.  What ran last is kept
    whatever its size, so that a loop of calls does not allocate in every round.
    """

    def __init__(self, memory: int | None) -> None:
        self.default = LIMIT if memory is None else memory // SHARE
        self.over = False
        """True while programs run that are to be given up when they end."""
        self._kept: dict[int, _Kept] = {}  # read as lists: making a tuple, the collector may take entries out meanwhile
        self._lock = threading.RLock()  # what dies while it is held may call for memory

    def keep(self, program: Program, idle: deque[Program], nbytes: int) -> None:
        """Count a new program, which returns to `idle` after its runs."""
        kept = _Kept(program, self._end)
        kept.idle, kept.key, kept.nbytes = weakref.ref(idle), id(program), nbytes
        self._kept[kept.key] = kept

    def resize(self, program: Program, nbytes: int) -> None:
        """Count a program that has grown, or shrunk, in its run."""
        kept = self._kept[id(program)]
        grown, kept.nbytes = nbytes > kept.nbytes, nbytes
        if grown:
            self.settle()

    def make_room(self, nbytes: int) -> None:
        """Drop idle programs until one more with so many bytes is within the limit."""
        self._drop(list(self._kept.values()), nbytes)

    def settle(self) -> None:
        """Drop idle programs, but not the one that ran last, until the limit is kept."""
        self._drop(sorted(list(self._kept.values()), key=_used)[:-1], 0)

    def trim(self) -> int:
        """Drop every idle program; the number of bytes."""
        with self._lock:
            return sum([_dropped(kept) for kept in list(self._kept.values())])

    @property
    def idle(self) -> int:
        """Bytes that idle programs keep."""
        return sum([kept.nbytes for kept in list(self._kept.values()) if _is_idle(kept)])

    def _end(self, kept: Any) -> None:
        self._kept.pop(kept.key, None)

    def _drop(self, candidates: Iterable[_Kept], nbytes: int) -> None:
        with self._lock:
            limit = self.default if config.arena_limit is None else config.arena_limit
            excess = sum([kept.nbytes for kept in list(self._kept.values())]) + nbytes - limit
            running = False
            for kept in sorted(candidates, key=_used) if excess > 0 else ():
                dropped = _dropped(kept) if excess > 0 else kept.nbytes
                excess -= dropped
                running = running or not dropped
            self.over = running


def _used(kept: _Kept) -> int:
    program = kept()
    return 0 if program is None else program.used


def _is_idle(kept: _Kept) -> bool:
    idle = kept.idle()
    return idle is not None and kept() in tuple(idle)


def _dropped(kept: _Kept) -> int:
    """The bytes of a program that was idle and is dropped; 0 for one that runs."""
    program, idle = kept(), kept.idle()
    if program is None or idle is None:
        return 0
    try:
        idle.remove(program)
    except (ValueError, IndexError):  # it runs, or another thread takes one at this moment
        return 0
    return kept.nbytes
