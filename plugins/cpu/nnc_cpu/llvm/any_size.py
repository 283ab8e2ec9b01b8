"""Machine code of formulas of elements, made for one packed array and run on packed arrays of every size."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nnc_cpu.addresses import arguments_of
from nnc_cpu.llvm.by_arrays import MOST, call_by_arrays
from nnc_cpu.threads.tasks import Tasks, launch_shared, tasks_of

if TYPE_CHECKING:
    from nnc_cpu.llvm.kernel import MachineCode

MOST_SIZES = 64
"""Sizes for which a kernel remembers its tasks."""


class Sized(NamedTuple):
    """The tasks of arrays of one size, and the numbers that they read."""

    tasks: Tasks
    numbers: Any


class AnySize:
    """The code of a nest of one axis, whose length is an argument; `seconds` is about what an element takes, `count`
    the number of arrays that it is given."""

    def __init__(self, code: MachineCode, seconds: float, count: int) -> None:
        self.code, self.seconds = code, seconds
        self._call = call_by_arrays(count) if count <= MOST else None
        self._sized: dict[int, Sized] = {}

    def run(self, arrays: Sequence[np.ndarray[Any, Any]], out: np.ndarray[Any, Any]) -> None:
        """`arrays` are packed and of the size of `out`, or 0-d where the nest reads one element."""
        size = out.size
        tasks, _ = self._sized.get(size) or self._of(size, len(arrays) + 1)
        if tasks.most_threads == 1 and self._call is not None:
            self._call(tasks.address, tasks.numbers, tasks.total, *arrays, out)
        else:
            launch_shared(tasks, arguments_of((*arrays, out)))

    def _of(self, size: int, arguments: int) -> Sized:
        """Make what a size needs; the numbers say where each argument begins, then the size."""
        if len(self._sized) >= MOST_SIZES:
            self._sized.clear()
        numbers = (ctypes.c_int64 * (arguments + 1))(*[0] * arguments, size)
        code = self.code
        tasks = tasks_of(code.function, code.address, ctypes.addressof(numbers), code.shape.tasks((size,)),
                         self.seconds * size)
        return self._sized.setdefault(size, Sized(tasks, numbers))
