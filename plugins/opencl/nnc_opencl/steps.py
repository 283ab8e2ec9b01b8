"""Programs of several kernels that run one after another: built once, and launched with the numbers of one command."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from threading import Lock
from typing import Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

import numpy as np
import pyopencl as cl

from nnc_core.device import Buffer, Kernel, Launch, Stream
from nnc_opencl.kernel import Numbers, OpenCLLaunch, all_of, lend
from nnc_opencl.programs import Code, ProgramBuilder
from nnc_opencl.stream import OpenCLStream


class EntryLaunch(NamedTuple):
    """A launch: the kernel, the work items and their groups, and the numbers that come with it."""

    entry: str
    items: int
    group: int
    size: int = 0
    step: int = 0


class ProgramSource(Protocol):
    """Anything hashable that writes a program."""

    def text(self, grouped: bool) -> str: ...
    def __hash__(self) -> int: ...


class StepsKernel(Kernel):
    """Kernels of one program that run one after another on the same arguments."""

    def __init__(self, name: str, codes: dict[str, Code], steps: Sequence[EntryLaunch], numbers: Numbers,
                 default: OpenCLStream) -> None:
        self.name, self.codes, self.steps, self.numbers, self.default = name, codes, steps, numbers, default

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        queue = self.default if stream is None else stream
        assert isinstance(queue, OpenCLStream), f"{stream!r} is no stream of an OpenCL device"
        given: list[Any] = [*buffers, self.numbers]
        return all_of([self._launch(step, given, queue) for step in self.steps])

    def _launch(self, step: EntryLaunch, given: Sequence[Buffer], queue: OpenCLStream) -> OpenCLLaunch:
        code = self.codes[step.entry]
        handle = lend(code, given, (np.int64(step.size), np.int64(step.step)), self.name, self.default.id)
        return OpenCLLaunch(self.name, handle, code.free, (step.items, step.group), given, queue)


class StepsCompiler:
    """Builds programs of several kernels for one device; a program lives as long as any kernel that uses it."""

    def __init__(self, builder: ProgramBuilder, default: OpenCLStream, grouped: bool) -> None:
        self.builder, self.default, self.grouped = builder, default, grouped
        self.cores: int = builder.device.max_compute_units
        self._programs: WeakValueDictionary[Hashable, cl.Program] = WeakValueDictionary()
        self._lock = Lock()

    def kernel(self, name: str, source: ProgramSource, steps: Sequence[EntryLaunch],
               numbers: Sequence[int]) -> StepsKernel:
        """The kernel that takes these steps of a program, with numbers that all of them read."""
        program = self.program(name, source)
        codes = {entry: Code(program, entry, self.builder.device) for entry in {step.entry for step in steps}}
        return StepsKernel(name, codes, steps, Numbers(self.builder.context, numbers, 0), self.default)

    def program(self, name: str, source: ProgramSource) -> cl.Program:
        """A program, built once."""
        with self._lock:
            found = self._programs.get(source)
            if found is None:
                found = self._programs[source] = self.builder.library(name, source.text(self.grouped))
        return found
