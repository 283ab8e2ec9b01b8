"""Programs of several kernels that run one after another, on an OpenCL device."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import pyopencl as cl

from nnc_core.codegen import OPENCL
from nnc_core.device import Buffer, Kernel, Launch, Stream
from nnc_core.operator.steps import EntryLaunch, ProgramSource, StepsPart
from nnc_opencl.kernel import Numbers, OpenCLLaunch, all_of, lend
from nnc_opencl.memory import OpenCLBuffer
from nnc_opencl.programs import Code, ProgramBuilder
from nnc_opencl.stream import OpenCLStream


class BuiltPart(NamedTuple):
    """A part, the code of its kernels, and the numbers that they read."""

    part: StepsPart
    codes: dict[str, Code]
    numbers: Numbers


class StepsKernel(Kernel):
    """Kernels of programs that run one after another."""

    def __init__(self, name: str, parts: Sequence[BuiltPart], default: OpenCLStream) -> None:
        self.name, self.parts, self.default = name, parts, default

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        queue = self.default if stream is None else stream
        assert isinstance(queue, OpenCLStream), f"{stream!r} is no stream of an OpenCL device"
        launches = []
        for part, codes, numbers in self.parts:
            given: list[Any] = [*part.given(buffers), numbers]
            launches += [self._launch(codes[step.entry], step, given, queue) for step in part.steps]
        return all_of(launches)

    def _launch(self, code: Code, step: EntryLaunch, given: Sequence[Buffer], queue: OpenCLStream) -> OpenCLLaunch:
        handle = lend(code, given, (np.int64(step.size), np.int64(step.step)), self.name, self.default.id)
        return OpenCLLaunch(self.name, handle, code.free, (step.items, step.group), given, queue)


class StepsCompiler:
    """Builds programs of several kernels for one device; a program lives as long as any kernel that uses it."""

    def __init__(self, builder: ProgramBuilder, default: OpenCLStream, grouped: bool) -> None:
        self.builder, self.default, self.grouped = builder, default, grouped
        self.cores: int = builder.device.max_compute_units
        self.dtypes = builder.spec.dtypes
        self._programs: WeakValueDictionary[Hashable, cl.Program] = WeakValueDictionary()
        self._lock = Lock()

    def kernel(self, name: str, parts: Sequence[StepsPart]) -> StepsKernel:
        return StepsKernel(name, [self._built(name, part) for part in parts], self.default)

    def _built(self, name: str, part: StepsPart) -> BuiltPart:
        program = self.program(name, part.source)
        codes = {entry: Code(program, entry, self.builder.device) for entry in {step.entry for step in part.steps}}
        return BuiltPart(part, codes, Numbers(self.builder.context, part.numbers, 0))

    def program(self, name: str, source: ProgramSource) -> cl.Program:
        """A program, built once."""
        with self._lock:
            found = self._programs.get(source)
            if found is None:
                found = self._programs[source] = self.builder.library(name, source.text(OPENCL, self.grouped))
        return found

    def constants(self, values: np.ndarray[Any, Any]) -> OpenCLBuffer:
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        return OpenCLBuffer(cl.Buffer(self.builder.context, flags, hostbuf=values), values.nbytes, None, 0)
