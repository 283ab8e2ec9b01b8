"""The CUDA device: driver calls for memory, generated kernels for everything that computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nnc_core.base.dtype import ALL_DTYPES
from nnc_core.base.errors import DeviceError, DeviceMemoryError, NotSupportedError, OutOfRangeError
from nnc_core.base.loopnest import LoopNest
from nnc_core.base.record import Record
from nnc_core.device import (
    CODEGEN,
    REPRODUCIBLE,
    Array,
    Buffer,
    BuiltKernels,
    CommandBackend,
    Device,
    DeviceSpec,
    DirectCopy,
    Event,
    HostArray,
    Program,
    Stream,
    check_host_copy,
)
from nnc_core.operator import steps
from nnc_cuda.dnn.backend import attentions, convolutions
from nnc_cuda.driver import CudaCompiler, CudaError, DeviceFacts, Driver
from nnc_cuda.exchange import borrowed, interface_of, lend
from nnc_cuda.failure import OUT_OF_MEMORY, explained, failure
from nnc_cuda.fourier.backend import transforms
from nnc_cuda.graphs import CudaProgram
from nnc_cuda.kernel import CudaKernel
from nnc_cuda.matrices.backend import matrices
from nnc_cuda.memory import Allocation, CudaBuffer
from nnc_cuda.modules import FittedFunction, ModuleBuilder, Refusal
from nnc_cuda.products.backend import products
from nnc_cuda.products.kernel import BlockProductCompiler
from nnc_cuda.staging import Staging
from nnc_cuda.steps import CudaStepsCompiler
from nnc_cuda.stream import CudaEvent, CudaStream
from nnc_cuda.vendor import NO_LIBRARIES, OpenedLibraries, VendorLibraries

ALIGNMENT = 256
"""Bytes that CUDA aligns its own allocations to."""
POOLED_PART = 4
"""The part of a device's memory that may lie idle in its pool: the driver waits for the device when it frees some."""
KERNELS = 256
"""Kernels built last that a device keeps; programs keep theirs for as long as they live."""
SEED = 1 << 16
"""Bytes of a pattern that come from the host; the rest is copied on the device, twice as much at a time."""


def spec_of(facts: DeviceFacts, id: str) -> DeviceSpec:
    """float16 and bfloat16 are stored as bits and computed as float32."""
    return DeviceSpec(
        id, id.partition(":")[0], facts.name, "NVIDIA", driver=facts.version, memory=facts.memory,
        max_allocation=facts.memory, alignment=ALIGNMENT, dtypes=frozenset(ALL_DTYPES),
        features=frozenset({"gpu", "fp64", "fp16", CODEGEN, REPRODUCIBLE, "sm_{}{}".format(*facts.capability)}),
    )  # fmt: skip


