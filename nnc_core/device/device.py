"""The interface of a device, which plugins implement: memory, transfers and kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.base.record import Record
from nnc_core.device.buffer import Array, Buffer, StridedArray
from nnc_core.device.capture import Program, PythonProgram
from nnc_core.device.kernel import CommandBackend, Kernel
from nnc_core.device.spec import DeviceSpec
from nnc_core.device.stream import Event, SerialStream, Stream

HostArray = np.ndarray[Any, Any]


class Device(ABC):
    """Memory, transfers and `compile` are all that a device must have; everything else makes it faster.

    Work may be asynchronous: `upload`, `download`, `copy`, `fill` and launches are enqueued on `stream` (None: the
    device's default stream) and run in its order.  A host array given to `upload` or `download` is not touched by the
    caller before the event is waited for.
    """

    spec: DeviceSpec
    eager: Mapping[str, Callable[..., Array]] = {}
    """Optional fast path: kernels by operator name that allocate their result, called f(*arrays, *attributes) with
    arrays of this device and Python numbers.  A kernel that cannot serve a call returns NotImplemented."""

    added: Mapping[str, Sequence[CommandBackend]] = {}
    """Library code from elsewhere, by operator: see `take`."""

    @abstractmethod
    def allocate(self, nbytes: int) -> Buffer:
        """Uninitialised memory, aligned to `spec.alignment`.  DeviceMemoryError if there is not enough."""

    @abstractmethod
    def view(self, buffer: Buffer, offset: int, nbytes: int) -> Buffer:
        """Part of a buffer; `offset` is a multiple of `spec.alignment`.  Keeps the buffer alive."""

    @abstractmethod
    def upload(self, array: HostArray, buffer: Buffer, stream: Stream | None = None) -> Event:
        """Copy a C-contiguous host array into a buffer."""

    @abstractmethod
    def download(self, buffer: Buffer, array: HostArray, stream: Stream | None = None) -> Event:
        """Copy the start of a buffer into a C-contiguous host array."""

    @abstractmethod
    def copy(self, source: Buffer, target: Buffer, stream: Stream | None = None) -> Event:
        """Copy min(source.nbytes, target.nbytes) bytes within the device."""

    @abstractmethod
    def fill(self, buffer: Buffer, pattern: bytes, stream: Stream | None = None) -> Event:
        """Repeat a pattern of 1, 2, 4 or 8 bytes through a buffer."""

    @abstractmethod
    def compile(self, nest: LoopNest) -> Kernel:
        """A kernel that takes the nest's arguments in order.  NotSupportedError names what it cannot."""

    def compile_all(self, nests: Sequence[LoopNest]) -> list[Kernel | NotSupportedError]:
        """Kernels of all nests of a graph, in order; for a nest that is refused the error itself, which is not raised.

        A device whose compiler takes long to begin builds many at once.
        """
        return [self._compiled(nest) for nest in nests]

    def _compiled(self, nest: LoopNest) -> Kernel | NotSupportedError:
        try:
            return self.compile(nest)
        except NotSupportedError as error:
            return error

    def backends(self, name: str) -> Sequence[CommandBackend]:
        """Library code for an operator, in order of preference."""
        return ()

    def take(self, operator: str, backend: CommandBackend) -> None:
        """Add library code for an operator, to be tried before the device's own, in eager code too."""
        self.added = {**self.added, operator: (*self.added.get(operator, ()), backend)}
        self.eager = {name: kernel for name, kernel in self.eager.items() if name != operator}

    def all_backends(self, name: str) -> Sequence[CommandBackend]:
        """Library code for an operator: what was added, then the device's own."""
        return (*self.added[name], *self.backends(name)) if name in self.added else self.backends(name)

    def stream(self) -> Stream:
        """A new stream; devices whose work is done on return need none of their own."""
        return SerialStream()

    @property
    def default_stream(self) -> Stream:
        """The stream of eager work."""
        return _SERIAL

    def array(self, buffer: Buffer, layout: Layout) -> Array:
        """An array lying in a buffer."""
        return StridedArray(buffer, layout)

    def buffer_of(self, array: Array) -> Buffer:
        """The buffer that `layout_of` speaks of."""
        return array.buffer  # type: ignore[no-any-return]

    def layout_of(self, array: Array) -> Layout:
        """The layout of the array in `buffer_of(array)`."""
        return array.layout  # type: ignore[no-any-return]

    def packed_buffer(self, array: Array) -> Buffer | None:
        """The array's buffer if it lies at its start in C order, else None: asked for each input of a compiled
        graph."""
        layout = self.layout_of(array)
        return self.buffer_of(array) if layout.offset == 0 and layout.contiguous else None

    def adopt(self, array: HostArray) -> Array | None:
        """An array of this device that lies in a host array's own memory, keeps it alive and is only read.

        None where it cannot be: the caller copies.  Only devices that compute in the host's memory adopt.
        """
        return None

    def expose(self, array: Array) -> HostArray | None:
        """An array's own memory as the host sees it, read-only and kept alive; None where the host cannot see it."""
        return None

    def capture(self, records: Sequence[Record], slots: Sequence[Buffer | None], stream: Stream) -> Program:
        """Make a program of records that runs on a stream; slots that are None are bound before it runs."""
        return PythonProgram(self, records, slots, stream)

    def memory_info(self) -> tuple[int, int] | None:
        """(free, total) bytes, or None if the device cannot tell."""
        return None

    def close(self) -> None:
        """Give everything back; the device is not used afterwards."""
        return None

    def __repr__(self) -> str:
        return f"<device {self.spec.id} {self.spec.name}>"


_SERIAL = SerialStream()
