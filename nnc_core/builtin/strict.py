"""The strict device: interprets loop nests, and takes nothing that a real device would not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeGuard

import numpy as np

from nnc_core.base.dtype import name_of
from nnc_core.base.errors import (
    AttributeValueError,
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    DTypeError,
    Error,
    NotSupportedError,
    OperandError,
)
from nnc_core.base.layout import Layout
from nnc_core.base.line import Line
from nnc_core.base.loopnest import LoopNest
from nnc_core.builtin.flavours import Flavour
from nnc_core.builtin.ledger import Ledger
from nnc_core.builtin.memory import Block, StrictBuffer, poison
from nnc_core.builtin.queues import QueueStream, Work
from nnc_core.builtin.verify import verify
from nnc_core.codegen.interpret import interpret
from nnc_core.device import (
    DONE,
    Array,
    Buffer,
    Device,
    Event,
    HostArray,
    Kernel,
    Launch,
    SerialStream,
    Stream,
    origin,
)


class StrictDevice(Device):
    """Every misuse is an error that says what was given and what is allowed."""

    def __init__(self, flavour: Flavour | None = None) -> None:
        self.flavour = flavour or Flavour()
        self.spec = self.flavour.spec()
        self.ledger = Ledger(self.spec.id, self.spec.memory, self.spec.max_allocation)
        self.closed = False
        self._stream = self.stream()
        self.retired = poison if self.flavour.poisons else None

    # Memory

    def allocate(self, nbytes: int, stream: Stream | None = None) -> Buffer:
        self._check_open()
        return super().allocate(nbytes, stream)

    def reserve(self, nbytes: int) -> StrictBuffer:
        try:
            block = Block(nbytes, self.spec.alignment, self.flavour.poisons, self.ledger)
        except Error:
            raise
        except MemoryError as error:
            raise DeviceMemoryError(f"the host has no {nbytes} bytes left", device=self.spec.id) from error
        return StrictBuffer(block, 0, nbytes, self)

    def view(self, buffer: Buffer, offset: int, nbytes: int) -> StrictBuffer:
        """Refuses offsets that are not aligned, and parts that reach outside."""
        mine = self.own(buffer)
        if offset < 0 or nbytes < 0 or offset + nbytes > mine.nbytes:
            raise self._misuse(f"a view of {nbytes} bytes at {offset} does not lie within {mine}")
        if offset % self.spec.alignment:
            raise self._misuse(f"a view at {offset} is not aligned to {self.spec.alignment} bytes")
        if not self.flavour.views and (offset, nbytes) != (0, mine.nbytes):
            raise NotSupportedError("this device has no views of buffers", device=self.spec.id,
                                    hint="allocate a buffer of its own for each array")
        return mine.part(offset, nbytes)

    def driver_memory(self) -> tuple[int, int]:
        return self.flavour.memory - self.ledger.live, self.flavour.memory

    def array(self, buffer: Buffer, layout: Layout) -> Array:
        """Refuses layouts that reach outside their buffer and dtypes that the device lacks."""
        mine = self.own(buffer)
        self._admit(layout.dtype)
        back = sum((n - 1) * s for n, s in zip(layout.shape, layout.strides, strict=True) if s < 0 < n)
        if layout.offset + back < 0 or layout.extent > mine.nbytes:
            raise self._misuse(f"{layout} does not lie within {mine}")
        if any(step % layout.dtype.itemsize for step in (layout.offset, *layout.strides)):
            raise self._misuse(f"{layout} has elements that are not aligned to their size")
        if not self.flavour.views and (layout.offset or not layout.contiguous):
            raise NotSupportedError(f"this device has packed arrays only, not {layout}", device=self.spec.id,
                                    hint="copy the array first")
        return super().array(mine, layout)

    # Transfers

    def upload(self, array: HostArray, buffer: Buffer, stream: Stream | None = None) -> Event:
        target = self._host_bytes("upload", array, self.own(buffer))
        return self._run("upload", stream, lambda: np.copyto(target(), _bytes(array)))

    def download(self, buffer: Buffer, array: HostArray, stream: Stream | None = None) -> Event:
        source = self._host_bytes("download", array, self.own(buffer))
        if not array.flags.writeable:
            raise self._misuse("download: the host array is read-only")
        return self._run("download", stream, lambda: np.copyto(_bytes(array), source()))

    def copy(self, source: Buffer, target: Buffer, stream: Stream | None = None) -> Event:
        nbytes = min(source.nbytes, target.nbytes)
        read = partial(_start_of, self.own(source), self, nbytes)
        write = partial(_start_of, self.own(target), self, nbytes)
        return self._run("copy", stream, lambda: np.copyto(write(), read()))

    def fill(self, buffer: Buffer, pattern: bytes, stream: Stream | None = None) -> Event:
        mine = self.own(buffer)
        if len(pattern) not in (1, 2, 4, 8):
            raise self._misuse(f"fill: a pattern has 1, 2, 4 or 8 bytes, not {len(pattern)}")
        if mine.nbytes % len(pattern):
            raise self._misuse(f"fill: {mine} is no whole number of patterns of {len(pattern)} bytes")
        rows = np.frombuffer(pattern, np.uint8)
        return self._run("fill", stream, lambda: np.copyto(mine.open(self).reshape(-1, len(pattern)), rows))

    def _host_bytes(self, what: str, array: HostArray, buffer: StrictBuffer) -> partial[HostArray]:
        """Opens the part of the buffer that the host array is copied to or from."""
        if not isinstance(array, np.ndarray):
            raise OperandError(f"{what}: needs a NumPy array, not {type(array).__name__}",
                               device=self.spec.id)
        self._admit(array.dtype)
        if not array.flags.c_contiguous:
            raise self._misuse(f"{what}: the host array is not C-contiguous",
                               hint="use numpy.ascontiguousarray")
        if array.nbytes > buffer.nbytes:
            raise self._misuse(f"{what}: the host array has {array.nbytes} bytes, more than {buffer}")
        return partial(_start_of, buffer, self, array.nbytes)

    # Computing

    def compile(self, nest: LoopNest) -> Kernel:
        """Checks the whole nest first: AttributeValueError if it breaks a rule of its form."""
        self._check_open()
        try:
            verify(nest, self.spec.dtypes)
        except Error as error:
            error.locate(device=self.spec.id)
            raise
        return StrictKernel(self, nest)

    def stream(self) -> Stream:
        return QueueStream(self.spec.id, self.ledger) if self.flavour.queues else SerialStream()

    @property
    def default_stream(self) -> Stream:
        return self._stream

    def run(self, command: str, stream: Stream | None, work: Work, line: Line | None = None) -> None:
        """Do `work` in the order of the stream: now, or later where the flavour queues."""
        self._check_open()
        stream = stream or self._stream
        if not isinstance(stream, QueueStream if self.flavour.queues else SerialStream):
            raise DeviceError(f"{stream!r} is no stream of this device", device=self.spec.id)
        if isinstance(stream, QueueStream):
            stream.enqueue(command, work, line)
            return
        try:
            work()
        except Error as error:
            error.locate(operator=command, device=self.spec.id)
            raise

    def _run(self, command: str, stream: Stream | None, work: Work) -> Event:
        self.run(command, stream, work)
        return (stream or self._stream).record() if self.flavour.queues else DONE

    def close(self) -> None:
        """Waits for what is queued on the default stream; afterwards the device refuses everything."""
        if not self.closed:
            self._stream.synchronize()
            self.closed = True

    # Checks

    def own(self, buffer: Buffer) -> StrictBuffer:
        """The buffer itself; DeviceError for one of another device."""
        self._check_open()
        if not self.owns(buffer):
            raise DeviceError(f"{buffer!r} is no buffer of this device", device=self.spec.id,
                              hint="move the array here with .to(device)")
        return buffer

    def owns(self, buffer: object) -> TypeGuard[StrictBuffer]:
        return isinstance(buffer, StrictBuffer) and buffer.belongs_to(self)

    def _admit(self, dtype: np.dtype[np.generic]) -> None:
        if name_of(dtype) not in self.spec.dtypes:
            raise DTypeError(f"device has no {dtype}", device=self.spec.id,
                             hint=f"cast to one of {', '.join(sorted(self.spec.dtypes))}")

    def _check_open(self) -> None:
        if self.closed:
            raise DeviceLostError("the device is closed", device=self.spec.id, hint=f"nnc.reopen({self.spec.id!r})")

    def _misuse(self, message: str, hint: str | None = None) -> AttributeValueError:
        return AttributeValueError(message, device=self.spec.id, hint=hint)


class StrictKernel(Kernel):
    """A loop nest, interpreted; every access is checked against its buffer."""

    def __init__(self, device: StrictDevice, nest: LoopNest) -> None:
        self.device, self.nest = device, nest

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        """AttributeValueError unless there is one buffer of this device for each argument."""
        wanted = len(self.nest.arguments)
        if len(buffers) != wanted:
            raise AttributeValueError(f"{len(buffers)} buffers for {wanted} arguments",
                                      operator=self.nest.name, device=self.device.spec.id)
        mine = [self.device.own(buffer) for buffer in buffers]
        work = partial(self._interpret, mine)
        return partial(self.device.run, self.nest.name, stream, work, origin.get())

    def _interpret(self, buffers: Sequence[StrictBuffer]) -> None:
        interpret(self.nest, [buffer.open(self.device) for buffer in buffers])


def _start_of(buffer: StrictBuffer, device: StrictDevice, nbytes: int) -> HostArray:
    return buffer.open(device)[:nbytes]


def _bytes(array: HostArray) -> HostArray:
    return array.reshape(-1).view(np.uint8)
