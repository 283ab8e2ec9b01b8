"""Code by its kind: what many problems share, which give it numbers."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Iterator, Sequence
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from nnc_cpu.llvm.compiler import LoadedModule
from nnc_cpu.threads.tasks import TaskKernel, Tasks, tasks_of

SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
"""Of functions of tasks: arguments, numbers, the first task and the end."""

K = TypeVar("K", bound=Hashable)
C = TypeVar("C")


class CodeByKind(Generic[K, C]):
    """Makes the code of each kind once, which goes with the last kernel that uses it."""

    def __init__(self, make: Callable[[K], C]) -> None:
        self._make = make
        self._codes: WeakValueDictionary[K, C] = WeakValueDictionary()
        self._lock = Lock()

    def __getitem__(self, kind: K) -> C:
        with self._lock:
            found = self._codes.get(kind)
            if found is None:
                found = self._codes[kind] = self._make(kind)
        return found

    def __iter__(self) -> Iterator[K]:
        """The kinds whose code is in use."""
        with self._lock:
            return iter([*self._codes])


class FunctionCode:
    """A function of tasks; its module lives as long as anything uses it."""

    def __init__(self, module: LoadedModule, name: str) -> None:
        self.module, self.address = module, module.addresses[name]
        self.function = SIGNATURE(self.address)


class FunctionKernel(TaskKernel):
    """The function of a kind with the numbers of one problem; `seconds`: what all tasks take in one thread."""

    def __init__(self, code: FunctionCode, numbers: Sequence[int], tasks: int, seconds: float,
                 notes: bool = False) -> None:
        self.code = code
        self.numbers = (ctypes.c_int64 * len(numbers))(*numbers)
        self._tasks = tasks_of(code.function, code.address, ctypes.addressof(self.numbers), tasks, seconds, notes)

    @property
    def tasks(self) -> Tasks:
        return self._tasks
