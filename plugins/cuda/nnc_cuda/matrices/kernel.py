"""Kernels that run a plan of nests and routines, and wait for what these say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.errors import DeviceFailureError
from nnc_core.device import Buffer, Kernel, Launch, Stream, origin
from nnc_core.device.host import HostKernel
from nnc_cuda.driver import CudaError
from nnc_cuda.failure import failure
from nnc_cuda.kernel import NestStep
from nnc_cuda.matrices.lapack import Lapack
from nnc_cuda.matrices.writing import CallStep, MatrixPlan, TablePlace
from nnc_cuda.stream import CudaStream

if TYPE_CHECKING:
    from nnc_cuda.device import CudaDevice


ADDRESS = 8
"""Bytes of an address."""


class CallLaunch:
    """A routine with its arguments set; it keeps the table of addresses alive."""

    __slots__ = ("_arguments", "_lapack", "_table")

    def __init__(self, lapack: Lapack, step: CallStep, base: int, scratch: int, table: Any, stream: int) -> None:
        arrays = [table.address + ADDRESS * place.first if isinstance(place, TablePlace) else base + place
                  for place in step.arrays]
        self._lapack, self._table = lapack, table
        self._arguments = step.routine, arrays, base + scratch, base + step.status, stream

    def __call__(self) -> None:
        self._lapack.enqueue(*self._arguments)


class MatrixKernel(Kernel):
    """A decomposition or a solution.  Where a matrix is found to have none, or holds NaN or infinities, the reference
    on the host has the last word: it says which matrix it was."""

    def __init__(self, device: CudaDevice, lapack: Lapack, command: Command, plan: MatrixPlan, reference: Any) -> None:
        self.device, self.lapack, self.command, self.plan = device, lapack, command, plan
        self.on_host = HostKernel(device, reference, command)
        nests = [step.nest for step in plan.steps if isinstance(step, NestStep)]
        self.kernels = dict(zip(nests, map(device.compile, nests), strict=True))

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        queue = self.device.default_stream if stream is None else stream
        assert isinstance(queue, CudaStream)
        given: Sequence[Any] = buffers
        *arrays, workspace = given
        table = self._table(workspace, queue)
        steps = [self._step(step, given, table, queue) for step in self.plan.steps]
        line = origin.get()

        def launch() -> None:
            queue.line = line
            with self.lapack.lock:
                self._run(steps, queue)
                words = self._words(workspace, queue)
            if words[: self.plan.statuses].any():
                self._explain(words[: self.plan.statuses])
                self.on_host.bind(arrays, queue)()
            elif self.plan.exchanges:
                exchanges = words[self.plan.statuses :].reshape(self.plan.exchanges)
                self.device.upload(order_of(exchanges, self.command.outputs[1].shape), arrays[-1], queue).wait()

        return launch

    def _table(self, workspace: Any, stream: CudaStream) -> Any:
        """The addresses of matrices, in the device's memory; None where routines want none."""
        if not self.plan.table:
            return None
        addresses = np.array(self.plan.table, np.int64) + workspace.address
        table = self.device.allocate(addresses.nbytes, stream)
        self.device.upload(addresses, table, stream)
        return table

    def _step(self, step: NestStep | CallStep, buffers: Sequence[Any], table: Any, stream: CudaStream) -> Launch:
        if isinstance(step, NestStep):
            return self.kernels[step.nest].bind([buffers[n] for n in step.buffers], stream)
        return CallLaunch(self.lapack, step, buffers[-1].address, self.plan.scratch, table, stream.handle)

    def _run(self, steps: Sequence[Launch], stream: CudaStream) -> None:
        try:
            for step in steps:
                step()
        except CudaError as error:
            raise failure(f"{self.command.name} by NVIDIA's library", error, self.device.spec.id) from error

    def _words(self, workspace: Any, stream: CudaStream) -> Any:
        """Statuses, and the exchanges of rows behind them."""
        words = np.zeros(self.plan.statuses + int(np.prod(self.plan.exchanges)) * bool(self.plan.exchanges), np.int32)
        self.device.download(workspace, words, stream).wait()
        return words

    def _explain(self, statuses: Any) -> None:
        """Raise what is no matter of the matrices: of those that hold NaN a routine may say anything."""
        if (statuses < 0).any() and not (statuses > 0).any():
            wrong = -int(statuses.min())
            raise DeviceFailureError(f"{self.command.name}: NVIDIA's library refuses argument {wrong} of a routine",
                                     device=self.device.spec.id, hint="`nnc devices` examines the driver")


def order_of(exchanges: Any, shape: tuple[int, ...]) -> Any:
    """The order (..., m) of rows after exchanges (..., k), counted from 1: row i with row exchanges[i] at each step."""
    order = np.tile(np.arange(shape[-1]), (*shape[:-1], 1))
    rows, swaps = order.reshape(-1, shape[-1]), exchanges.reshape(-1, exchanges.shape[-1]) - 1
    every = np.arange(len(rows))
    for k in range(swaps.shape[-1]):
        rows[every, swaps[:, k]], rows[:, k] = rows[:, k].copy(), rows[every, swaps[:, k]]
    return order
