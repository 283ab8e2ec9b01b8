"""Kernels of loaded modules, bound to any buffers."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from nnc_core.base.errors import DeviceError
from nnc_core.base.line import Line
from nnc_core.device import Buffer, Kernel, Launch, Stream, origin
from nnc_cuda.driver import CudaError
from nnc_cuda.modules import FittedFunction
from nnc_cuda.stream import CudaStream

THREADS = 256
"""Threads of a block: a multiple of a warp's 32, and enough blocks of them fit a multiprocessor at once."""


class CudaKernel(Kernel):
    """A built nest: code that it may share, and the numbers that the code takes behind the addresses of buffers."""

    def __init__(self, name: str, arguments: int, points: int, fitted: FittedFunction, default: CudaStream) -> None:
        self.name, self.arguments, self.points = name, arguments, points
        self.code, self.numbers, self.default = fitted.code, fitted.numbers, default
        self.blocks = -(-points // THREADS)

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        if len(buffers) != self.arguments:
            raise DeviceError(f"{self.name} takes {self.arguments} buffers, not {len(buffers)}")
        queue = self.default if stream is None else stream
        assert isinstance(queue, CudaStream), f"{stream!r} is no stream of a CUDA device"
        return CudaLaunch(self, buffers, queue) if self.points else _launch_nothing


class CudaLaunch:
    """Enqueues one kernel with its arguments set, and keeps the buffers alive."""

    __slots__ = ("_address", "_buffers", "_kept", "_kernel", "_line", "_stream")

    def __init__(self, kernel: CudaKernel, buffers: Sequence[Any], stream: CudaStream) -> None:
        self._kernel, self._buffers, self._stream = kernel, tuple(buffers), stream
        self._line: Line | None = origin.get()
        words = [buffer.address for buffer in buffers]
        values = (ctypes.c_int64 * (len(words) + len(kernel.numbers)))(*words, *kernel.numbers)
        first = ctypes.addressof(values)
        places = (ctypes.c_void_p * len(values))(*[first + 8 * n for n in range(len(values))])
        self._kept, self._address = (values, places), ctypes.addressof(places)

    def __call__(self) -> None:
        stream = self._stream
        stream.line = self._line
        try:
            self.enqueue(stream.handle)
        except CudaError as error:
            raise stream.failure(f"launching {self._kernel.name}", error) from error
        if stream.keeps:
            stream.hold(self._buffers)

    def enqueue(self, stream: int) -> None:
        """The launch alone; CudaError if it is refused."""
        kernel = self._kernel
        self._stream.driver.launch(kernel.code.function, kernel.blocks, THREADS, stream, self._address)


def _launch_nothing() -> None:
    """The launch of a nest without points."""
