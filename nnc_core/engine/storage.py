"""Storages: stretches of memory, each of one value, of its aliases, and of what overwrites it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from nnc_core.base.layout import Layout
from nnc_core.symbol import Node

FOREVER = 1 << 60
"""A position behind all others."""


@dataclass(slots=True, eq=False)
class Storage:
    """Memory of one value, of its aliases, and of what overwrites it.  Steps are positions in the schedule.

    Kinds: "input", "constant", "arena", "output" (fresh memory at each call), "window" (a part of another storage or
    a buffer of a tape, bound as a loop goes on), "tape", "pushed" (memory that is given to a tape round by round),
    "pointer" (bound to another storage's buffer when a loop is left).
    """

    kind: str
    nbytes: int
    first: int
    last: int
    label: str
    offset: int = 0
    carried: bool = False
    """Memory among which a loop's values move: no inner loop may move its own there."""
    fixed: bool = False
    """Inner loops and branches compute into it, or pointers rotate in it: no command may overwrite it in place."""
    holds: list[Storage] = field(default_factory=list)
    """Other storages in which the value may lie when the program runs, and so what has to live as long."""
    values: list[Node] = field(default_factory=list)
    """Values that lie here, whole or in part, views included."""
    contents_known: bool = True
    """All that lies here is among `values`; False where a loop moves what it carries, which `values` does not list."""

    def keep_until(self, last: int) -> None:
        """Live at least until that position, with all that this one holds."""
        pending = [self]
        while pending:
            storage = pending.pop()
            if storage.last < last:
                storage.last = last
                pending += storage.holds

    def may_be(self, other: Storage) -> bool:
        """Tell whether the value here may lie in that memory."""
        seen, pending = {id(self)}, [self]
        while pending:
            storage = pending.pop()
            if storage is other:
                return True
            new = [s for s in storage.holds if id(s) not in seen]
            seen.update(map(id, new))
            pending += new
        return False


class ValuePlace(NamedTuple):
    """A storage and the layout of a value in it."""

    storage: Storage
    layout: Layout


class Rows(NamedTuple):
    """A value that a loop goes over or stacks up: the storage of one round's part, and that of all of it."""

    row: Storage
    whole: Storage
    nbytes: int
