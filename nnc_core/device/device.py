"""The interface of a device, which plugins implement: memory, transfers and kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.base.record import Record
from nnc_core.device.arenas import Arenas
from nnc_core.device.buffer import Array, Buffer, StridedArray
from nnc_core.device.capture import Program, PythonProgram
from nnc_core.device.kernel import CommandBackend, Kernel
from nnc_core.device.pool import MemoryInfo, Pool
from nnc_core.device.spec import DeviceSpec
from nnc_core.device.stream import Event, SerialStream, Stream

HostArray = np.ndarray[Any, Any]
DirectCopy: TypeAlias = Callable[[Buffer, Buffer, int], Event]
"""Copies that many bytes from the start of a buffer of one device to the start of one of another: enqueued on the
default stream of the target, which waits for the source by then.  It returns NotImplemented for what it cannot do."""
POOLED = 256 << 20
"""The most bytes that lie idle in a pool."""


class Device(ABC):
    """Memory, transfers and `compile` are all that a device must have; everything else makes it faster.

    Work may be asynchronous: `upload`, `download`, `copy`, `fill` and launches are enqueued on `stream` (None: the
    device's default stream) and run in its order.  A host array given to `upload` or `download` is not touched by the
    caller before the event is waited for; the device keeps it alive until then, and the buffer of an upload may be used
    by work that is enqueued on the same stream at once.

    Everything that can reach the memory of a buffer refers to that buffer object: arrays, views, exports, launches, and
    work that waits on another stream than the one the memory is allocated for.

    Any thread may call any method, and several threads do so at once; only `close` comes alone, after everything else.

    Errors are those of `nnc_core.base.errors` and say `device=spec.id`: DeviceMemoryError where memory is short (the
    pool answers with a `trim` and one more attempt), DeviceLostError where the device does nothing any more
    (`nnc.reopen` opens it anew), DeviceFailureError for whatever else its driver says.
    """

    spec: DeviceSpec
    eager: Mapping[str, Callable[..., Array]] = {}
    """Optional fast path: kernels by operator name that allocate their result, called f(*arrays, *attributes) with
    arrays of this device and Python numbers.  A kernel that cannot serve a call returns NotImplemented.  One with a
    method `for_dtypes(dtypes)` is asked once for the kernel of arrays of certain dtypes: one of all of them, or the
    first, and place and dtype of another one, which nest.  One with a method `claims(*arrays, *attributes)` says
    whether it runs a composite, which is expanded otherwise.  Under
    `config.deterministic` none is asked, so that they may round in another way than the commands of graphs."""

    added: Mapping[str, Sequence[CommandBackend]] = {}
    """Library code from elsewhere, by operator: see `take`."""

    kept_launches: int = 4096
    """Launches that a program keeps, beyond one for each command, for when their buffers come by again: few where each
    takes something of the driver's."""
    streams: int = 1
    """Streams that a compiled graph is spread over where parts of it do not depend on each other; 1 where nothing is
    gained by that, as where a kernel has all of the device."""
    library_functions: frozenset[str] = frozenset()
    """Instructions of loop nests that its compiler takes from a library of the driver's: what bits they give may depend
    on what is computed beside them (sin and cos of one number become one call, say)."""
    dlpack_device: tuple[int, int] | None = None
    """DLPack's name of its memory, where libraries exchange arrays that lie there; None: by the host's memory."""
    retired: Callable[[Any], None] | None = None
    """Called with each buffer that `reserve` gave when the pool gets its memory back: to poison it, say."""

    def allocate(self, nbytes: int, stream: Stream | None = None) -> Buffer:
        """Uninitialised memory, aligned to `spec.alignment`, for work on a stream: from the pool if there is some idle,
        else reserved.  DeviceMemoryError if there is not enough after a `trim`."""
        return self.pool.claim(self, nbytes, stream)[1]

    def allocate_each(self, sizes: Sequence[int]) -> Sequence[Buffer]:
        """The same of several sizes, for the default stream, where nothing keeps the memory bound."""
        return [self.allocate(nbytes) for nbytes in sizes]

    @abstractmethod
    def reserve(self, nbytes: int) -> Buffer:
        """Fresh memory for the pool, uninitialised and aligned to `spec.alignment`; it is freed when nothing refers to
        it any more.  DeviceMemoryError if there is not enough."""

    def alias(self, buffer: Buffer) -> Buffer:
        """Another buffer, which allows weak references, on the whole of a buffer, which it keeps alive."""
        return self.view(buffer, 0, buffer.nbytes)

    @property
    def pool_limit(self) -> int:
        """Bytes that may lie idle in the pool; 0 for none, if the device has a pool of its own."""
        return min(POOLED, POOLED if self.spec.memory is None else self.spec.memory // 16)

    @cached_property
    def pool(self) -> Pool:
        """The same for threads that ask for it at once."""
        made: Pool = self.__dict__.setdefault("pool", Pool(self.pool_limit, self.retired))
        return made

    @cached_property
    def arenas(self) -> Arenas:
        """The memory that compiled programs keep between their runs."""
        made: Arenas = self.__dict__.setdefault("arenas", Arenas(self.spec.memory))
        return made

    def trim(self) -> int:
        """Give memory that lies idle back to the driver, that of compiled programs which do not run included; the
        number of bytes."""
        pooled = self.pool.pooled
        dropped = self.arenas.trim()
        self.pool.trim()
        return pooled + dropped

    @abstractmethod
    def view(self, buffer: Buffer, offset: int, nbytes: int) -> Buffer:
        """Part of a buffer; `offset` is a multiple of `spec.alignment`.  Keeps the buffer alive."""

    @abstractmethod
    def upload(self, array: HostArray, buffer: Buffer, stream: Stream | None = None) -> Event:
        """Copy a C-contiguous host array into a buffer."""

    @abstractmethod
    def download(self, buffer: Buffer, array: HostArray, stream: Stream | None = None) -> Event:
        """Copy the start of a buffer into a C-contiguous host array."""

    def place(self, array: HostArray) -> Array:
        """A copy of a C-contiguous host array, there when this returns."""
        buffer = self.allocate(max(array.nbytes, 1))
        self.upload(array, buffer).wait()
        return self.array(buffer, Layout.packed(array.shape, array.dtype))

    def place_quickly(self, array: HostArray) -> Array | None:
        """The same of a small array by a shorter way, where there is one; None: the caller places it."""
        return None

    @abstractmethod
    def copy(self, source: Buffer, target: Buffer, stream: Stream | None = None) -> Event:
        """Copy min(source.nbytes, target.nbytes) bytes within the device."""

    @abstractmethod
    def fill(self, buffer: Buffer, pattern: bytes, stream: Stream | None = None) -> Event:
        """Repeat a pattern of 1, 2, 4 or 8 bytes through a buffer."""

    @abstractmethod
    def compile(self, nest: LoopNest) -> Kernel:
        """A kernel that takes the nest's arguments in order.  NotSupportedError names what it cannot.

        An input may lie in the output's memory where each point reads of it only what the point itself writes later.
        """

    def compile_all(self, nests: Sequence[LoopNest]) -> Sequence[Kernel | NotSupportedError]:
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

    @cached_property
    def side_streams(self) -> tuple[Stream, ...]:
        """The streams besides the default one that compiled graphs are spread over, shared by all of them."""
        made: tuple[Stream, ...] = self.__dict__.setdefault(
            "side_streams", tuple([self.stream() for _ in range(self.streams - 1)]))
        return made

    def array(self, buffer: Buffer, layout: Layout) -> Array:
        """An array lying in a buffer."""
        return StridedArray(buffer, layout)

    def arrays(self, layout: Layout) -> Callable[[Buffer], Array]:
        """`array` for one layout, called for each output of a compiled graph."""
        return lambda buffer: self.array(buffer, layout)

    def buffer_of(self, array: Array) -> Buffer:
        """The buffer that `layout_of` speaks of."""
        return array.buffer  # type: ignore[no-any-return]

    def layout_of(self, array: Array) -> Layout:
        """The layout of the array in `buffer_of(array)`."""
        return array.layout  # type: ignore[no-any-return]

    def packed_buffer(self, array: Array) -> Buffer | None:
        """The array's buffer if it lies at its start in C order, else None."""
        layout = self.layout_of(array)
        return self.buffer_of(array) if layout.offset == 0 and layout.contiguous else None

    def pooled_buffer(self, array: Array) -> Buffer | None:
        """The buffer of the pool's block that a packed array lies at the start of, the same for as long as the block
        is there; None for memory from elsewhere.  Asked for each input of a compiled graph."""
        buffer = self.packed_buffer(array)
        return None if buffer is None else self.pool.block_of(buffer)

    def is_aligned(self, array: Array) -> bool:
        """Tell whether an array lies as what the device allocates does, or is too small for that to matter.  Asked
        before a compiled graph overwrites it for the first time."""
        return True

    def adopt(self, array: HostArray) -> Array | None:
        """An array of this device that lies in a host array's own memory, keeps it alive and is only read.

        None where it cannot be: the caller copies.  Only devices that compute in the host's memory adopt.
        """
        return None

    def expose(self, array: Array) -> HostArray | None:
        """An array's own memory as the host sees it, read-only and kept alive; None where the host cannot see it."""
        return None

    def borrow(self, x: Any) -> Array | None:
        """An array of this device in the memory of an object of another library, where that lies on this device, by
        `__dlpack__` or a protocol of the device's own.  It is only read, and gives the memory back in order.  Asked
        where there is a `dlpack_device`."""
        return None

    def lend(self, array: Array, stream: Any, versioned: bool, copied: bool) -> Any:
        """A capsule of DLPack for the library that asked with `stream`, which means what DLPack says for this device:
        of version 1, where arrays that are not `copied` for it are marked read-only, or without a version."""
        raise NotImplementedError

    def cuda_interface(self, array: Array) -> Mapping[str, Any] | None:
        """Contents of an array's `__cuda_array_interface__`; None where it has none."""
        return None

    def capture(self, records: Sequence[Record], slots: Sequence[Buffer | None], stream: Stream) -> Program:
        """Make a program of records that runs on a stream; slots that are None are bound before it runs."""
        return PythonProgram(self, records, slots, stream)

    def memory_info(self) -> MemoryInfo:
        """Bytes that are free, there at all, in use, idle in the pool and kept by compiled programs."""
        used, pooled, kept = self.pool.used, self.pool.pooled, self.arenas.idle
        known = self.driver_memory()
        return MemoryInfo(None, None, used, pooled, kept) if known is None else MemoryInfo(
            min(known[0] + pooled + kept, known[1]), known[1], used, pooled, kept)

    def driver_memory(self) -> tuple[int, int] | None:
        """(free, total) bytes as the driver counts them, the pool's as taken; None if it cannot tell."""
        return None

    def close(self) -> None:
        """Give everything back; the device is not used afterwards."""
        return None

    def __repr__(self) -> str:
        return f"<device {self.spec.id} {self.spec.name}>"


_SERIAL = SerialStream()
