"""`x[key] = v` where x lies, if nobody but the tensor can see its memory; a copy is written otherwise.

A value never changes for those who hold it.  One that the tensor alone holds is seen by nobody any more once the tensor
points at another one: so its memory may become that of the new value.  Whoever could look refers to the value (other
tensors, steps, cells, gradients), to its array (values that share it, programs) or to the memory (views, exports of
every kind), and references are counted.
"""

from __future__ import annotations

import threading
from sys import getrefcount
from typing import Any
from weakref import getweakrefcount

import numpy as np

from nnc_core.base.fast_path import CLOSED_BY
from nnc_core.values.accepted import SET_ITEM
from nnc_core.values.modes import current_trace, lazy
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Handle, Value

_lock = threading.RLock()
"""Held by whoever writes."""
_value: Any = Handle.__dict__["_value"]


class _BeingWritten(Tensor):
    """A tensor whose memory is written just now: other threads that ask for its value wait."""

    __slots__ = ()

    def _get(self) -> Value:
        with _lock:
            held: Value = _value.__get__(self)
            return held

    def _set(self, value: Value) -> None:
        with _lock:
            _value.__set__(self, value)

    _value = property(_get, _set)


def write_in_place(tensor: Tensor, key: Any, new: Any) -> bool:
    """Write items where they lie and point the tensor at a fresh value there; False if nothing was done."""
    if tensor.__class__ is not Tensor or not _may_change(old := tensor._value):
        return False
    kernel, item = old.stack.accepted.get(SET_ITEM), _item(new, old)
    if kernel is None or item is None or not _lock.acquire(blocking=False):
        return False
    try:
        tensor.__class__ = _BeingWritten  # who has not got the value by now does not get it before it is written
        counted = references(old)
        if item.__class__ is np.ndarray:
            counted = _without_its_part(old, counted, key, item)
        if not _is_alone(old, counted) or kernel(old.array, of_arrays(key, old), item) is NotImplemented:
            return False
        _value.__set__(tensor, Value(old.array, old.stack, old._spec))
        return True
    except Exception:
        return False  # the slow way finds out why
    finally:
        tensor.__class__ = Tensor
        _lock.release()


def copied_and_written(old: Value, key: Any, new: Any) -> Value | None:
    """The value with items written into a copy by the device's own kernel; None where there is none for them."""
    kernel, item = old.stack.accepted.get(SET_ITEM), _item(new, old)
    if kernel is None or item is None or not _may_change(old):
        return None
    copy = old.stack.device.eager.get("copy")
    if copy is None:
        return None
    try:
        array = copy(old.array)
        return None if kernel(array, of_arrays(key, old), item) is NotImplemented else Value(array, old.stack)
    except Exception:
        return None  # the slow way finds out why


def _without_its_part(old: Value, counted: tuple[int, int, int], key: Any, item: Any) -> tuple[int, int, int]:
    """The references without that of the array that is written, where it is a part of the same memory that lies apart
    from where it is written to, as in `x[0] = x[1]`."""
    array: Any = old.array
    if item.base is None or not _is_plain(key):
        return counted
    value, held, owner = counted
    if item.base is array:
        held -= 1
    elif item.base is array.base:
        owner -= 1
    else:
        return counted
    keys = key if key.__class__ is tuple else (key,)
    return counted if np.may_share_memory(array[(*keys, ...)], item) else (value, held, owner)


def _is_plain(key: Any) -> bool:
    """Integers and slices, which name a part of the memory."""
    if key.__class__ is tuple:
        return not any([k.__class__ is not int and k.__class__ is not slice for k in key])
    return key.__class__ is int or key.__class__ is slice


def is_held_once(v: Value, counted: tuple[int, int, int]) -> bool:
    """Tell whether a value is an array and nothing else, and has one holder; `counted` are its `references`, counted
    by itself in a line of the caller, who refers to the value in one variable."""
    return _is_array(v) and _is_alone(v, counted)


def _is_array(v: Value) -> bool:
    return (v.__class__ is Value and v.array.__class__ is np.ndarray and v.step is None and not v.tracked
            and v.adjoint is None and v.trace is None)


def _may_change(v: Value) -> bool:
    """Tell whether a value is an array and nothing else, and nothing that runs around has to see it change."""
    return _is_array(v) and not CLOSED_BY and not lazy.get() and current_trace.get() is None


def _item(new: Any, old: Value) -> Any:
    """A number, or an array of the same dtype and device, as kernels take it; None for anything else."""
    if new.__class__ is float or new.__class__ is int:
        return new
    if new.__class__ is not Tensor:
        return None
    v = new._value
    same = v.__class__ is Value and v.array.__class__ is np.ndarray and v.stack is old.stack and not v.tracked
    return v.array if same and v.array.dtype is old.dtype else None  # type: ignore[union-attr]


def of_arrays(key: Any, x: Value) -> Any:
    """A key with the arrays of tensors that are at hand beside x; others stay, for which there is no kernel."""
    if key.__class__ is Tensor:
        return _array_of(key, x)
    if key.__class__ is tuple and any([k.__class__ is Tensor for k in key]):
        return tuple([_array_of(k, x) if k.__class__ is Tensor else k for k in key])
    return key


def _array_of(t: Tensor, x: Value) -> Any:
    v = t._value
    at_hand = v.__class__ is Value and v.array is not None and v.stack is x.stack and current_trace.get() is None
    return v.array if at_hand else t


# ---- who else is there
def references(v: Value) -> tuple[int, int, int]:
    """The references to a value, to its array, and to what owns the array's memory; zeros for other arrays than
    NumPy's."""
    array = v.array
    if array.__class__ is not np.ndarray:
        return 0, 0, 0
    base = array.base
    return getrefcount(v), getrefcount(array), 0 if base is None else getrefcount(base)


def _is_alone(v: Value, counted: tuple[int, int, int]) -> bool:
    """Tell whether nobody but the tensor refers to an array, weakly or by its memory."""
    array: Any = v.array
    base, flags = array.base, array.flags
    if counted != (_OWNER if base is None else _PART) or getweakrefcount(v) or getweakrefcount(array):
        return False
    if not flags.writeable or not flags.forc:  # with gaps elements may lie in one place
        return False
    if base is None:
        return bool(flags.owndata)
    owned = base.__class__ is np.ndarray and base.base is None and base.flags.owndata
    return owned or v.stack.device.pool.is_claim(base)


def _references_of(array: Any, also: Any = None) -> tuple[int, int, int]:
    """The count for a value of this array that one tensor holds."""
    tensor = Tensor(Value(array, None))  # type: ignore[arg-type]
    del array
    held, old = also and tensor._value, tensor._value
    counted = references(old)
    del held
    return counted


def _of_lone_ones() -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """The counts for an array that owns its memory and for a part of one; none fits where this Python cannot tell who
    else holds something."""
    owner, shared = _references_of(np.zeros(2)), _references_of(np.zeros(2), True)
    part, held = _references_of(np.zeros(2)[:]), np.zeros(2)
    parts = _references_of(held[:])
    tells = owner[0] < shared[0] and part[2] < parts[2] and owner[1] < _references_of(held)[1]
    return (owner, part) if tells else ((0, 0, 0), (0, 0, 0))


_OWNER, _PART = _of_lone_ones()
