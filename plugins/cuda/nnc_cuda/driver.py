"""The interface of CUDA that a device is written against: memory, streams, events, modules and launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol


class DeviceFacts(NamedTuple):
    """Properties of one device.  Memory in bytes."""

    name: str
    memory: int
    capability: tuple[int, int]
    """Compute capability, major and minor."""
    multiprocessors: int
    version: str
    """Of the driver."""
    bus: str
    """Its place on the PCI bus, the same at every start."""


class CapturedSteps(NamedTuple):
    """A graph, and for each step the node that it has enqueued last; 0 where the driver does not tell."""

    graph: int
    nodes: list[int]


class CudaError(Exception):
    """A status of CUDA other than success."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


class Driver(Protocol):
    """One device.  Addresses and handles are integers, as in CUDA's own interfaces; 0 is no handle.

    Work is enqueued on a stream and runs in its order.  Any thread may call any method.  All raise CudaError.
    """

    @property
    def kin(self) -> object:
        """The same for devices whose streams know each other's events, and that copy from each other's memory."""
        ...

    @property
    def exchange(self) -> tuple[int, int]:
        """DLPack's name of its memory."""
        ...

    def facts(self) -> DeviceFacts: ...

    def current(self) -> AbstractContextManager[None]:
        """Let libraries that are called by this thread meanwhile mean this device."""
        ...

    # ---- memory
    def free_memory(self) -> tuple[int, int]:
        """Bytes that are free, and that there are."""
        ...

    def allocate(self, nbytes: int) -> int: ...

    def free(self, address: int) -> None:
        """Free memory; what is enqueued and uses it is done first."""
        ...

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy bytes; either side may be the memory of the device, of one of its kin, or the host's, which is left
        alone until that is done."""
        ...

    def reach(self, other: Driver) -> None:
        """Let copies from the memory of one of its kin go directly, where the two are connected."""
        ...

    def holds(self, address: int) -> bool:
        """Tell whether an address is one of the device's own memory."""
        ...

    def pin(self, nbytes: int) -> int:
        """Memory of the host that all devices of its kin read and write by themselves, at the host's address."""
        ...

    def unpin(self, address: int) -> None:
        """Free such memory, which nothing that is enqueued uses."""
        ...

    def fill(self, address: int, byte: int, nbytes: int, stream: int) -> None: ...

    # ---- order
    def new_stream(self) -> int: ...

    def end_stream(self, stream: int) -> None:
        """Let go of a stream; what is enqueued on it still runs."""
        ...

    def synchronize(self, stream: int) -> None: ...

    def new_event(self, timed: bool) -> int: ...

    def end_event(self, event: int) -> None:
        """Let go of an event; streams that wait for it still do."""
        ...

    def record(self, event: int, stream: int) -> None:
        """Let an event be the moment after everything that is enqueued on a stream so far."""
        ...

    def order(self, stream: int, event: int) -> None:
        """Let what is enqueued later on a stream begin after an event."""
        ...

    def hold_back(self, stream: int, address: int) -> bool:
        """Let what is enqueued later on a stream begin when a word of 32 bits at an address of pinned memory is 1,
        which the host writes; False where it cannot."""
        ...

    def call(self, stream: int, function: Callable[[], object]) -> None:
        """Let the host call a function in the order of a stream; it asks nothing of CUDA."""
        ...

    def is_done(self, event: int) -> bool: ...

    def wait(self, event: int) -> None: ...

    def seconds(self, earlier: int, later: int) -> float:
        """Seconds between two events that were made timed and are done."""
        ...

    # ---- code
    def load(self, code: bytes) -> int:
        """A module of compiled code."""
        ...

    def unload(self, module: int) -> None: ...

    def function(self, module: int, name: str) -> int: ...

    def launch(self, function: int, blocks: int, threads: int, stream: int, arguments: int) -> None:
        """Enqueue a kernel on a grid and blocks of one dimension; `arguments` is the address of an array of addresses
        of arguments, which are read before this returns."""
        ...

    # ---- graphs
    def capture(self, stream: int, steps: Sequence[Callable[[], object]]) -> CapturedSteps:
        """A graph, ready to be launched, of all that steps enqueue on a stream meanwhile, none of which runs."""
        ...

    def rebind(self, graph: int, node: int, function: int, blocks: int, threads: int, arguments: int) -> None:
        """Let a kernel of a graph, the same function, have other arguments from the next launch of the graph on."""
        ...

    def launch_graph(self, graph: int, stream: int) -> None: ...

    def end_graph(self, graph: int) -> None: ...


class CudaCompiler(Protocol):
    """Makes machine code of CUDA C."""

    identity: str
    """All that decides what it makes, beside the source."""

    def compile(self, source: str) -> bytes:
        """Code that `Driver.load` takes; CompileError with the compiler's log."""
        ...


class CompileError(Exception):
    """A program that the compiler refuses, with its log."""