class CudaDevice(Device):
    """One GPU, and a stream of it."""

    kept_launches = 4096
    library_functions = frozenset[str]()

    def __init__(self, driver: Driver, compiler: CudaCompiler, id: str,
                 libraries: VendorLibraries = NO_LIBRARIES) -> None:
        with explained("asking a device for its properties", id):
            self.spec = spec_of(driver.facts(), id)
        self.libraries = OpenedLibraries(driver, libraries)
        self.driver, self.dlpack_device = driver, driver.exchange
        self._staging = Staging(driver)
        self._default = CudaStream(driver, id, self._staging, keeps=False)
        self._builder = ModuleBuilder(driver, compiler, id)
        self._kernels = BuiltKernels(KERNELS, self._built)
        compiled = CudaStepsCompiler(self._builder, self._default, self.spec.dtypes, self._constants)
        self._library = self._backends(compiled)

    def _backends(self, compiled: CudaStepsCompiler) -> dict[str, Sequence[CommandBackend]]:
        """Library code by operators, the preferred first."""
        found = {name: (one,) for name, one in steps.backends(compiled).items()}
        long = transforms(self, self.libraries.fourier)
        multiplied = products(BlockProductCompiler(self._builder, self._default), self.libraries.blas)
        by_dnn: dict[str, Sequence[CommandBackend]] = {
            name: _behind_first(one, multiplied[name]) for name, one in convolutions(self, self.libraries.dnn).items()}
        by_dnn |= attentions(self, self.libraries.dnn)
        return {**multiplied, **by_dnn, **matrices(self, self.libraries.lapack), **found,
                **{name: (one, *found[name]) for name, one in long.items()}}

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

    @property
    def pool_limit(self) -> int:
        return (self.spec.memory or 0) // POOLED_PART

    def trim(self) -> int:
        self._staging.trim()
        return super().trim()

    def driver_memory(self) -> tuple[int, int]:
        with explained("asking for free memory", self.spec.id):
            return self.driver.free_memory()

    # ---- transfers
    def upload(self, array: HostArray, buffer: Buffer, stream: Stream | None = None) -> Event:
        check_host_copy(array, buffer, self.spec.id)
        target, queue = _mine(buffer), self._queue(stream)
        if not array.nbytes:
            return queue.record()
        return queue.send(target.address, array, target)

    def download(self, buffer: Buffer, array: HostArray, stream: Stream | None = None) -> Event:
        check_host_copy(array, buffer, self.spec.id)
        source, queue = _mine(buffer), self._queue(stream)
        if not array.nbytes:
            return queue.record()
        return queue.fetch(array, source.address, source)

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
        queue.send(target.address, begun, target)
        done = begun.nbytes
        while done < target.nbytes:
            more = min(done, target.nbytes - done)
            queue.copy(target.address + done, target.address, more, held=target)
            done += more
        return queue.record()

    def copy_from(self, other: CudaDevice) -> DirectCopy | None:
        """A function that copies from another GPU to this one without the host; None where they are no kin."""
        if other.driver.kin != self.driver.kin:
            return None
        with explained("connecting two devices", self.spec.id):
            self.driver.reach(other.driver)

        def copy(source: Buffer, target: Buffer, nbytes: int) -> CudaEvent:
            return self._default.copy(_mine(target).address, _mine(source).address, nbytes, held=(source, target))

        return copy

    # ---- other libraries
    def borrow(self, x: Any) -> Array | None:
        return borrowed(x, self._default, self.driver.exchange)

    def lend(self, array: Array, stream: int | None, versioned: bool, copied: bool) -> Any:
        return lend(array, self._default, stream, self.driver.exchange, versioned, copied)

    def cuda_interface(self, array: Array) -> Mapping[str, Any] | None:
        return interface_of(array, self._default, self.driver.exchange)

    # ---- kernels
    def compile(self, nest: LoopNest) -> CudaKernel:
        return self._kernels.of(nest)

    def compile_all(self, nests: Sequence[LoopNest]) -> Sequence[CudaKernel | NotSupportedError]:
        return self._kernels.of_all(nests)

    def _built(self, nests: Sequence[LoopNest]) -> list[CudaKernel | Refusal]:
        return [CudaKernel(nest, code, self._default, self.allocate) if isinstance(code, FittedFunction) else code
                for nest, code in zip(nests, self._builder.build(nests), strict=True)]

    def _constants(self, values: HostArray) -> Buffer:
        """Memory with these values, for kernels on any stream."""
        buffer = self.allocate(values.nbytes)
        self.upload(values, buffer).wait()
        return buffer

    def backends(self, name: str) -> Sequence[CommandBackend]:
        return self._library.get(name, ())

    def capture(self, records: Sequence[Record], slots: Sequence[Buffer | None], stream: Stream) -> Program:
        return CudaProgram(self, records, slots, self._queue(stream))

    # ---- order
    def stream(self) -> CudaStream:
        return CudaStream(self.driver, self.spec.id, self._staging)

    @property
    def default_stream(self) -> CudaStream:
        return self._default

    def close(self) -> None:
        self._default.synchronize()
        self._kernels.clear()
        self._staging.trim()

    def _queue(self, stream: Stream | None) -> CudaStream:
        if stream is None:
            return self._default
        if not isinstance(stream, CudaStream) or stream.driver is not self.driver:
            raise DeviceError(f"{stream!r} is no stream of {self.spec.id}", device=self.spec.id)
        return stream


def _behind_first(one: CommandBackend, others: Sequence[CommandBackend]) -> Sequence[CommandBackend]:
    """Convolutions that are products of plain matrices go before cuDNN's, tiles behind them."""
    first, *rest = others
    return (first, one, *rest)


def _mine(buffer: Buffer) -> CudaBuffer:
    if not isinstance(buffer, CudaBuffer):
        raise DeviceError(f"{buffer!r} is no buffer of a CUDA device")
    return buffer
