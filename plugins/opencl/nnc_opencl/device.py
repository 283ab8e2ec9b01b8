"""The OpenCL device: driver calls for memory, generated kernels for everything that computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyopencl as cl

from nnc_core.base.dtype import float32
from nnc_core.base.errors import DeviceError, DeviceFailureError, Error, NotSupportedError, OutOfRangeError
from nnc_core.base.loopnest import Access, Argument, Instruction, LoopNest, Stage, Subscript
from nnc_core.device import (
    DONE,
    Buffer,
    BuiltKernels,
    CommandBackend,
    Device,
    Event,
    HostArray,
    Stream,
    check_host_copy,
)
from nnc_core.operator import steps
from nnc_opencl.attention import attention
from nnc_opencl.drivers import INSTALL, builds_loops, describe, runs_groups, spec_of
from nnc_opencl.failure import failure
from nnc_opencl.kernel import OpenCLKernel
from nnc_opencl.memory import Account, OpenCLBuffer, reserve
from nnc_opencl.products.backend import products
from nnc_opencl.products.kernel import TiledCompiler
from nnc_opencl.programs import FittedCode, ProgramBuilder, Refusal, library_functions
from nnc_opencl.steps import StepsCompiler
from nnc_opencl.stream import OpenCLStream

KERNELS = 64
"""Kernels built last that a device keeps, some 0.5 MiB of code each with drivers for CPUs.  What runs keeps its own:
programs theirs for as long as they live, eager code the last ones."""

HostBytes = np.ndarray[tuple[int], np.dtype[np.uint8]]


class OpenCLDevice(Device):
    """A context and an in-order queue of one device of one platform."""

    kept_launches = 512  # making the cl.Kernel of each takes longer than binding a hundred

    def __init__(self, device: cl.Device, id: str, grouped: bool | None = None) -> None:
        """`grouped`: kernels for devices that run work items in groups, as GPUs do; None: those for its type."""
        self.spec, self.library_functions = spec_of(device, id), library_functions(device)
        self._device = device
        grouped = runs_groups(device) if grouped is None else grouped
        try:
            self._context = cl.Context([device])
            self._default = OpenCLStream(self._context, device, id, keeps=False)
        except cl.Error as error:
            raise failure("making a context", error, id) from error
        self._account = Account()
        self._builder = ProgramBuilder(self._context, self.spec, grouped)
        self._kernels = BuiltKernels(KERNELS, self._built)
        tiles = grouped or not builds_loops(device)
        self._library = {**products(TiledCompiler(self._builder, self._default, tiles)),
                         **attention(StepsCompiler(self._builder, self._default, tiles)),
                         **steps.backends(StepsCompiler(self._builder, self._default, grouped))}

    def reserve(self, nbytes: int) -> OpenCLBuffer:
        return reserve(self._context, nbytes, self._account, self.spec)

    def view(self, buffer: Buffer, offset: int, nbytes: int) -> OpenCLBuffer:
        whole = _mine(buffer)
        if offset < 0 or nbytes < 0 or offset + nbytes > whole.nbytes:
            raise OutOfRangeError(f"bytes {offset} to {offset + nbytes} of a buffer of {whole.nbytes}",
                                  device=self.spec.id)
        start = whole.offset + offset
        if start % self.spec.alignment:
            raise DeviceError(f"a view at byte {start}, which is no multiple of {self.spec.alignment}",
                              device=self.spec.id, hint="align views to `spec.alignment`")
        root = whole.allocation
        if nbytes == 0:
            return OpenCLBuffer(root.memory, 0, whole, start)
        try:
            return OpenCLBuffer(root.memory.get_sub_region(start, nbytes), nbytes, whole, start)
        except cl.Error as error:
            raise failure("making a view", error, self.spec.id) from error

    def alias(self, buffer: Buffer) -> OpenCLBuffer:
        mine = _mine(buffer)
        return OpenCLBuffer(mine.memory, mine.nbytes, mine, mine.offset)

    def upload(self, array: HostArray, buffer: Buffer, stream: Stream | None = None) -> Event:
        host, target = self._bytes(array, buffer), _mine(buffer)
        if not host.nbytes:
            return DONE
        queue = self._queue(stream)
        queue.forget_done()
        return queue.submit("an upload", cl.enqueue_copy, target.memory, host, held=target, is_blocking=False)

    def download(self, buffer: Buffer, array: HostArray, stream: Stream | None = None) -> Event:
        host, source, queue = self._bytes(array, buffer), _mine(buffer), self._queue(stream)
        if not host.nbytes:
            return queue.record()
        return queue.submit("a download", cl.enqueue_copy, host, source.memory, held=source, is_blocking=False)

    def copy(self, source: Buffer, target: Buffer, stream: Stream | None = None) -> Event:
        a, b, queue = _mine(source), _mine(target), self._queue(stream)
        nbytes = min(a.nbytes, b.nbytes)
        if not nbytes or (a.allocation is b.allocation and a.offset == b.offset):
            return queue.record()
        return queue.submit("a copy", cl.enqueue_copy, b.memory, a.memory, held=(a, b), byte_count=nbytes)

    def fill(self, buffer: Buffer, pattern: bytes, stream: Stream | None = None) -> Event:
        target, queue = _mine(buffer), self._queue(stream)
        if len(pattern) not in (1, 2, 4, 8):
            raise DeviceError(f"a pattern of {len(pattern)} bytes, not 1, 2, 4 or 8", device=self.spec.id)
        whole = target.nbytes // len(pattern) * len(pattern)
        if whole:
            queue.submit("a fill", cl.enqueue_fill_buffer, target.memory, pattern, 0, whole, held=target)
        if whole < target.nbytes:  # the driver repeats whole patterns only
            rest = np.frombuffer(pattern, np.uint8)[: target.nbytes - whole]
            queue.submit("a fill", cl.enqueue_copy, target.memory, rest, held=target, dst_offset=whole,
                         is_blocking=False)
        return queue.record()

    def compile(self, nest: LoopNest) -> OpenCLKernel:
        return self._kernels.of(nest)

    def compile_all(self, nests: Sequence[LoopNest]) -> Sequence[OpenCLKernel | NotSupportedError]:
        return self._kernels.of_all(nests)

    def _built(self, nests: Sequence[LoopNest]) -> list[OpenCLKernel | Refusal]:
        return [OpenCLKernel(nest, code, self._device, self._default) if isinstance(code, FittedCode) else code
                for nest, code in zip(nests, self._builder.build(nests), strict=True)]

    def backends(self, name: str) -> Sequence[CommandBackend]:
        return (self._library[name],) if name in self._library else ()

    def stream(self) -> OpenCLStream:
        return OpenCLStream(self._context, self._device, self.spec.id)

    @property
    def default_stream(self) -> OpenCLStream:
        return self._default

    def driver_memory(self) -> tuple[int, int] | None:
        """The memory that nnc itself leaves free; OpenCL does not tell what others take."""
        total = self.spec.memory
        return None if total is None else (total - self._account.used, total)

    def close(self) -> None:
        self._default.synchronize()
        self._kernels.clear()

    def _queue(self, stream: Stream | None) -> OpenCLStream:
        if stream is None:
            return self._default
        if not isinstance(stream, OpenCLStream) or stream.context != self._context:
            raise DeviceError(f"{stream!r} is no stream of {self.spec.id}", device=self.spec.id)
        return stream

    def _bytes(self, array: HostArray, buffer: Buffer) -> HostBytes:
        """The array's own memory as bytes, if it fits the buffer."""
        check_host_copy(array, buffer, self.spec.id)
        return array.reshape(-1).view(np.uint8)


