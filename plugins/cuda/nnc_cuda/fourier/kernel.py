"""Kernels of transforms: nests and calls of the library, all enqueued at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nnc_core.base.command import Command
from nnc_core.base.dtype import complex_of, is_complex, real_of
from nnc_core.device import Buffer, Launch, Stream
from nnc_cuda.driver import Driver
from nnc_cuda.fourier.library import FourierLibrary
from nnc_cuda.fourier.plan import FourierSteps, TransformStep, steps_of
from nnc_cuda.kernel import CapturableKernel, CudaKernel, EnqueuedLaunch, LaunchesInTurn, NestStep
from nnc_cuda.stream import CudaStream

if TYPE_CHECKING:
    from nnc_cuda.device import CudaDevice


class TransformLaunch(EnqueuedLaunch):
    """A call of the library with its arguments set."""

    __slots__ = ("_addresses", "_step")

    def __init__(self, step: TransformStep, addresses: tuple[int, int, int], stream: CudaStream) -> None:
        super().__init__("a Fourier transform of the library", stream)
        self._step, self._addresses = step, addresses

    def enqueue(self, driver: Driver, stream: int) -> None:
        self._step.plan.enqueue(*self._addresses, stream)


class FourierKernel(CapturableKernel):
    """Transforms along axes."""

    def __init__(self, device: CudaDevice, library: FourierLibrary, command: Command, steps: FourierSteps) -> None:
        self.device, self.library, self.command, self.default = device, library, command, device.default_stream
        self.name = command.name
        self._as_it_lies = self._compiled(steps)
        self._aligned = 1 if is_complex(command.inputs[0].dtype) else complex_of(
            real_of(command.inputs[0].dtype)).itemsize

    @cached_property
    def _packed(self) -> tuple[FourierSteps, dict[Any, CudaKernel]]:
        """For real numbers that are not aligned as complex ones, as those of other libraries may be."""
        return self._compiled(steps_of(self.command, self.library, packs=True))

    def _compiled(self, steps: FourierSteps) -> tuple[FourierSteps, dict[Any, CudaKernel]]:
        nests = [step.nest for step in steps.steps if isinstance(step, NestStep)]
        return steps, dict(zip(nests, map(self.device.compile, nests), strict=True))

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        given: Sequence[Any] = buffers
        queue = self.queue(stream)
        steps, kernels = self._packed if given[0].address % self._aligned else self._as_it_lies
        own = given[-1].address + steps.packed if len(given) > 2 else 0
        launches: list[Any] = [
            kernels[step.nest].bind([given[n] for n in step.buffers], queue) if isinstance(step, NestStep) else
            TransformLaunch(step, (given[step.x.buffer].address + step.x.first,
                                   given[step.y.buffer].address + step.y.first, own), queue) for step in steps.steps]
        return LaunchesInTurn("a Fourier transform", launches, buffers, queue)
