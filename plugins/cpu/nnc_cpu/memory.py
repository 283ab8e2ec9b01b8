"""Buffers: one-dimensional arrays of bytes, and arrays lying in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from nnc_core.base.dtype import ALL_DTYPES, name_of
from nnc_core.base.errors import DeviceMemoryError
from nnc_core.base.layout import Layout, packed_strides
from nnc_cpu import host
from nnc_cpu.addresses import address_of

Array: TypeAlias = np.ndarray[Any, Any]
Bytes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint8]]

ALIGNMENT = 64


LARGE = 1 << 28
"""Bytes from which on it is worth knowing beforehand that the machine has not got them."""


class CpuBlock(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """Bytes that the pool hands out.  NumPy lets a view refer to the array at the beginning of a chain of views, but
    not past a change of class: so every view of a claim, which is of NumPy's own class, refers to the claim."""

    __slots__ = ()


def reserve(nbytes: int) -> CpuBlock:
    """Uninitialised and aligned.  DeviceMemoryError beyond the machine's memory."""
    known = host.memory() if nbytes > LARGE else None  # asking the system costs more than most allocations
    if known is not None and nbytes > known[1]:
        raise _no_memory(nbytes)
    try:
        room = CpuBlock(nbytes + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError, OverflowError):  # ValueError: more than NumPy can count
        raise _no_memory(nbytes) from None
    start = -room.__array_interface__["data"][0] % ALIGNMENT  # `ctypes.data` takes twice as long
    return room[start : start + nbytes]  # type: ignore[return-value]


def block_of(array: Any) -> CpuBlock | None:
    """The block that a packed array lies at the start of: one that is as large as a claim begins where it does."""
    claim = array.base
    if claim is None or claim.__class__ is not np.ndarray or claim.nbytes != array.nbytes:
        return None
    block = claim.base
    return block if block.__class__ is CpuBlock and array.flags.c_contiguous else None


def _no_memory(nbytes: int) -> DeviceMemoryError:
    known = host.memory()
    there = "" if known is None else f"; {known[0]:,} of {known[1]:,} bytes are available"
    return DeviceMemoryError(f"cannot allocate {nbytes:,} bytes{there}", device="cpu:0",
                             hint="use smaller batches, or free arrays that are not needed any more")


def array_in(buffer: Bytes, layout: Layout) -> Array:
    """A view; strides that do not matter are those of C order."""
    return np.ndarray(layout.shape, layout.dtype, buffer, layout.offset, strides_of(layout))


def arrays_in(layout: Layout) -> Callable[[Bytes], Array]:
    """`array_in` for one layout."""
    shape, dtype, offset, strides = layout.shape, layout.dtype, layout.offset, strides_of(layout)
    return lambda buffer: np.ndarray(shape, dtype, buffer, offset, strides)


def strides_of(layout: Layout) -> tuple[int, ...]:
    """Its strides, those of C order where they do not matter."""
    return packed_strides(layout.shape, layout.dtype.itemsize) if layout.contiguous else layout.strides


def layout_of(array: Any) -> Layout:
    """As seen from the array's lowest address: element zero, unless axes run backwards."""
    strides = array.strides
    offset = _backwards(array.shape, strides) if strides and min(strides) < 0 else 0
    return Layout(array.shape, array.dtype, offset, strides)


def _backwards(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """The number of bytes before element zero at which the array begins."""
    return -sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if s < 0 < n)


def bytes_of(array: Any) -> Bytes:
    """All bytes from the array's lowest address to its highest; its own memory but for NumPy scalars."""
    array = np.asarray(array)
    if array.flags.c_contiguous:
        flat: Bytes = array.reshape(-1).view(np.uint8)
        return flat
    forwards = array[tuple([slice(None, None, -1 if s < 0 else 1) for s in array.strides])]
    first = forwards[(slice(0, 1),) * array.ndim].reshape(-1).view(np.uint8)
    return np.lib.stride_tricks.as_strided(first, (layout_of(array).extent,), (1,))


def adopted(array: Any) -> Array | None:
    """A read-only view of a host array, if kernels can read it where it lies: elements whole and aligned."""
    dtype = ALL_DTYPES.get(name_of(array.dtype))
    if dtype is None or array.dtype != dtype or not array.dtype.isnative or not array.flags.aligned:
        return None
    if any(s % dtype.itemsize for s in array.strides):
        return None
    view: Array = np.asarray(array).view(dtype)  # one object for each dtype: they are told apart by identity
    view.flags.writeable = False
    return view


def exposed(array: Any) -> Array:
    """A read-only view."""
    view: Array = np.asarray(array)[...]
    view.flags.writeable = False
    return view


def packed_like(array: Array) -> Array:
    """The array under the strides of C order, which it has but for axes that do not matter."""
    wanted = packed_strides(array.shape, array.itemsize)
    return array if array.strides == wanted else array.reshape(-1).reshape(array.shape)


def same_place(old: Any, new: Any) -> bool:
    """True if two packed views of the memory of one object, which the first keeps alive, are of the same bytes."""
    return (old.base is not None and old.base is new.base and old.nbytes == new.nbytes
            and old.flags.writeable == new.flags.writeable and same_start(old, new))


def same_start(a: Array, b: Array) -> bool:
    return address_of(a) == address_of(b)
