"""Buffers: one-dimensional arrays of bytes, and arrays lying in them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from nnc_core.base.errors import DeviceMemoryError
from nnc_core.base.layout import Layout, packed_strides
from nnc_cpu import host

Array: TypeAlias = np.ndarray[Any, Any]
Bytes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint8]]

ALIGNMENT = 64


def allocate(nbytes: int) -> Bytes:
    """Uninitialised and aligned.  DeviceMemoryError beyond the machine's memory."""
    known = host.memory()
    if known is not None and nbytes > known[1]:
        raise _no_memory(nbytes)
    try:
        room = np.empty(nbytes + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError, OverflowError):  # ValueError: more than NumPy can count
        raise _no_memory(nbytes) from None
    start = -room.ctypes.data % ALIGNMENT
    return room[start : start + nbytes]


def _no_memory(nbytes: int) -> DeviceMemoryError:
    known = host.memory()
    there = "" if known is None else f"; {known[0]:,} of {known[1]:,} bytes are available"
    return DeviceMemoryError(f"cannot allocate {nbytes:,} bytes{there}", device="cpu:0",
                             hint="use smaller batches, or free arrays that are not needed any more")


def array_in(buffer: Bytes, layout: Layout) -> Array:
    """A view; strides that do not matter are those of C order."""
    strides = packed_strides(layout.shape, layout.dtype.itemsize) if layout.contiguous else layout.strides
    return np.ndarray(layout.shape, layout.dtype, buffer, layout.offset, strides)


def layout_of(array: Any) -> Layout:
    """As seen from the array's own element zero."""
    return Layout(array.shape, array.dtype, 0, array.strides)


def bytes_of(array: Any) -> Bytes:
    """The bytes from element zero to the last element; the array's own memory but for NumPy scalars."""
    array = np.asarray(array)
    if array.flags.c_contiguous:
        flat: Bytes = array.reshape(-1).view(np.uint8)
        return flat
    first = array[(slice(0, 1),) * array.ndim].reshape(-1).view(np.uint8)
    return np.lib.stride_tricks.as_strided(first, (layout_of(array).extent,), (1,))


def packed_like(array: Array) -> Array:
    """The array under the strides of C order, which it has but for axes that do not matter."""
    wanted = packed_strides(array.shape, array.itemsize)
    return array if array.strides == wanted else array.reshape(-1).reshape(array.shape)


def same_start(a: Array, b: Array) -> bool:
    return bool(a.ctypes.data == b.ctypes.data)
