"""Writes that nobody can read: `m[0][1] = 5` changes a row that is dropped with the statement, and
`for row in m: row[0] = 1` one that is dropped with the next."""

from __future__ import annotations

import dis
import sys
import warnings
from functools import lru_cache
from types import FrameType
from typing import Any

import numpy as np

from nnc_core.base.errors import DroppedWriteWarning
from nnc_core.device import StridedArray
from nnc_core.symbol import Line, user_line, users_frame
from nnc_core.values.value import Handle, Value

_HELP = ("indexing gives a value, not a view, so that no other tensor has changed; write in one assignment: "
         "x[0, 1] = v, not x[0][1] = v")


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


def warn_of_temporary(tensor: Handle) -> None:
    """Say at the user's line that what was written cannot be read; called from `__setitem__` for a temporary.

    A call of `__setitem__` by name holds one reference less than the statement does, so that the statement is looked
    for.
    """
    caller = sys._getframe(2)
    if dis.opname[caller.f_code.co_code[caller.f_lasti]] in ("STORE_SUBSCR", "STORE_SLICE"):
        warnings.warn(f"{tensor._value.spec} was written to and dropped at once: {_HELP}", DroppedWriteWarning,
                      stacklevel=users_frame())


# ---- what is dropped later
def _owners_references(array: Any) -> int:
    """The references to the memory that an array is a part of, or sees in another order; 0 where it has all of it."""
    if array.__class__ is np.ndarray:
        owner: Any = array.base
        if owner is None or (array.flags.c_contiguous and array.nbytes >= getattr(owner, "nbytes", 0)):
            return 0
        return sys.getrefcount(owner)
    if array.__class__ is StridedArray:
        owner, layout = array.buffer, array.layout
        if layout.offset == 0 and layout.contiguous and layout.nbytes == owner.nbytes:
            return 0
        return sys.getrefcount(owner)
    return 0


_ALONE = _owners_references(np.zeros(2)[:1]) if OF_TEMPORARY else sys.maxsize


def is_part(value: Value) -> bool:
    """True if an array lies in the memory of another one that somebody holds: in NumPy a write to it would be seen."""
    return _owners_references(value.array) > _ALONE


_written_at: dict[int, Line | None] = {}
"""The lines in which tensors were written that have not been read since, by identity."""
_value: Any = Handle.__dict__["_value"]
_seen: dict[Any, int] = {}


def unread(tensor: Any) -> None:
    """Keep in mind that a tensor has been written: if it is dropped before it is read, that is said.

    Until then it is of a class that looks at the first access to its value, so that others pay nothing.
    """
    _written_at[id(tensor)] = user_line()
    tensor.__class__ = _unread_class(tensor.__class__)


def is_unread(tensor: Any) -> bool:
    """True if a tensor has been written and not read since."""
    return isinstance(tensor, _Unread)


class _Unread:
    """A tensor that has been written and not read."""

    __slots__ = ()

    def __getitem__(self: Any, key: Any) -> Any:
        line, augmented = _written_at.get(id(self)), _is_augmented(sys._getframe(1))
        _as_read(self)
        found = self[key]  # a tensor again
        if augmented:
            unread(self)
            _written_at[id(self)] = line
        return found

    def _get(self) -> Any:
        _as_read(self)
        return _value.__get__(self)

    def _set(self, value: Any) -> None:
        _as_read(self)
        _value.__set__(self, value)

    def __reduce_ex__(self, protocol: Any) -> Any:
        _as_read(self)
        return self.__reduce_ex__(protocol)

    def __del__(self) -> None:
        line = _written_at.pop(id(self), None)
        if not isinstance(line, tuple) or sys.is_finalizing():
            return
        code, offset = line
        number = next((n for start, stop, n in code.co_lines() if start <= offset < stop), None)
        warnings.warn_explicit(f"{_value.__get__(self).spec} was written to and dropped before it was read: {_HELP}",
                               DroppedWriteWarning, code.co_filename, number or code.co_firstlineno, registry=_seen)


@lru_cache(maxsize=16)
def _unread_class(cls: Any) -> Any:
    return type(cls.__name__, (_Unread, cls), {"__slots__": (), "__module__": cls.__module__,
                                               "_value": property(_Unread._get, _Unread._set)})


def _is_augmented(caller: FrameType) -> bool:
    """True if the caller reads an item in order to write it: `x[k] += v` copies x and k beforehand."""
    code, place = caller.f_code.co_code, caller.f_lasti
    while place > 0 and dis.opname[code[place]] == "CACHE":  # warm code calls from behind the instruction
        place -= 2
    return place > 1 and dis.opname[code[place - 2]] == "COPY"


def _as_read(tensor: Any) -> None:
    _written_at.pop(id(tensor), None)
    tensor.__class__ = tensor.__class__.__bases__[1]
