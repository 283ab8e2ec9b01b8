"""The CUDA device: driver calls for memory, generated kernels for everything that computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nnc_core.base.dtype import DTYPES
from nnc_core.base.errors import DeviceError, DeviceMemoryError, NotSupportedError, OutOfRangeError
from nnc_core.base.loopnest import LoopNest
from nnc_core.base.record import Record
from nnc_core.device import (
    CODEGEN,
    REPRODUCIBLE,
    Buffer,
    BuiltKernels,
    Device,
    DeviceSpec,
    Event,
    HostArray,
    Program,
    Stream,
)
from nnc_cuda.driver import CudaCompiler, CudaError, DeviceFacts, Driver
from nnc_cuda.failure import OUT_OF_MEMORY, explained, failure
from nnc_cuda.graphs import CudaProgram
from nnc_cuda.kernel import CudaKernel
from nnc_cuda.memory import Allocation, CudaBuffer
from nnc_cuda.modules import FittedFunction, ModuleBuilder, Refusal
from nnc_cuda.stream import CudaStream

ALIGNMENT = 256
"""Bytes that CUDA aligns its own allocations to."""
KERNELS = 256
"""Kernels built last that a device keeps; programs keep theirs for as long as they live."""
SEED = 1 << 16
"""Bytes of a pattern that come from the host; the rest is copied on the device, twice as much at a time."""


def spec_of(facts: DeviceFacts, id: str) -> DeviceSpec:
    """float16 and bfloat16 are stored as bits and computed as float32."""
    return DeviceSpec(
        id, id.partition(":")[0], facts.name, "NVIDIA", driver=facts.version, memory=facts.memory,
        max_allocation=facts.memory, alignment=ALIGNMENT, dtypes=frozenset(DTYPES),
        features=frozenset({"gpu", "fp64", "fp16", CODEGEN, REPRODUCIBLE, "sm_{}{}".format(*facts.capability)}),
    )  # fmt: skip


class CudaDevice(Device):
    """One GPU, and a stream of it."""

    kept_launches = 4096
    library_functions = frozenset[str]()

    def __init__(self, driver: Driver, compiler: CudaCompiler, id: str) -> None:
        with explained("asking a device for its properties", id):
            self.spec = spec_of(driver.facts(), id)
        self.driver = driver
        self._default = CudaStream(driver, id, keeps=False)
        self._builder = ModuleBuilder(driver, compiler, id)
        self._kernels = BuiltKernels(KERNELS, self._built)

    # ---- memory
    def reserve(self, nbytes: int) -> CudaBuffer:
        try:
            return Allocation(self.driver, self.driver.allocate(max(nbytes, 1)), nbytes)
        except CudaError as error:
            if error.code != OUT_OF_MEMORY:
                raise failure("allocating memory", error, self.spec.id) from error
            free, total = self.driver.free_memory()
            raise DeviceMemoryError(f"{nbytes} bytes asked for; {free} of {total} are free", device=self.spec.id,
                                    hint="free buffers, use smaller batches, or another device") from error

    def view(self, buffer: Buffer, offset: int, nbytes: int) -> CudaBuffer:
        whole = _mine(buffer)
        if offset < 0 or nbytes < 0 or offset + nbytes > whole.nbytes:
            raise OutOfRangeError(f"bytes {offset} to {offset + nbytes} of a buffer of {whole.nbytes}",
                                  device=self.spec.id)
        return CudaBuffer(whole.address + offset, nbytes, whole)

    def driver_memory(self) -> tuple[int, int]:
        with explained("asking for free memory", self.spec.id):
            return self.driver.free_memory()

    # ---- transfers
    def upload(self, array: HostArray, buffer: Buffer, stream: Stream | None = None) -> Event:
        self._fits(array, buffer)
        target, queue = _mine(buffer), self._queue(stream)
        if not array.nbytes:
            return queue.record()
        return queue.copy(target.address, array.ctypes.data, array.nbytes, held=(array, target))

    def download(self, buffer: Buffer, array: HostArray, stream: Stream | None = None) -> Event:
        self._fits(array, buffer)
        source, queue = _mine(buffer), self._queue(stream)
        if not array.nbytes:
            return queue.record()
        return queue.copy(array.ctypes.data, source.address, array.nbytes, held=(array, source))

    def copy(self, source: Buffer, target: Buffer, stream: Stream | None = None) -> Event:
        a, b, queue = _mine(source), _mine(target), self._queue(stream)
        nbytes = min(a.nbytes, b.nbytes)
        if not nbytes or a.address == b.address:
            return queue.record()
        return queue.copy(b.address, a.address, nbytes, held=(a, b))

    def fill(self, buffer: Buffer, pattern: bytes, stream: Stream | None = None) -> Event:
        target, queue = _mine(buffer), self._queue(stream)
        if len(pattern) not in (1, 2, 4, 8):
            raise DeviceError(f"a pattern of {len(pattern)} bytes, not 1, 2, 4 or 8", device=self.spec.id)
        if len(set(pattern)) == 1:
            with explained("a fill", self.spec.id):
                self.driver.fill(target.address, pattern[0], target.nbytes, queue.handle)
            return queue.hold(target)
        begun = np.resize(np.frombuffer(pattern, np.uint8), min(target.nbytes, SEED))
        queue.copy(target.address, begun.ctypes.data, begun.nbytes, held=(begun, target))
        done = begun.nbytes
        while done < target.nbytes:
            more = min(done, target.nbytes - done)
            queue.copy(target.address + done, target.address, more, held=target)
            done += more
        return queue.record()

    # ---- kernels
    def compile(self, nest: LoopNest) -> CudaKernel:
        return self._kernels.of(nest)

    def compile_all(self, nests: Sequence[LoopNest]) -> Sequence[CudaKernel | NotSupportedError]:
        return self._kernels.of_all(nests)

    def _built(self, nests: Sequence[LoopNest]) -> list[CudaKernel | Refusal]:
        return [CudaKernel(nest, code, self._default) if isinstance(code, FittedFunction) else code
                for nest, code in zip(nests, self._builder.build(nests), strict=True)]

    def capture(self, records: Sequence[Record], slots: Sequence[Buffer | None], stream: Stream) -> Program:
        return CudaProgram(self, records, slots, self._queue(stream))

    # ---- order
    def stream(self) -> CudaStream:
        return CudaStream(self.driver, self.spec.id)

    @property
    def default_stream(self) -> CudaStream:
        return self._default

    def close(self) -> None:
        self._default.synchronize()
        self._kernels.clear()

    def _queue(self, stream: Stream | None) -> CudaStream:
        if stream is None:
            return self._default
        if not isinstance(stream, CudaStream) or stream.driver is not self.driver:
            raise DeviceError(f"{stream!r} is no stream of {self.spec.id}", device=self.spec.id)
        return stream

    def _fits(self, array: HostArray, buffer: Buffer) -> None:
        if not array.flags.c_contiguous:
            raise DeviceError(f"a host array with strides {array.strides}, expected C order",
                              device=self.spec.id, hint="numpy.ascontiguousarray")
        if array.nbytes > buffer.nbytes:
            raise OutOfRangeError(f"a host array of {array.nbytes} bytes beside a buffer of {buffer.nbytes}",
                                  device=self.spec.id)


def _mine(buffer: Buffer) -> CudaBuffer:
    if not isinstance(buffer, CudaBuffer):
        raise DeviceError(f"{buffer!r} is no buffer of a CUDA device")
    return buffer
