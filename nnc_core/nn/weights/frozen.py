"""A count of changes to what is frozen: code that was compiled before is traced again."""

from __future__ import annotations

from itertools import count

from nnc_core.values.trace import guarded

_numbers = count(1)
_last = [0]


def changed() -> None:
    """A parameter was frozen, or is trained again."""
    _last[0] = next(_numbers)


def note_frozen() -> None:
    """Let a trace depend on which parameters are frozen."""
    guarded(_read_frozen_parameters)


def _read_frozen_parameters() -> int:
    return _last[0]
