"""Nests compiled for hosts of several widths, run between guard bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nnc_core.base.loopnest import LoopNest
from nnc_core.device import Kernel
from nnc_cpu.llvm.compiler import TargetHost, host
from nnc_cpu.llvm.kernel import NestCompiler

Values = np.ndarray[Any, Any]
GUARD = 192
"""Bytes before and behind each array: three of the widest vectors."""

HERE = host()
HOSTS = {"here": HERE, "four lanes": HERE._replace(lanes=4), "eight lanes": HERE._replace(lanes=8),
         "any of its kind": TargetHost("x86-64" if HERE.x86 else "generic", "", 4, False, HERE.x86)}
"""Hosts whose code runs here: this one with its widest vectors and with narrower ones, and one that can do no more than
any processor of its kind."""
_COMPILERS: dict[str, NestCompiler] = {}


def compiler(name: str) -> NestCompiler:
    if name not in _COMPILERS:
        _COMPILERS[name] = NestCompiler(HOSTS[name])
    return _COMPILERS[name]


def kernels(nests: Iterable[LoopNest], name: str) -> list[Kernel]:
    """All compiled together."""
    found = compiler(name).kernels(list(nests))
    errors = [kernel for kernel in found if isinstance(kernel, Exception)]
    assert not errors, errors[0]
    return found  # type: ignore[return-value]


def run(kernel: Kernel, arrays: Sequence[Values]) -> None:
    """Arrays of whole elements, not of whole vectors, begin; what lies beside them stays as it was."""
    rooms = [np.full(array.nbytes + 2 * GUARD + 64, 0xA5, np.uint8) for array in arrays]
    inner = [_behind_guard(room, array) for room, array in zip(rooms, arrays, strict=True)]
    for buffer, array in zip(inner, arrays, strict=True):
        buffer[:] = array.reshape(-1).view(np.uint8)
    kernel.bind(inner)()  # type: ignore[arg-type]
    for room, buffer, array in zip(rooms, inner, arrays, strict=True):
        array[...] = buffer.view(array.dtype).reshape(array.shape)
        buffer[:] = 0xA5
        assert (room == 0xA5).all(), "memory beside an array was written"


def _behind_guard(room: Values, array: Values) -> Values:
    start = room.__array_interface__["data"][0]
    begin = GUARD + (-(start + GUARD)) % 64 - 64 + array.itemsize  # aligned to an element and to no more
    begin += 64 if begin < GUARD else 0
    return room[begin : begin + array.nbytes]
