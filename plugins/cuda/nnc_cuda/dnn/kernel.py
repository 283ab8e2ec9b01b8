"""Kernels that call the library: loop nests before and behind it, and one execution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from nnc_core.base.config import config
from nnc_core.base.dtype import float32
from nnc_core.base.loopnest import LoopNest
from nnc_core.device import Buffer, Launch, Stream
from nnc_cuda.dnn.attention import PlacedAttention
from nnc_cuda.dnn.convolution import PlacedConvolution
from nnc_cuda.dnn.interface import BoundPlan, Convolution, Dnn, DnnPlan, Problem, TensorPlace
from nnc_cuda.driver import Driver
from nnc_cuda.kernel import CapturableKernel, CudaKernel, EnqueuedLaunch, LaunchesInTurn, NestStep
from nnc_cuda.stream import CudaStream

if TYPE_CHECKING:
    from nnc_cuda.device import CudaDevice


Placed: TypeAlias = PlacedConvolution | PlacedAttention


class PlanLaunch(EnqueuedLaunch):
    """An execution with its arguments set."""

    __slots__ = ("_bound",)

    def __init__(self, bound: BoundPlan, stream: CudaStream) -> None:
        super().__init__("an execution by cuDNN", stream)
        self._bound = bound

    def enqueue(self, driver: Driver, stream: int) -> None:
        self._bound.enqueue(stream)


class CopyLaunch(EnqueuedLaunch):
    """Bytes copied within the device's memory."""

    __slots__ = ("_nbytes", "_source", "_target")

    def __init__(self, target: int, source: int, nbytes: int, stream: CudaStream) -> None:
        super().__init__("a copy", stream)
        self._target, self._source, self._nbytes = target, source, nbytes

    def enqueue(self, driver: Driver, stream: int) -> None:
        driver.copy(self._target, self._source, self._nbytes, stream)


class Staged:
    """Addresses of arrays that are as aligned as a plan wants them: of those that are not, as those of other libraries
    may be, copies in memory of their own."""

    def __init__(self, device: CudaDevice, stream: CudaStream) -> None:
        self.device, self.stream, self.kept = device, stream, list[Any]()
        self.before, self.behind = list[EnqueuedLaunch](), list[EnqueuedLaunch]()

    def address(self, address: int, place: TensorPlace, written: bool) -> int:
        if address % place.alignment == 0:
            return address
        nbytes = (1 + sum([(n - 1) * step for n, step in zip(place.shape, place.steps, strict=True)])
                  ) * place.dtype.itemsize
        own: Any = self.device.allocate(nbytes, self.stream)
        self.kept.append(own)
        self.before.append(CopyLaunch(own.address, address, nbytes, self.stream))
        if written:
            self.behind.append(CopyLaunch(address, own.address, nbytes, self.stream))
        return int(own.address)


class Plans(NamedTuple):
    """The plans of a problem, which live as long as these do."""

    full: DnnPlan
    tf32: DnnPlan | None
    """With factors of float32 that are rounded."""

    @property
    def preferred(self) -> DnnPlan:
        """The one in the precision that is asked for now; in full where there is none by tf32."""
        return self.tf32 if self.tf32 is not None and config.matmul_precision == "tf32" else self.full

    @property
    def workspace(self) -> int:
        """Bytes for either."""
        return max(self.full.workspace, 0 if self.tf32 is None else self.tf32.workspace)


def plans_of(dnn: Dnn, problem: Problem) -> Plans:
    """The plans of a problem that the library takes."""
    full = dnn.plan(problem)
    assert full is not None
    if isinstance(problem, Convolution) and problem.x.dtype == float32:
        return Plans(full, dnn.plan(problem._replace(tf32=True)))
    return Plans(full, None)


class CudnnKernel(CapturableKernel):
    """One execution by the library, and the nests before it and behind it."""

    def __init__(self, device: CudaDevice, dnn: Dnn, placed: Placed, name: str) -> None:
        self.device, self.plans, self.placed, self.name = device, plans_of(dnn, placed.problem), placed, name
        self.default = device.default_stream
        self._nests: dict[LoopNest, CudaKernel] = {
            step.nest: device.compile(step.nest) for step in (*placed.before, *placed.behind)}

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        """Inputs, outputs, and the workspace.  `config.matmul_precision` counts as it is now."""
        given: Sequence[Any] = buffers
        queue, placed = self.queue(stream), self.placed
        plan, staged = self.plans.preferred, Staged(self.device, queue)
        arrays = zip(placed.spots, placed.problem.arrays, strict=True)
        addresses = [staged.address(given[spot.buffer].address + spot.first, place, n in placed.problem.written)
                     for n, (spot, place) in enumerate(arrays)]
        own = given[-1].address + placed.packed if plan.workspace else 0
        steps: list[EnqueuedLaunch] = [
            *staged.before, *self._bound(placed.before, given, queue), PlanLaunch(plan.bind(addresses, own), queue),
            *staged.behind, *self._bound(placed.behind, given, queue)]
        return LaunchesInTurn(self.name, steps, (buffers, staged.kept), queue)

    def _bound(self, steps: Sequence[NestStep], buffers: Sequence[Any], queue: CudaStream) -> list[Any]:
        return [self._nests[step.nest].bind([buffers[n] for n in step.buffers], queue) for step in steps]
