"""Programs on the host: an array is made once for all commands that see the same memory in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from nnc_core.base.layout import Layout, packed_strides
from nnc_core.base.record import Record
from nnc_core.device import Buffer, Device, PythonProgram, Stream
from nnc_cpu.backends import NumpyKernel
from nnc_cpu.memory import Array

_View: TypeAlias = tuple[int, tuple[int, ...], Any, int, tuple[int, ...]]
"""The number of an array, then how it lies in a buffer: shape, dtype, offset, strides."""


class NumpyProgram(PythonProgram):
    """Arrays that see a buffer are made when it is put into its slot, for all commands that see it in the same way."""

    def __init__(self, device: Device, records: Sequence[Record], slots: Sequence[Buffer | None],
                 stream: Stream) -> None:
        super().__init__(device, records, [None] * len(slots), stream)
        numbers: dict[tuple[int, Layout], int] = {}
        self._operands = [self._numbered(call, numbers) for call in self.calls]
        self._views: dict[int, list[_View]] = {}
        for (slot, layout), number in numbers.items():
            self._views.setdefault(slot, []).append(_view(number, layout))
        self._arrays: list[Array | None] = [None] * len(numbers)
        for slot, buffer in enumerate(slots):
            self.bind(slot, buffer)

    def _numbered(self, call: Any, numbers: dict[tuple[int, Layout], int]) -> list[int] | None:
        """The numbers of a command's arrays; None for a kernel that takes buffers."""
        kernel = call.kernel
        if not isinstance(kernel, NumpyKernel) or (kernel.scratch and len(call.slots) == len(kernel.layouts)):
            return None  # scratch arrays of no size have no memory
        return [numbers.setdefault(x, len(numbers)) for x in zip(
            [*call.slots[: len(kernel.layouts)], *call.slots[len(kernel.layouts) :] * len(kernel.scratch)],
            [*kernel.layouts, *kernel.scratch], strict=True)]

    def bind(self, slot: int, buffer: Any) -> None:
        if self.slots[slot] is buffer:
            return
        self.slots[slot] = buffer
        self.stale.update(self.users.get(slot, ()))
        for number, shape, dtype, offset, strides in self._views.get(slot, ()):
            self._arrays[number] = np.ndarray(shape, dtype, buffer, offset, strides)

    def release(self, slot: int) -> None:
        super().release(slot)
        for number, *_ in self._views.get(slot, ()):
            self._arrays[number] = None

    def _set_arguments(self, n: int) -> None:
        operands = self._operands[n]
        if operands is None:
            super()._set_arguments(n)
            return
        self.launches[n] = self.calls[n].kernel.bind_arrays(map(self._arrays.__getitem__, operands))
        self.stale.discard(n)


def _view(number: int, layout: Layout) -> _View:
    """As `memory.array_in` sees it."""
    strides = packed_strides(layout.shape, layout.dtype.itemsize) if layout.contiguous else layout.strides
    return number, layout.shape, layout.dtype, layout.offset, strides
