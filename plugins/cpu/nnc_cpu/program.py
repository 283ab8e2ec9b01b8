"""Programs on the host: an array is made once for all commands that see the same memory in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from nnc_core.base.layout import Layout
from nnc_core.base.record import Call, Record
from nnc_core.device import Buffer, Device, Launch, PythonProgram, Stream
from nnc_cpu.backends import NumpyKernel
from nnc_cpu.memory import Array, same_place, strides_of
from nnc_cpu.nests import machine_of

if TYPE_CHECKING:
    from nnc_cpu.native.lent import Lent
    from nnc_cpu.native.way import NativeWay


class NumpyProgram(PythonProgram):
    """Arrays are known when the program is made; a call makes those whose buffers are new to it."""

    def __init__(self, device: Device, records: Sequence[Record], slots: Sequence[Buffer | None],
                 stream: Stream) -> None:
        super().__init__(device, records, slots, stream)
        numbers: dict[tuple[int, Layout], int] = {}
        self._operands = [self._numbered(call, numbers) for call in self.calls]
        self._made: list[Array | None] = [None] * len(numbers)
        self._how = [_way(slot, layout) for slot, layout in numbers]
        self._seen_by: dict[int, list[int]] = {}
        for (slot, _), number in numbers.items():
            self._seen_by.setdefault(slot, []).append(number)
        self.native: NativeWay | None = None
        self._lent: Lent | None = None
        """What lends arrays to slots that nothing is bound to."""
        self.machines = [call.kernel for call in self.calls if hasattr(call.kernel, "ready")]
        """Kernels with machine code, or that may have some later."""

    def run(self) -> None:
        if self.machines:
            self._go_native()
        super().run()

    def _go_native(self) -> None:
        """Leave the records to machine code, once there is some of a kernel."""
        if any([machine_of(kernel) is not None for kernel in self.machines]):
            way: type[NativeWay] = import_module("nnc_cpu.native.way").NativeWay
            self.way = self.native = way(self)
            self.machines = []

    def lends(self, slots: Sequence[int]) -> bool:
        return self._lent is not None or self._may_lend(slots)

    def lend(self, arrays: list[Any]) -> list[Any]:
        assert self._lent is not None
        return self._lent.lend(arrays)

    def _may_lend(self, slots: Sequence[int]) -> bool:
        """Empty the slots, where only machine code looks at them."""
        if self.native is None or not self.native.is_straight:
            return False
        for slot in slots:
            self.noted.pop(slot, None)
            self.put(slot, None)
        self._lent = self.native.lent(slots)
        return True

    def buffer(self, slot: int) -> Any:
        return self.slots[slot] if self.native is None else self.native.slots.content(self, slot)

    def _numbered(self, call: Any, numbers: dict[tuple[int, Layout], int]) -> list[int] | None:
        """The numbers of a command's arrays; None for a kernel that takes buffers."""
        kernel = call.kernel
        if not isinstance(kernel, NumpyKernel) or (kernel.scratch and len(call.slots) == len(kernel.layouts)):
            return None  # scratch arrays of no size have no memory
        return [numbers.setdefault(x, len(numbers)) for x in zip(
            [*call.slots[: len(kernel.layouts)], *call.slots[len(kernel.layouts) :] * len(kernel.scratch)],
            [*kernel.layouts, *kernel.scratch], strict=True)]

    def bind(self, slot: int, buffer: Any) -> None:
        old = self.slots[slot]
        if old is not buffer and not (old.__class__ is np.ndarray and same_place(old, buffer)):
            super().bind(slot, buffer)

    def put(self, slot: int, buffer: Any) -> None:
        if self._lent is not None and buffer is not None and slot in self._lent.slots:
            self._lent = None
        super().put(slot, buffer)
        for number in self._seen_by.get(slot, ()):
            self._made[number] = None

    def make_launch(self, n: int, call: Call) -> Launch:
        operands = self._operands[n]
        if operands is None:
            return super().make_launch(n, call)
        made = self._made
        arrays = [made[i] if made[i] is not None else self._make(i) for i in operands]
        return call.kernel.bind_arrays(arrays)  # type: ignore[no-any-return]

    def _make(self, number: int) -> Array:
        slot, shape, dtype, offset, strides = self._how[number]
        array = self._made[number] = np.ndarray(shape, dtype, self.slots[slot], offset, strides)
        return array


def _way(slot: int, layout: Layout) -> tuple[int, tuple[int, ...], Any, int, tuple[int, ...]]:
    """As `memory.array_in` sees it."""
    return slot, layout.shape, layout.dtype, layout.offset, strides_of(layout)
