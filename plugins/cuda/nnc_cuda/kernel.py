"""Kernels of loaded modules, bound to any buffers."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from nnc_core.base.errors import DeviceError
from nnc_core.base.line import Line
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import GroupsWriter, results_size
from nnc_core.codegen.group_states import GROUP
from nnc_core.device import Buffer, Kernel, Launch, Stream, origin
from nnc_cuda.driver import CudaError
from nnc_cuda.failure import explained
from nnc_cuda.memory import Allocation
from nnc_cuda.modules import FittedFunction, ModuleFunction
from nnc_cuda.stream import CudaStream

THREADS = 256
"""Threads of a block: a multiple of a warp's 32, and enough blocks of them fit a multiprocessor at once."""


class CudaKernel(Kernel):
    """A built nest: functions that it may share, and the numbers that they take behind the addresses of buffers."""

    def __init__(self, nest: LoopNest, fitted: FittedFunction, default: CudaStream) -> None:
        self.name, self.arguments, self.points = nest.name, len(nest.arguments), nest.points
        self.numbers, self.default = fitted.numbers, default
        self.functions: list[ModuleFunction] = []
        function: ModuleFunction | None = fitted.function
        while function is not None:
            self.functions.append(function)
            function = function.after
        self.grids = [_grid(nest, function) for function in self.functions]
        self.results = results_size(nest) if len(self.functions) > 1 else 0
        """Bytes that one pass leaves to the next."""

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        if len(buffers) != self.arguments:
            raise DeviceError(f"{self.name} takes {self.arguments} buffers, not {len(buffers)}")
        queue = self.default if stream is None else stream
        assert isinstance(queue, CudaStream), f"{stream!r} is no stream of a CUDA device"
        return CudaLaunch(self, buffers, queue) if self.points else _launch_nothing


def _grid(nest: LoopNest, function: ModuleFunction) -> tuple[int, int]:
    """Blocks, and threads of each."""
    if issubclass(function.writer, GroupsWriter):
        return function.writer.groups(nest), GROUP
    return -(-nest.points // THREADS), THREADS


class CudaLaunch:
    """Enqueues the functions of one kernel with their arguments set, and keeps the buffers alive."""

    __slots__ = ("_address", "_arguments", "_buffers", "_kernel", "_line", "_steps", "_stream")

    def __init__(self, kernel: CudaKernel, buffers: Sequence[Any], stream: CudaStream) -> None:
        self._kernel, self._stream = kernel, stream
        self._line: Line | None = origin.get()
        self._buffers = (*buffers, *_results(kernel, stream))
        words = [buffer.address for buffer in self._buffers]
        values = (ctypes.c_int64 * (len(words) + len(kernel.numbers)))(*words, *kernel.numbers)
        first = ctypes.addressof(values)
        places = (ctypes.c_void_p * len(values))(*[first + 8 * n for n in range(len(values))])
        self._arguments, self._address = (values, places), ctypes.addressof(places)
        self._steps = [(function.handle, *grid) for function, grid in zip(kernel.functions, kernel.grids, strict=True)]

    def __call__(self) -> None:
        stream = self._stream
        stream.line = self._line
        try:
            self.enqueue(stream.handle)
        except CudaError as error:
            raise stream.failure(f"launching {self._kernel.name}", error) from error
        if stream.keeps:
            stream.hold((self._kernel, self._buffers))

    def enqueue(self, stream: int) -> None:
        """The launches alone; CudaError if one is refused."""
        launch = self._stream.driver.launch
        for function, blocks, threads in self._steps:
            launch(function, blocks, threads, stream, self._address)


def _results(kernel: CudaKernel, stream: CudaStream) -> list[Allocation]:
    """Memory for what one pass leaves to the next: of each launch its own, and small."""
    if not kernel.results:
        return []
    with explained("allocating memory between two passes", stream.id):
        return [Allocation(stream.driver, stream.driver.allocate(kernel.results), kernel.results)]


def _launch_nothing() -> None:
    """The launch of a nest without points."""