def _mine(buffer: Buffer) -> OpenCLBuffer:
    if not isinstance(buffer, OpenCLBuffer):
        raise DeviceError(f"{buffer!r} is no buffer of an OpenCL device")
    return buffer


def open_device(device: cl.Device, id: str) -> OpenCLDevice:
    """The device, once it has built and run a kernel: some drivers list devices and can build nothing."""
    try:
        opened = OpenCLDevice(device, id)
        fault = _fault(opened)
    except Error as error:
        raise _unusable(device, id, error.message) from error
    if fault:
        raise _unusable(device, id, fault)
    return opened


def _unusable(device: cl.Device, id: str, fault: str) -> DeviceFailureError:
    return DeviceFailureError(f"the OpenCL driver lists {describe(device)} and cannot use it: {fault}", device=id,
                         hint=f"install another driver: {INSTALL}")


def _fault(device: OpenCLDevice) -> str:
    """The fault found by doubling a few numbers on the device; "" if there is none."""
    numbers = np.arange(100, dtype=np.float32)
    result = np.full_like(numbers, np.nan)
    source, target = device.allocate(numbers.nbytes), device.allocate(numbers.nbytes)
    device.upload(numbers, source)
    device.compile(_doubling(len(numbers))).bind([source, target])()
    device.download(target, result).wait()
    return "" if np.array_equal(result, numbers + numbers) else "a kernel that doubles numbers is wrong"


def _doubling(count: int) -> LoopNest:
    """y[i] = x[i] + x[i]."""
    each = (Subscript(0, ((0, 1),), 1, extent=count),)
    body = (
        Instruction("load", float32, access=Access(0, 0, each)),
        Instruction("add", float32, (0, 0)),
        Instruction("store", float32, (1,), access=Access(1, 0, each)),
    )
    arguments = (Argument(float32, written=False), Argument(float32, written=True))
    return LoopNest("self_test", arguments, (count,), (Stage((), body),))
