"""Compiled functions on cpu:0, run by machine code and, for comparison, from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.loopnest import LoopNest
from nnc_core.device import Buffer, Kernel, Launch, Stream
from nnc_core.values.tree import flatten
from nnc_cpu.device import CpuDevice
from nnc_cpu.native.way import NativeWay
from nnc_cpu.program import NumpyProgram

Values = np.ndarray[Any, Any]


GUARD = 256
"""Bytes before and behind each block of memory."""


class Captured(CpuDevice):
    """Keeps its programs, and its memory between guards; native: machine code runs the records of programs, otherwise
    Python does."""

    def __init__(self, native: bool = True) -> None:
        super().__init__()
        self.native = native
        self.programs: list[NumpyProgram] = []
        self._rooms: list[Values] = []

    def reserve(self, nbytes: int) -> Any:
        room = super().reserve(nbytes + 2 * GUARD)
        room[:] = 0xA5
        self._rooms.append(room)
        return room[GUARD : GUARD + nbytes]

    @property
    def guarded(self) -> bool:
        """True if nothing was written beside any block."""
        return all([(room[:GUARD] == 0xA5).all() and (room[-GUARD:] == 0xA5).all() for room in self._rooms])

    def capture(self, *given: Any) -> NumpyProgram:
        program = super().capture(*given)
        assert isinstance(program, NumpyProgram)
        if not self.native:
            program.machines.clear()
        self.programs.append(program)
        return program

    @property
    def in_machine_code(self) -> int:
        """Programs that machine code runs."""
        return sum([program.native is not None for program in self.programs])


@contextmanager
def on(device: CpuDevice) -> Iterator[None]:
    """Code that names no device runs there; kernels have machine code when they are first bound."""
    with nnc.use_device(nnc.make_stack(device)), nnc.config.using(compile_at_once=True):
        yield


def called(device: Captured, f: Callable[..., Any], calls: Sequence[Sequence[Values]]) -> list[list[Values]]:
    """The results of one compiled function for several lists of arguments."""
    with on(device):
        compiled = nnc.jit(f)
        return [[y.numpy() for y in flatten(compiled(*map(nnc.asarray, given)))[0]] for given in calls]


def same_bits(f: Callable[..., Any], *calls: Sequence[Values], kind: type[Captured] = Captured) -> None:
    """Assert that machine code, on such a device, gives in every call what Python gives."""
    native, python = kind(), Captured(native=False)
    found, wanted = called(native, f, calls), called(python, f, calls)
    for k, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        for a, b in zip(ours, theirs, strict=True):
            assert a.shape == b.shape and a.tobytes() == b.tobytes(), f"call {k}:\n{a}\n{b}"
    assert native.in_machine_code and not python.in_machine_code
    assert native.guarded, "memory beside a block was written"


def repeated(count: int, f: Callable[[Any], Any], x: Any) -> Any:
    return nnc.while_loop(lambda i, _: i < count, lambda i, x: (i + 1, f(x)), (0, x))[1]


def loops_need_no_python(f: Callable[[Any], Any], x: Values, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code runs some rounds of f without asking Python for any of their kernels."""
    calls: list[Any] = []
    monkeypatch.setattr(NativeWay, "_pythons_calls", lambda *given: calls.append(given))
    device = Captured()
    with on(device):
        compiled = nnc.jit(lambda a: repeated(5, f, a))
        for _ in range(2):
            compiled(nnc.asarray(x))
    assert device.in_machine_code and not calls


class OpaqueKernel(Kernel):
    """A kernel that machine code cannot call: Python launches it."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        return self.kernel.bind(buffers, stream)


class Mixed(Captured):
    """Has Python launch every other of its kernels."""

    made = 0

    def compile_all(self, nests: Sequence[LoopNest]) -> list[Kernel | NotSupportedError]:
        return [self._every_other(kernel) for kernel in super().compile_all(nests)]

    def _every_other(self, kernel: Kernel | NotSupportedError) -> Kernel | NotSupportedError:
        self.made += 1
        return OpaqueKernel(kernel) if self.made % 2 and isinstance(kernel, Kernel) else kernel
