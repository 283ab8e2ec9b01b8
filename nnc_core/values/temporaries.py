"""Writes to a tensor that nobody else holds: `m[0][1] = 5` changes a row that is dropped with the statement."""

from __future__ import annotations

import dis
import sys
import warnings
from typing import Any

from nnc_core.base.errors import DroppedWriteWarning
from nnc_core.symbol import users_frame


class _Probe:
    """Tells how many references `__setitem__` sees to the object that it is called on."""

    def __setitem__(self, log: list[int], value: None) -> None:
        log.append(sys.getrefcount(self))


def _references_of_temporary() -> int:
    """The count for an object that the statement alone holds; 0 where this Python does not tell it from a named one,
    whose references may be borrowed."""
    if not hasattr(sys, "getrefcount"):
        return 0
    log: list[int] = []
    _Probe()[log] = None
    named = _Probe()
    named[log] = None
    temporary, held = log
    return temporary if temporary < held else 0


OF_TEMPORARY = _references_of_temporary()


def warn_of_dropped_write(spec: Any) -> None:
    """Say at the user's line that what was written cannot be read; called from `__setitem__` for a temporary.

    A call of `__setitem__` by name holds one reference less than the statement does, so that the statement is looked
    for.
    """
    caller = sys._getframe(2)
    if dis.opname[caller.f_code.co_code[caller.f_lasti]] in ("STORE_SUBSCR", "STORE_SLICE"):
        warnings.warn(f"{spec} was written to and dropped at once: indexing gives a value, not a view, so that no "
                      "other tensor has changed; write in one assignment: x[0, 1] = v, not x[0][1] = v",
                      DroppedWriteWarning, stacklevel=users_frame())
