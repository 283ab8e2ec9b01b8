"""Programs of several kernels that run one after another, on a CUDA device: their numbers are arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from threading import Lock
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from nnc_core.base.errors import DeviceFailureError
from nnc_core.device import Buffer, Launch, Stream
from nnc_core.operator.steps import EntryLaunch, ProgramSource, StepsPart
from nnc_cuda.dialect import CUDA
from nnc_cuda.driver import CompileError
from nnc_cuda.failure import explained
from nnc_cuda.kernel import CapturableKernel, CudaLaunch, LaunchStep
from nnc_cuda.modules import Module, ModuleBuilder, ModuleFunction, last_words
from nnc_cuda.stream import CudaStream

PutConstants: TypeAlias = Callable[[np.ndarray[Any, Any]], Buffer]


class LaunchedPart(NamedTuple):
    """A part, and its launches."""

    part: StepsPart
    steps: Sequence[LaunchStep]


class StepsLaunch(CudaLaunch):
    """The launches of all parts as one, whose arguments a graph can change."""

    __slots__ = ()

    def __init__(self, name: str, launches: Sequence[CudaLaunch], stream: CudaStream) -> None:
        super().__init__(name, (), (), stream)
        self._kept = launches
        self.calls = [call for launch in launches for call in launch.calls]


class CudaStepsKernel(CapturableKernel):
    """Kernels of programs that run one after another."""

    def __init__(self, name: str, parts: Sequence[LaunchedPart], default: CudaStream) -> None:
        self.name, self.parts, self.default = name, parts, default

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        queue = self.queue(stream)
        launches = [CudaLaunch(self.name, steps, part.given(buffers), queue) for part, steps in self.parts]
        return launches[0] if len(launches) == 1 else StepsLaunch(self.name, launches, queue)


class CudaStepsCompiler:
    """Builds such programs for one device; a program lives as long as any kernel that uses it."""

    grouped = True
    cores = 1

    def __init__(self, builder: ModuleBuilder, default: CudaStream, dtypes: frozenset[str],
                 put: PutConstants) -> None:
        """`put`: makes memory of the device with given values."""
        self.builder, self.default, self.dtypes, self.constants = builder, default, dtypes, put
        self._modules: WeakValueDictionary[Hashable, Module] = WeakValueDictionary()
        self._lock = Lock()

    def kernel(self, name: str, parts: Sequence[StepsPart]) -> CudaStepsKernel:
        return CudaStepsKernel(name, [self._built(name, part) for part in parts], self.default)

    def _built(self, name: str, part: StepsPart) -> LaunchedPart:
        module = self.module(name, part.source)
        with explained("looking a kernel up", self.builder.id):
            found = {entry: ModuleFunction(module, entry) for entry in {step.entry for step in part.steps}}
        return LaunchedPart(part, [_step(found[step.entry], step, part) for step in part.steps])

    def module(self, name: str, source: ProgramSource) -> Module:
        """The code of a program, compiled once."""
        with self._lock:
            found = self._modules.get(source)
            if found is None:
                found = self._modules[source] = self._compiled(name, source.text(CUDA, self.grouped))
        return found

    def _compiled(self, name: str, text: str) -> Module:
        try:
            return self.builder.module(text)
        except CompileError as error:
            message = f"NVRTC cannot compile the kernels of {name}: {last_words(str(error))}"
            hint = "`nnc devices` examines the driver"
            raise DeviceFailureError(message, device=self.builder.id, hint=hint) from error


def _step(function: ModuleFunction, step: EntryLaunch, part: StepsPart) -> LaunchStep:
    return LaunchStep(function, step.items // step.group, step.group, (*part.numbers, step.size, step.step))
