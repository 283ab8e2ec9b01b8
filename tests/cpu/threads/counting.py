"""Tasks that count how often each of them is done."""

from __future__ import annotations

import ctypes
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from nnc_cpu.addresses import arguments_of
from nnc_cpu.llvm.compiler import HostCompiler, LoadedModule, host
from nnc_cpu.threads.tasks import Tasks, launch_shared

TEXT = """
define void @count(ptr %arguments, ptr %numbers, i64 %begin, i64 %end) #0 {
entry:
  %counts = load ptr, ptr %arguments
  br label %loop
loop:
  %task = phi i64 [ %begin, %entry ], [ %next, %body ]
  %more = icmp slt i64 %task, %end
  br i1 %more, label %body, label %done
body:
  %place = getelementptr i32, ptr %counts, i64 %task
  %before = atomicrmw add ptr %place, i32 1 monotonic
  %next = add i64 %task, 1
  br label %loop
done:
  ret void
}

define void @measure(ptr %arguments, ptr %numbers, i64 %begin, i64 %end) #0 {
entry:
  %sizes = load ptr, ptr %arguments
  %place = getelementptr i32, ptr %sizes, i64 %begin
  %size = sub i64 %end, %begin
  %narrow = trunc i64 %size to i32
  store i32 %narrow, ptr %place
  ret void
}
"""


_LOADING = Lock()


def _module() -> LoadedModule:
    """One for all threads: code goes with its module, so that nobody may have another one for a moment."""
    with _LOADING:
        return _loaded()


@cache
def _loaded() -> LoadedModule:
    machine = HostCompiler(host())
    return machine.load([machine.compile(TEXT)], ["count", "measure"])


def counting(count: int, most_threads: int, name: str = "count") -> Tasks:
    """Tasks that each add one at their place in the array that they are given."""
    address = _module().addresses[name]
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)
    return Tasks(function, address, 0, count, 1.0, min(count, most_threads))


def counted(count: int, most_threads: int) -> Any:
    """How often each task was done by one launch."""
    counts = np.zeros(count + 2, np.int32)
    launch_shared(counting(count, most_threads), arguments_of([counts[1:]]))
    assert counts[0] == counts[-1] == 0, "a task that there is not was done"
    return counts[1:-1]


def pieces(count: int, most_threads: int) -> list[int]:
    """The tasks that were taken at once, in the order of the tasks."""
    sizes = np.zeros(count, np.int32)
    launch_shared(counting(count, most_threads, "measure"), arguments_of([sizes]))
    return [int(size) for size in sizes if size]
