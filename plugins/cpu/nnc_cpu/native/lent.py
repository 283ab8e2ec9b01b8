"""Arrays that a program has for one run: their addresses go into its slots, and nothing is bound."""

from __future__ import annotations

import ctypes
import struct
import sys
import sysconfig
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from nnc_cpu.llvm.resident import load_for_ever

if TYPE_CHECKING:
    from nnc_cpu.native.slots import NativeSlots

KNOWN = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
"""Objects begin as `lent.ll` takes them to: a count, and their class."""
_LEND = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


class _Arguments(ctypes.Structure):
    """`lent.ll` says what is what."""

    _fields_ = (("kind", ctypes.c_size_t), ("slots", ctypes.c_void_p), ("places", ctypes.c_void_p),
                ("objects", ctypes.c_void_p), ("count", ctypes.c_int64))


@cache
def _lend() -> Any:
    return _LEND(load_for_ever("nnc_cpu.native", "lent.ll", ("nnc_lend",))["nnc_lend"])


class Lent:
    """The slots of a program that arrays are lent to."""

    def __init__(self, slots: Sequence[int], native: NativeSlots) -> None:
        count = len(slots)
        self.slots = slots
        self._objects = (ctypes.c_size_t * max(count, 1))()
        self._places = (ctypes.c_int64 * max(count, 1))(*slots)
        self._arguments = _Arguments(id(np.ndarray), ctypes.addressof(native.now), ctypes.addressof(self._places),
                                     ctypes.addressof(self._objects), count)
        self._write, self._lend, self._count = struct.Struct(f"{count}N").pack_into, _lend(), count
        self._place = ctypes.addressof(self._arguments)

    def lend(self, arrays: list[Any]) -> list[Any]:
        """Let the slots have these arrays, or packed copies; the caller keeps what it gets until the run has ended."""
        self._write(self._objects, 0, *map(id, arrays))
        found = self._lend(self._place)
        while found < self._count:
            arrays[found] = np.array(arrays[found], order="C")
            self._objects[found] = id(arrays[found])
            found = self._lend(self._place)
        return arrays
