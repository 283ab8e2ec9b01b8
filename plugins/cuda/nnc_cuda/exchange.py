"""Arrays that lie in the memory of a GPU and belong to other libraries, and those that are lent to them.

Each side works on streams of its own.  Who hands memory over lets the other's stream wait for his own; who gives it
back does the same, for else the owner would use it again too early.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nnc_core.base.dtype import bfloat16
from nnc_core.base.errors import ExchangeError
from nnc_core.base.layout import Layout
from nnc_core.device import StridedArray
from nnc_cuda.dlpack import COPIED, READ_ONLY, StridedMemory, lent, taken
from nnc_cuda.failure import explained
from nnc_cuda.memory import CudaBuffer
from nnc_cuda.stream import CudaStream

LEGACY = 1
"""DLPack's, and CUDA's, name of the default stream, which None means too."""
UNORDERED = -1
"""DLPack's word for a stream that is not to wait."""


class ForeignMemory(CudaBuffer):
    """Memory of another library, which gets it back when all work that was enqueued until then is done."""

    __slots__ = ("owner", "stream")

    def __init__(self, address: int, nbytes: int, owner: object, stream: CudaStream) -> None:
        super().__init__(address, nbytes, None)
        self.owner, self.stream = owner, stream

    def __del__(self) -> None:
        self.stream.part_with(self.owner)


class Loan:
    """A buffer in the hands of another library, whose work on a stream of its own comes before the buffer is used
    again."""

    def __init__(self, buffer: CudaBuffer, stream: CudaStream, theirs: int) -> None:
        self.buffer, self.stream, self.theirs = buffer, stream, theirs

    def __del__(self) -> None:
        self.stream.take_back(self.buffer, self.theirs)


def borrowed(x: Any, stream: CudaStream, device: tuple[int, int]) -> StridedArray | None:
    """An array in the memory of an object of another library; None where that does not lie on this device."""
    stream.let_go()
    if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
        if tuple(x.__dlpack_device__()) != device:
            return None
        try:
            memory, owner = taken(_capsule(x, stream.handle))
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise ExchangeError(f"{type(x).__name__} cannot be taken over: {error}", device=stream.id) from error
        return _array(memory, owner, stream) if memory.device == device else None
    interface = getattr(x, "__cuda_array_interface__", None)
    return None if interface is None else _of_interface(interface, x, stream, device)


def _capsule(x: Any, stream: int) -> Any:
    try:
        return x.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # of a library that knows no versions
        return x.__dlpack__(stream=stream)


def _of_interface(interface: Mapping[str, Any], x: object, stream: CudaStream,
                  device: tuple[int, int]) -> StridedArray | None:
    """The array of `__cuda_array_interface__`."""
    address, _ = interface["data"]
    if interface.get("mask") is not None:
        raise ExchangeError("arrays with masks are not taken", device=stream.id)
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    with explained("looking an address up", stream.id):
        if address and not stream.driver.holds(address):
            return None
        if interface.get("stream") is not None:
            stream.follow(interface["stream"])
    strides = interface.get("strides") or Layout.packed(shape, dtype).strides
    return _array(StridedMemory(address, shape, tuple(strides), dtype, device), x, stream)


def _array(memory: StridedMemory, owner: object, stream: CudaStream) -> StridedArray | None:
    """None where kernels could not read it: elements lie across their own boundaries."""
    size = memory.dtype.itemsize
    part = size // 2 if memory.dtype.kind == "c" else size
    if memory.address % part or any([step % part for step in memory.strides]):
        return None
    empty = 0 in memory.shape
    spans = [(n - 1) * step for n, step in zip(memory.shape, memory.strides, strict=True)]
    before = 0 if empty else -sum([span for span in spans if span < 0])
    after = 0 if empty else sum([span for span in spans if span > 0]) + size
    buffer = ForeignMemory(memory.address - before, before + after, owner, stream)
    return StridedArray(buffer, Layout(memory.shape, memory.dtype, before, memory.strides))


def lend(array: StridedArray, stream: CudaStream, theirs: int | None, device: tuple[int, int], versioned: bool,
         copied: bool) -> Any:
    """A capsule of an array for work on a stream of another library."""
    stream.let_go()
    if theirs == 0 or (theirs is not None and theirs < UNORDERED):
        raise ExchangeError(f"stream {theirs} is none of CUDA's", device=stream.id, hint="1 is its default stream")
    consumer = LEGACY if theirs is None else theirs
    if consumer != UNORDERED:
        stream.lead(consumer)
    memory = memory_of(array, device)
    loan = Loan(array.buffer, stream, consumer)  # type: ignore[arg-type]
    return lent(memory, loan, versioned, COPIED if copied else READ_ONLY)


def memory_of(array: StridedArray, device: tuple[int, int]) -> StridedMemory:
    """The place of an array."""
    layout = array.layout
    address = array.buffer.address + layout.offset  # type: ignore[attr-defined]
    return StridedMemory(address, layout.shape, layout.strides, layout.dtype, device)


def interface_of(array: StridedArray, stream: CudaStream, device: tuple[int, int]) -> Mapping[str, Any] | None:
    """`__cuda_array_interface__` of an array; None for a dtype that it has no name for."""
    memory = memory_of(array, device)
    if memory.dtype == bfloat16:
        return None
    return {"shape": memory.shape, "typestr": memory.dtype.str, "data": (memory.address, True), "version": 3,
            "strides": None if array.layout.contiguous else memory.strides, "stream": stream.handle}
