"""DLPack's structures, and the capsules that libraries hand to each other with them."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.dtype import DType, bfloat16, boolean
from nnc_core.base.errors import ExchangeError

PLAIN, VERSIONED = b"dltensor", b"dltensor_versioned"
"""Names of capsules that nobody has taken yet."""
USED = {PLAIN: b"used_dltensor", VERSIONED: b"used_dltensor_versioned"}
READ_ONLY, COPIED = 1, 2
"""Flags of versioned capsules."""
CODES = {"i": 0, "u": 1, "f": 2, "c": 5}
BFLOAT, BOOL = 4, 6
Deleter: Any = ctypes.CFUNCTYPE(None, c_void_p)


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", DLDevice), ("ndim", c_int32), ("dtype", DLDataType),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", Deleter)]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager_ctx", c_void_p), ("deleter", Deleter),
                ("flags", c_uint64), ("dl_tensor", DLTensor)]


STRUCTURES: dict[bytes, type[DLManagedTensor | DLManagedTensorVersioned]] = {
    PLAIN: DLManagedTensor, VERSIONED: DLManagedTensorVersioned}  # fmt: skip


class StridedMemory(NamedTuple):
    """An array as libraries tell each other of it.  Strides are bytes."""

    address: int
    """Of element zero."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    device: tuple[int, int]


class TakenTensor:
    """A tensor of another library, which gets it back when this is gone."""

    def __init__(self, managed: Any) -> None:
        self._managed = managed

    def __del__(self) -> None:
        if self._managed.deleter:
            self._managed.deleter(ctypes.addressof(self._managed))


_lent: dict[int, tuple[Any, Any, object]] = {}
"""What was handed out, by the addresses of structures: these, shapes and strides, and what keeps the memory alive."""


def _end_loan(address: int) -> None:
    _lent.pop(address, None)


_capsules: Any = ctypes.pythonapi
_capsules.PyCapsule_New.restype = ctypes.py_object
_capsules.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]
_IsValid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_GetPointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_SetName = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))


def _drop(capsule: int) -> None:
    """Called for a capsule that is about to go, as an address: nothing may refer to it any more."""
    for name in USED:
        if _IsValid(capsule, name):
            _end_loan(_GetPointer(capsule, name))


_deleter = Deleter(_end_loan)
_destructor = ctypes.PYFUNCTYPE(None, c_void_p)(_drop)


def lent(array: StridedMemory, owner: object, versioned: bool, flags: int) -> Any:
    """A capsule of an array, whose memory `owner` keeps until the other library is done with it."""
    count = len(array.shape)
    numbers = (c_int64 * (2 * count))(*array.shape, *[step // array.dtype.itemsize for step in array.strides])
    shape = ctypes.cast(numbers, POINTER(c_int64))
    strides = ctypes.cast(ctypes.byref(numbers, 8 * count), POINTER(c_int64))
    tensor = DLTensor(array.address, DLDevice(*array.device), count, _described(array.dtype), shape, strides, 0)
    managed = (DLManagedTensorVersioned(1, 0, None, _deleter, flags, tensor) if versioned
               else DLManagedTensor(tensor, None, _deleter))
    address = ctypes.addressof(managed)
    _lent[address] = managed, numbers, owner
    name = VERSIONED if versioned else PLAIN
    return _capsules.PyCapsule_New(address, name, ctypes.cast(_destructor, c_void_p))


def taken(capsule: Any) -> tuple[StridedMemory, TakenTensor]:
    """The array of a capsule that nobody has taken yet, and what keeps its memory."""
    address = id(capsule)
    name = next((name for name in USED if _IsValid(address, name)), None)
    if name is None:
        raise ExchangeError("this capsule of DLPack was taken before, or is none")
    managed: Any = STRUCTURES[name].from_address(_GetPointer(address, name))
    _SetName(address, USED[name])
    owner = TakenTensor(managed)
    if name == VERSIONED and managed.major > 1:
        raise ExchangeError(f"a capsule of DLPack {managed.major}.{managed.minor}, of which only version 1 is known")
    return _read(managed.dl_tensor), owner


def _read(tensor: Any) -> StridedMemory:
    count, dtype = tensor.ndim, _dtype(tensor.dtype)
    shape = tuple(tensor.shape[:count])
    steps = tensor.strides[:count] if tensor.strides else _packed(shape)
    strides = tuple([step * dtype.itemsize for step in steps])
    return StridedMemory((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype,
                         (tensor.device.device_type, tensor.device.device_id))


def _packed(shape: tuple[int, ...]) -> list[int]:
    return [int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape))]


def _described(dtype: DType) -> DLDataType:
    code = BFLOAT if dtype == bfloat16 else BOOL if dtype == boolean else CODES[dtype.kind]
    return DLDataType(code, dtype.itemsize * 8, 1)


def _dtype(described: Any) -> DType:
    code, bits, lanes = described.code, described.bits, described.lanes
    kind = next((kind for kind, known in CODES.items() if known == code), None)
    if lanes == 1 and (code, bits) == (BFLOAT, 16):
        return bfloat16
    if lanes == 1 and (code, bits) == (BOOL, 8):
        return boolean
    if lanes != 1 or kind is None or bits not in (8, 16, 32, 64, 128):
        raise ExchangeError(f"elements of type {code} with {bits} bits and {lanes} lanes are unknown here")
    try:
        return np.dtype(f"{kind}{bits // 8}")
    except TypeError:  # floats of 8 bits, say
        raise ExchangeError(f"elements of type {code} with {bits} bits are unknown here") from None


