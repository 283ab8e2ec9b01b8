"""Compiled programs as CUDA graphs: one launch for all their kernels."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from nnc_core.base.record import Record
from nnc_core.device import Buffer, Device, Launch, PythonProgram
from nnc_core.device.launches import InLine
from nnc_cuda.driver import CudaError
from nnc_cuda.kernel import CudaKernel, CudaLaunch
from nnc_cuda.stream import CudaStream

WORTH = 2
"""Kernels from which on a graph takes less time than the launches that it stands for."""


class CapturedGraph:
    """A captured list of launches, which it keeps alive."""

    def __init__(self, launches: Sequence[Launch], stream: CudaStream) -> None:
        self.launches, self.stream, self.handle = launches, stream, 0
        kernels = [launch for launch in launches if isinstance(launch, CudaLaunch)]

        def enqueue() -> None:
            for launch in kernels:
                launch.enqueue(stream.handle)

        self.handle = stream.driver.capture(stream.handle, enqueue)

    def __del__(self) -> None:
        if self.handle:
            with suppress(CudaError):
                self.stream.driver.end_graph(self.handle)

    def launch(self) -> None:
        self.stream.line = None  # any of its kernels
        try:
            self.stream.driver.launch_graph(self.handle, self.stream.handle)
        except CudaError as error:
            raise self.stream.failure("launching a graph", error) from error
        if self.stream.keeps:
            self.stream.hold(self.launches)


class CapturedLaunches(InLine):
    """Launches that are captured when their buffers come together for the second time: results go round through a few
    blocks of the pool, and what comes once is not worth a graph."""

    def __init__(self, count: int, stream: CudaStream) -> None:
        super().__init__(count)
        self.stream = stream
        self.graphs: dict[int, CapturedGraph | None] = {}
        """The graph of each list of launches by its id; None for those that have run once."""

    def run(self, program: PythonProgram) -> None:
        if self.slots_moved or self.unbound:
            self._bind(program)
        graph = self._graph()
        if graph is None:
            super().run(program)
            return
        program.started = True
        program.position = -1  # which of its kernels fails nobody says
        graph.launch()

    def _graph(self) -> CapturedGraph | None:
        kept = {id(launches): launches for launches, _ in self.bindings.values()}
        self.graphs = {key: graph for key, graph in self.graphs.items() if key in kept}
        key = id(self.launches)
        if key not in kept:  # buffers that will not come back
            return None
        if key not in self.graphs:
            self.graphs[key] = None
            return None
        found = self.graphs[key]
        if found is None:
            found = self.graphs[key] = CapturedGraph(self.launches, self.stream)
        return found

    def release(self) -> None:
        super().release()
        self.graphs.clear()


class CudaProgram(PythonProgram):
    """Records whose calls are kernels of the device alone run as graphs; others from Python, as they need the host."""

    def __init__(self, device: Device, records: Sequence[Record], slots: Sequence[Buffer | None],
                 stream: Any) -> None:
        super().__init__(device, records, slots, stream)
        if isinstance(self.way, InLine) and len(self.calls) >= WORTH and all(
                [isinstance(call.kernel, CudaKernel) for call in self.calls]):
            self.way = CapturedLaunches(len(self.calls), stream)
