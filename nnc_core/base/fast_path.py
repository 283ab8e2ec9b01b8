"""Reasons for which eager operators do not go straight to the device's own kernels.

Some settings belong to a context; the fast path of eager dispatch asks no context.  So while any context, or the
process, may have one of them on, the fast path is closed, and the slow path asks for each operation.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager

CLOSED_BY: set[tuple[str, int]] = set()
"""One entry for each mode that must see each operation, and each of its holders; 0 is the process.  The fast path is
open while it is empty."""


def is_watched() -> bool:
    """Tell whether some mode must see each operation; that every bit is promised is none."""
    return any([name != "deterministic" for name, _ in CLOSED_BY])


def keep_closed(name: str, wanted: bool, holder: object) -> None:
    """Note whether a setting asks for the slow path as long as `holder` lives; None is the process."""
    key = (name, 0 if holder is None else id(holder))
    if not wanted:
        CLOSED_BY.discard(key)
        return
    CLOSED_BY.add(key)
    if holder is not None:
        weakref.finalize(holder, CLOSED_BY.discard, key).atexit = False


@contextmanager
def closed() -> Iterator[None]:
    """Keep the fast path closed in this block: for modes that must see each operation."""
    holder = object()
    key = ("closed", id(holder))
    CLOSED_BY.add(key)
    try:
        yield
    finally:
        CLOSED_BY.discard(key)
