"""Calls of machine code that are given NumPy's arrays as objects and read their addresses themselves.

To collect the addresses of a few small arrays in Python takes longer than most of what is done with them.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from nnc_cpu.addresses import HEAD
from nnc_cpu.llvm.compiler import HostCompiler, LoadedModule, host
from nnc_cpu.llvm.objects import Objects
from nnc_cpu.llvm.resident import for_ever

MOST = 12
"""Arrays of a call."""


@cache
def call_by_arrays(count: int) -> Any:
    """A function of the address of tasks' function, that of its numbers, how many tasks there are, and so many
    arrays, which does all tasks."""
    machine = HostCompiler(host())
    module: LoadedModule = for_ever(machine.load([Objects(machine, kept=True).of_text(_text(count))], [_name(count)]))
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, *[ctypes.py_object] * count)
    return kind(module.addresses[_name(count)])


def _name(count: int) -> str:
    return f"nnc_call_by_arrays_{count}"


def _text(count: int) -> str:
    """Behind the head of the object of an array comes the address of its elements."""
    parameters = ", ".join([f"ptr %array{k}" for k in range(count)])
    lines = [f"define void @{_name(count)}(ptr %function, ptr %numbers, i64 %total, {parameters}) #0 {{",
             f"  %arguments = alloca [{count} x ptr], align 16"]
    for k in range(count):
        lines += [f"  %at{k} = getelementptr i8, ptr %array{k}, i64 {HEAD}", f"  %data{k} = load ptr, ptr %at{k}",
                  f"  %argument{k} = getelementptr ptr, ptr %arguments, i64 {k}",
                  f"  store ptr %data{k}, ptr %argument{k}"]
    return "\n".join([*lines, "  call void %function(ptr %arguments, ptr %numbers, i64 0, i64 %total)", "  ret void",
                      "}\n"])
