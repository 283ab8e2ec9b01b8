"""Items of arrays read and written by keys that NumPy understands as the Array API does; others take the operators."""

from __future__ import annotations

import operator
from types import EllipsisType, NoneType
from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_cpu.guards import PLAIN, guarded

_NO_SLICES = frozenset({int, NoneType, EllipsisType})
_EXACT = 1 << 24
"""Integers up to here are floats of every dtype that numbers are written into."""
_write = guarded(operator.setitem)


def _every_axis(key: Any) -> Any:
    """A key of integers, slices with steps forward, ... and None, that gives a view even of one element; None for any
    other."""
    if key.__class__ is int:
        return (key, ...)
    keys, has_ellipsis = key if key.__class__ is tuple else (key,), False
    for k in keys:
        if k.__class__ is slice:
            if k.step is not None and (k.step.__class__ is not int or k.step < 1):
                return None
        elif k.__class__ not in _NO_SLICES:
            return None
        elif k is ...:
            has_ellipsis = True
    return keys if has_ellipsis else (*keys, ...)


def get_item(x: Any, key: Any) -> Any:
    """A view; a packed copy where there are lists or arrays of integers, or masks, in the key."""
    keys = _every_axis(key)
    if keys is not None:
        return x[keys]
    keys = _with_indices(key)
    if keys is None:
        return NotImplemented
    found = x[keys]
    return found if found.flags.c_contiguous else found.copy()


def _with_indices(key: Any) -> Any:
    """A key in which there are lists or arrays of integers, or masks; None for any other."""
    keys = tuple(map(_index, key)) if key.__class__ is tuple else (_index(key),)
    return None if any([k is NotImplemented for k in keys]) else keys


def _index(k: Any) -> Any:
    """One part of a key: those that the device and NumPy understand alike."""
    if k.__class__ is list:
        return np.array(k, np.intp) if k and set(map(type, k)) == {int} else NotImplemented
    if k.__class__ is np.ndarray:
        return k if k.ndim and k.dtype.kind in "iub" else NotImplemented
    if k.__class__ is slice:
        return k if k.step is None or (k.step.__class__ is int and k.step > 0) else NotImplemented
    return k if k.__class__ in _NO_SLICES else NotImplemented


def set_item(x: Any, key: Any, new: Any) -> Any:
    """Write into x, if that gives what a cast of the number does."""
    if not _fits(x.dtype, new):
        return NotImplemented
    keys = _every_axis(key)
    if keys is None and (keys := _with_indices(key)) is None:
        return NotImplemented
    _write(x, keys, new)
    return x


def _fits(dtype: dt.DType, new: Any) -> bool:
    if new.__class__ is float:
        return dtype.kind == "f" and dtype.num < PLAIN
    if new.__class__ is int:
        return dtype.kind in "iu" or (dtype.kind == "f" and dtype.num < PLAIN and -_EXACT <= new <= _EXACT)
    return True
