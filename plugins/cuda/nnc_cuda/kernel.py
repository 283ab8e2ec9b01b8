"""Kernels of loaded modules, bound to any buffers."""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from nnc_core.base.errors import DeviceError
from nnc_core.base.line import Line
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import GroupsWriter, results_size
from nnc_core.codegen.group_states import GROUP
from nnc_core.device import Buffer, Kernel, Launch, Stream, origin
from nnc_cuda.driver import CudaError, Driver
from nnc_cuda.modules import FittedFunction, ModuleFunction
from nnc_cuda.stream import CudaStream
from nnc_cuda.vectors import VectorsWriter, threads_of

THREADS = 256
"""Threads of a block: a multiple of a warp's 32, and enough blocks of them fit a multiprocessor at once."""

Allocate: TypeAlias = Callable[[int, CudaStream], Buffer]


class LaunchStep(NamedTuple):
    """A function on a grid, and the numbers that it takes behind the addresses of buffers."""

    function: ModuleFunction
    blocks: int
    threads: int
    numbers: tuple[int, ...]


class NestStep(NamedTuple):
    """A nest among the steps of a command, and the numbers of the buffers that it is given: of inputs, of outputs, of
    the workspace."""

    nest: LoopNest
    buffers: tuple[int, ...]


class CapturableKernel(Kernel):
    """A kernel all of whose work is enqueued by its launches: programs of such run as graphs."""

    name: str
    default: CudaStream

    @abstractmethod
    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch: ...

    def queue(self, stream: Stream | None) -> CudaStream:
        """The stream that was asked for."""
        queue = self.default if stream is None else stream
        assert isinstance(queue, CudaStream), f"{stream!r} is no stream of a CUDA device"
        return queue


class CudaKernel(CapturableKernel):
    """A built nest: functions that it may share."""

    def __init__(self, nest: LoopNest, fitted: FittedFunction, default: CudaStream, allocate: Allocate) -> None:
        self.name, self.arguments, self.points = nest.name, len(nest.arguments), nest.points
        self.default, self.allocate = default, allocate
        self.steps = [LaunchStep(function, *_grid(nest, function), fitted.numbers)
                      for function in _with_those_after(fitted.function)]
        self.results = results_size(nest) if len(self.steps) > 1 else 0
        """Bytes that one pass leaves to the next."""

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        if len(buffers) != self.arguments:
            raise DeviceError(f"{self.name} takes {self.arguments} buffers, not {len(buffers)}")
        if not self.points:
            return _launch_nothing
        queue = self.queue(stream)
        between = [self.allocate(self.results, queue)] if self.results else []
        return CudaLaunch(self.name, self.steps, [*buffers, *between], queue)


def _with_those_after(function: ModuleFunction) -> Iterator[ModuleFunction]:
    """A function and those that finish what it leaves."""
    step: ModuleFunction | None = function
    while step is not None:
        yield step
        step = step.after


def _grid(nest: LoopNest, function: ModuleFunction) -> tuple[int, int]:
    """Blocks, and threads of each."""
    writer = function.writer
    if writer is not None and issubclass(writer, GroupsWriter):
        return writer.groups(nest), GROUP
    threads = threads_of(nest) if writer is VectorsWriter else nest.points
    return -(-threads // THREADS), THREADS


class EnqueuedLaunch:
    """Work on one stream that is enqueued at once, in the same way each time."""

    __slots__ = ("_line", "_name", "_stream")

    def __init__(self, name: str, stream: CudaStream) -> None:
        self._name, self._stream = name, stream
        self._line: Line | None = origin.get()

    def __call__(self) -> None:
        stream = self._stream
        stream.line = self._line
        try:
            self.enqueue(stream.driver, stream.handle)
        except CudaError as error:
            raise stream.failure(f"launching {self._name}", error) from error
        if stream.keeps:
            stream.hold(self)

    def enqueue(self, driver: Driver, stream: int) -> None:
        """The calls of the driver alone; CudaError if one is refused."""
        raise NotImplementedError

    def steps(self, driver: Driver, stream: int) -> list[Callable[[], object]]:
        """The same one by one."""
        return [partial(self.enqueue, driver, stream)]


class LaunchesInTurn(EnqueuedLaunch):
    """All launches of a command; it keeps its buffers alive."""

    __slots__ = ("_kept", "_launches")

    def __init__(self, name: str, launches: Sequence[EnqueuedLaunch], kept: object, stream: CudaStream) -> None:
        super().__init__(name, stream)
        self._launches, self._kept = launches, kept

    def enqueue(self, driver: Driver, stream: int) -> None:
        for launch in self._launches:
            launch.enqueue(driver, stream)

    def steps(self, driver: Driver, stream: int) -> list[Callable[[], object]]:
        return [step for launch in self._launches for step in launch.steps(driver, stream)]


class CudaLaunch(EnqueuedLaunch):
    """Functions with their arguments set; it keeps the buffers alive."""

    __slots__ = ("_kept", "calls")

    def __init__(self, name: str, steps: Sequence[LaunchStep], buffers: Sequence[Any], stream: CudaStream) -> None:
        super().__init__(name, stream)
        words, arguments = [buffer.address for buffer in buffers], dict[tuple[int, ...], Any]()
        for step in steps:
            if step.numbers not in arguments:
                arguments[step.numbers] = _arguments([*words, *step.numbers])
        self._kept: object = (steps, buffers, arguments)
        self.calls = [(step.function.handle, step.blocks, step.threads, ctypes.addressof(arguments[step.numbers][1]))
                      for step in steps]
        """Functions, blocks, threads of each, and addresses of arguments."""

    def enqueue(self, driver: Driver, stream: int) -> None:
        for function, blocks, threads, arguments in self.calls:
            driver.launch(function, blocks, threads, stream, arguments)

    def steps(self, driver: Driver, stream: int) -> list[Callable[[], object]]:
        return [partial(driver.launch, function, blocks, threads, stream, arguments)
                for function, blocks, threads, arguments in self.calls]


def _arguments(words: Sequence[int]) -> tuple[Any, Any]:
    """Values of eight bytes, and an array of their addresses."""
    values = (ctypes.c_int64 * max(len(words), 1))(*words)
    first = ctypes.addressof(values)
    return values, (ctypes.c_void_p * max(len(words), 1))(*[first + 8 * n for n in range(len(words))])


def _launch_nothing() -> None:
    """The launch of a nest without points."""
