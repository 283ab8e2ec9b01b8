"""cpu:0: host memory, and NumPy for its kernels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from nnc_core.base.dtype import ALL_DTYPES
from nnc_core.base.errors import DeviceError, FallbackWarning, NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.base.line import users_frame
from nnc_core.base.loopnest import LoopNest
from nnc_core.base.record import Record
from nnc_core.device import (
    CODEGEN,
    DONE,
    NOTES,
    REPRODUCIBLE,
    Array,
    CommandBackend,
    Device,
    DeviceSpec,
    Event,
    HostArray,
    Kernel,
    Program,
    Stream,
)
from nnc_cpu import heap, host, memory
from nnc_cpu.addresses import address_of
from nnc_cpu.backends import backends_beside
from nnc_cpu.eager import EAGER, MADE_OF
from nnc_cpu.expanded import beside_machine_code
from nnc_cpu.nests import NestKernels, has_llvm
from nnc_cpu.program import NumpyProgram
from nnc_cpu.programs import PROGRAM

SMALL = 1 << 15
"""Bytes up to which memory of NumPy's own is as good as the pool's, and there sooner."""


class CpuDevice(Device):
    """Buffers are arrays of bytes, arrays are NumPy's own; work is done when a call returns.

    machine_code: loop nests become machine code and go before most of NumPy's code; by default if LLVM is installed.
    """

    def __init__(self, machine_code: bool | None = None) -> None:
        known = host.memory()
        total = None if known is None else known[1]
        machine_code = _has_llvm_or_says_so() if machine_code is None else machine_code
        self._backends = backends_beside(machine_code)
        self.spec = DeviceSpec(
            "cpu:0", "cpu", host.processor_name(), vendor=host.vendor(), driver=f"NumPy {np.__version__}",
            memory=total, max_allocation=total, alignment=memory.ALIGNMENT, dtypes=frozenset(ALL_DTYPES),
            features=frozenset({CODEGEN, NOTES, REPRODUCIBLE} if machine_code else ()))
        self.eager: Mapping[str, Callable[..., Array]] = EAGER
        if machine_code:
            self.eager = beside_machine_code(EAGER, lambda: self._kernels)

    def take(self, operator: str, backend: CommandBackend) -> None:
        super().take(operator, backend)
        self.eager = {name: kernel for name, kernel in self.eager.items()
                      if operator not in MADE_OF.get(name, ()) and name != PROGRAM}

    def reserve(self, nbytes: int) -> Any:
        heap.reserving(nbytes)
        return memory.reserve(nbytes)

    def allocate_each(self, sizes: Sequence[int]) -> Sequence[Any]:
        if max(sizes, default=0) > SMALL:
            return self.pool.claim_each(self, sizes)
        return [np.empty(nbytes, np.uint8) for nbytes in sizes]

    def trim(self) -> int:
        given_back = super().trim()
        heap.give_back()
        return given_back

    def alias(self, buffer: Any) -> Any:
        return buffer.view(np.ndarray)

    def view(self, buffer: Any, offset: int, nbytes: int) -> Any:
        if offset < 0 or offset + nbytes > len(buffer):
            raise DeviceError(f"bytes {offset} to {offset + nbytes} do not lie within a buffer of {len(buffer)}",
                              device=self.spec.id)
        return buffer[offset : offset + nbytes]

    def upload(self, array: HostArray, buffer: Any, stream: Stream | None = None) -> Event:
        source = self._bytes(array)
        buffer[: len(source)] = source
        return DONE

    def download(self, buffer: Any, array: HostArray, stream: Stream | None = None) -> Event:
        target = self._bytes(array)
        target[...] = buffer[: len(target)]
        return DONE

    def _bytes(self, array: HostArray) -> memory.Bytes:
        if not array.flags.c_contiguous:
            raise DeviceError("host arrays are transferred in C order without gaps", device=self.spec.id,
                              hint="np.ascontiguousarray makes one")
        return memory.bytes_of(array)

    def place_quickly(self, array: HostArray) -> Array | None:
        return array.copy() if array.nbytes <= SMALL else None

    def copy(self, source: Any, target: Any, stream: Stream | None = None) -> Event:
        nbytes = min(len(source), len(target))
        target[:nbytes] = source[:nbytes]
        return DONE

    def fill(self, buffer: Any, pattern: bytes, stream: Stream | None = None) -> Event:
        width = len(pattern)
        whole = len(buffer) // width * width
        values = np.frombuffer(pattern, np.uint8)
        buffer[:whole].reshape(-1, width)[...] = values
        buffer[whole:] = values[: len(buffer) - whole]
        return DONE

    def compile(self, nest: LoopNest) -> Kernel:
        [kernel] = self._kernels.of([nest])
        return kernel

    def compile_all(self, nests: Sequence[LoopNest]) -> list[Kernel | NotSupportedError]:
        return [*self._kernels.of(nests)]

    @cached_property
    def _kernels(self) -> NestKernels:
        return NestKernels()

    def backends(self, name: str) -> Sequence[CommandBackend]:
        return self._backends.get(name, ())

    def capture(self, records: Sequence[Record], slots: Sequence[Any], stream: Stream) -> Program:
        return NumpyProgram(self, records, slots, stream)

    def array(self, buffer: Any, layout: Layout) -> Array:
        return memory.array_in(buffer, layout)

    def arrays(self, layout: Layout) -> Callable[[Any], Array]:
        return memory.arrays_in(layout)

    def buffer_of(self, array: Array) -> Any:
        return memory.bytes_of(array)

    def packed_buffer(self, array: Array) -> Any:
        return array.reshape(-1).view(np.uint8) if array.flags.c_contiguous else None

    pooled_buffer = staticmethod(memory.block_of)

    def is_aligned(self, array: Array) -> bool:
        return array.nbytes <= SMALL or address_of(array) % memory.ALIGNMENT == 0

    def layout_of(self, array: Array) -> Layout:
        return memory.layout_of(array)

    def adopt(self, array: HostArray) -> Array | None:
        return memory.adopted(array)

    def expose(self, array: Array) -> HostArray | None:
        return memory.exposed(array)

    def driver_memory(self) -> tuple[int, int] | None:
        return host.memory()


def _has_llvm_or_says_so() -> bool:
    found = has_llvm()
    if not found:
        warnings.warn("cpu:0 is NumPy alone, which is slow: llvmlite is not installed; `pip install llvmlite`",
                      FallbackWarning, stacklevel=users_frame())
    return found
