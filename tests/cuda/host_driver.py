"""A driver of CUDA without a GPU: memory is the host's, kernels are a host compiler's, and streams are as late as CUDA
allows, so that whoever forgets to wait sees old memory."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from _ctypes import dlclose
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nnc_cuda.driver import CapturedSteps, CudaError, DeviceFacts, Driver

MEMORY = 4 << 30
ALIGNMENT = 256
POISON = 0xA5
LEGACY = 1
OF_THE_HOST = 3
"""kDLCUDAHost: memory of GPUs that NumPy reads too."""
INVALID, OUT_OF_MEMORY, NOT_READY_TO_CAPTURE = 1, 2, 900

Command = Callable[[], object]


class Waiting:
    """A command that may wait for the host."""

    def __init__(self, run: Command, waits: Callable[[], bool]) -> None:
        self.run, self.waits = run, waits

    def __call__(self) -> object:
        return self.run()


class HostDriver:
    """One device.  Nothing that is enqueued runs before somebody waits for it."""

    def __init__(self, memory: int = MEMORY, beside: HostDriver | None = None) -> None:
        """`beside`: another device of the same machine."""
        self.total, self.used = memory, 0
        self.kin: object = object() if beside is None else beside.kin
        self.exchange = (OF_THE_HOST, 0)
        self.reached: list[HostDriver] = []
        self.pinned = 0
        """Blocks of pinned memory that there are."""
        self.sick: CudaError | None = None
        """What everything says from now on, as after a kernel that wrote where it must not."""
        self.launches = self.graph_launches = self.rebound = 0
        self.tells_nodes = True
        self._memory: dict[int, Any] = {}
        self._modules: dict[int, ctypes.CDLL] = {}
        self._functions: dict[int, tuple[Any, int]] = {}
        self._graphs: dict[int, list[Command]] = {}
        self._capturing: list[Command] | None = None
        if beside is None:
            self._begin()
        else:
            self._share(beside)

    def _begin(self) -> None:
        self._numbers = count(LEGACY + 2)
        self._streams: dict[int, deque[Command]] = {LEGACY: deque()}
        self._events: dict[int, tuple[int, int]] = {}
        """The stream of an event, and how many of its commands come before it."""
        self._moments: dict[int, float] = {}
        self._enqueued = {LEGACY: 0}
        self._done = {LEGACY: 0}
        self._running: set[int] = set()
        """Streams a command of which is running."""
        self._lock = threading.RLock()
        self._moved = threading.Condition(self._lock)

    def _share(self, other: HostDriver) -> None:
        """Streams and events are known to all devices of a machine."""
        self._numbers, self._streams, self._events = other._numbers, other._streams, other._events
        self._moments, self._enqueued, self._done = other._moments, other._enqueued, other._done
        self._running, self._lock, self._moved = other._running, other._lock, other._moved

    def facts(self) -> DeviceFacts:
        return DeviceFacts("CUDA C on the processor", self.total, (8, 0), 1, "0.0", "0000:00:00.0")

    @contextmanager
    def current(self) -> Iterator[None]:
        self._check()
        yield

    # ---- memory
    def free_memory(self) -> tuple[int, int]:
        self._check()
        return self.total - self.used, self.total

    def allocate(self, nbytes: int) -> int:
        self._check()
        with self._lock:
            if self.used + nbytes > self.total:
                raise CudaError(OUT_OF_MEMORY, "out of memory")
            room = (ctypes.c_char * (nbytes + ALIGNMENT))()
            address = -(-ctypes.addressof(room) // ALIGNMENT) * ALIGNMENT
            ctypes.memset(address, POISON, nbytes)
            self._memory[address] = room, nbytes
            self.used += nbytes
            return address

    def free(self, address: int) -> None:
        with self._lock:
            self._finish()
            _, nbytes = self._memory.pop(address)
            self.used -= nbytes

    def reach(self, other: Driver) -> None:
        assert isinstance(other, HostDriver)
        self.reached.append(other)

    def holds(self, address: int) -> bool:
        return any([place <= address < place + nbytes for place, (_, nbytes) in self._memory.items()])

    def pin(self, nbytes: int) -> int:
        address = self.allocate(nbytes)
        with self._lock:
            self.used -= nbytes
            self.pinned += 1
        return address

    def unpin(self, address: int) -> None:
        with self._lock:
            del self._memory[address]
            self.pinned -= 1

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        self._enqueue(stream, lambda: ctypes.memmove(target, source, nbytes))

    def fill(self, address: int, byte: int, nbytes: int, stream: int) -> None:
        self._enqueue(stream, lambda: ctypes.memset(address, byte, nbytes))

    # ---- order
    def new_stream(self) -> int:
        self._check()
        stream = next(self._numbers)
        self._streams[stream], self._enqueued[stream], self._done[stream] = deque(), 0, 0
        return stream

    def end_stream(self, stream: int) -> None:
        self.synchronize(stream)

    def synchronize(self, stream: int) -> None:
        with self._lock:
            self._until(stream, self._enqueued[stream])
        self._check()

    def new_event(self, timed: bool) -> int:
        self._check()
        return next(self._numbers)

    def end_event(self, event: int) -> None:
        self._events.pop(event, None)
        self._moments.pop(event, None)

    def record(self, event: int, stream: int) -> None:
        self._enqueue(stream, lambda: self._moments.update({event: time.perf_counter()}))
        self._events[event] = stream, self._enqueued[stream]

    def order(self, stream: int, event: int) -> None:
        before = self._events[event]
        self._enqueue(stream, Waiting(lambda: self._until(*before), lambda: self._is_held_back(*before)))

    def hold_back(self, stream: int, address: int) -> bool:
        word = ctypes.c_uint32.from_address(address)
        self._enqueue(stream, Waiting(lambda: self._until_written(word), lambda: not word.value))
        return True

    def call(self, stream: int, function: Callable[[], object]) -> None:
        self._enqueue(stream, function)

    def _is_held_back(self, stream: int, number: int) -> bool:
        """Tell whether the commands of a stream up to that many would wait for the host."""
        with self._lock:
            first = [*self._streams[stream]][: max(number - self._done[stream], 0)]
            return any([isinstance(command, Waiting) and command.waits() for command in first])

    def _until_written(self, word: Any) -> None:
        """Wait for the host, which may go on meanwhile."""
        while not word.value:
            self._moved.wait(timeout=0.001)

    def is_done(self, event: int) -> bool:
        """True once it is reached; each question lets one command run."""
        self._check()
        stream, number = self._events[event]
        with self._lock:
            next_one = min(self._done[stream] + 1, number)
            if stream not in self._running and not self._is_held_back(stream, next_one):
                self._until(stream, next_one)
            return self._done[stream] >= number

    def wait(self, event: int) -> None:
        with self._lock:
            self._until(*self._events[event])
        self._check()

    def seconds(self, earlier: int, later: int) -> float:
        return self._moments[later] - self._moments[earlier]

    # ---- code
    def load(self, code: bytes) -> int:
        self._check()
        with TemporaryDirectory() as folder:
            file = Path(folder, f"module{next(self._numbers)}.so")
            file.write_bytes(code)
            try:
                library = ctypes.CDLL(os.fspath(file))
            except OSError as error:
                raise CudaError(200, "device kernel image is invalid") from error
        module = next(self._numbers)
        self._modules[module] = library
        return module

    def unload(self, module: int) -> None:
        with self._lock:
            self._finish()
            dlclose(self._modules.pop(module)._handle)

    def function(self, module: int, name: str) -> int:
        library, function = self._modules[module], next(self._numbers)
        self._functions[function] = library["run_" + name], ctypes.c_int.in_dll(library, "arguments_" + name).value
        return function

    def launch(self, function: int, blocks: int, threads: int, stream: int, arguments: int) -> None:
        if not 0 < blocks < 1 << 31 or not 0 < threads <= 1024:
            raise CudaError(INVALID, f"invalid argument: {blocks} blocks of {threads} threads")
        run, many = self._functions[function]
        kept = _copied(arguments, many)
        self.launches += 1
        self._enqueue(stream, lambda: run(kept[1], ctypes.c_uint(blocks), ctypes.c_uint(threads)))

    # ---- graphs
    def capture(self, stream: int, steps: Sequence[Callable[[], object]]) -> CapturedSteps:
        with self._lock:
            self._capturing, nodes = [], list[int]()
            try:
                for step in steps:
                    step()
                    nodes.append(len(self._capturing) if self.tells_nodes else 0)
            finally:
                commands, self._capturing = self._capturing, None
            graph = next(self._numbers)
            self._graphs[graph] = commands
            return CapturedSteps(graph, nodes)

    def rebind(self, graph: int, node: int, function: int, blocks: int, threads: int, arguments: int) -> None:
        """What is enqueued already goes on with its old arguments."""
        self.rebound += 1
        with self._lock:
            self._capturing = []
            try:
                self.launch(function, blocks, threads, LEGACY, arguments)
            finally:
                [command], self._capturing = self._capturing, None
            self.launches -= 1
            commands = self._graphs[graph]
            self._graphs[graph] = [*commands[: node - 1], command, *commands[node:]]

    def launch_graph(self, graph: int, stream: int) -> None:
        self.graph_launches += 1
        commands = self._graphs[graph]
        self._enqueue(stream, lambda: [command() for command in commands])

    def end_graph(self, graph: int) -> None:
        with self._lock:
            self._finish()
            del self._graphs[graph]

    # ---- running
    def _enqueue(self, stream: int, command: Command) -> None:
        self._check()
        with self._lock:
            if self._capturing is not None:
                self._capturing.append(command)
                return
            self._streams[stream].append(command)
            self._enqueued[stream] += 1

    def _until(self, stream: int, number: int) -> None:
        """Run the commands of a stream up to that many since its beginning."""
        commands = self._streams[stream]
        while self._done[stream] < number:
            if stream in self._running:  # by another thread, which waits for the host
                self._moved.wait(timeout=0.001)
                continue
            self._running.add(stream)
            try:
                if self.sick is None:
                    commands[0]()
            finally:
                commands.popleft()
                self._running.discard(stream)
                self._done[stream] += 1

    def _finish(self) -> None:
        for stream in [*self._streams]:
            self._until(stream, self._enqueued[stream])

    def _check(self) -> None:
        if self.sick is not None:
            raise self.sick


def _copied(arguments: int, many: int) -> tuple[Any, Any]:
    """Copies of so many arguments, all of eight bytes, and of their addresses: CUDA reads them when it launches."""
    places = (ctypes.c_void_p * max(many, 1)).from_address(arguments)
    values = (ctypes.c_int64 * max(many, 1))(*[ctypes.c_int64.from_address(places[n]).value for n in range(many)])
    first = ctypes.addressof(values)
    return values, (ctypes.c_void_p * max(many, 1))(*[first + 8 * n for n in range(many)])
