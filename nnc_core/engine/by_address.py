"""Calls whose arrays a program takes by their addresses: nothing is bound, and nothing has to be let go."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nnc_core.base.layout import Layout
from nnc_core.device import Array, Buffer, Device, Program
from nnc_core.engine.program_slots import Slots


class ByAddress:
    """The arrays of a call in the order in which a program is lent them: inputs, then fresh memory for outputs."""

    def __init__(self, slots: Slots, device: Device) -> None:
        self.device, self.inputs, self.sizes = device, tuple(slots.inputs), tuple(slots.fresh.values())
        self.slots = (*slots.inputs.values(), *slots.fresh)
        others = {slot for slot, _ in slots.outputs.values()}.difference(self.slots)
        self._kept = tuple(others)
        """Slots of outputs that the program has by itself, such as constants."""
        number = {slot: n for n, slot in enumerate((*self.slots, *self._kept))}
        of_input = dict(zip(slots.inputs.values(), slots.layouts, strict=True))
        self._outputs = [(name, number[slot], self._maker(layout, of_input.get(slot)))
                         for name, (slot, layout) in slots.outputs.items()]

    def _maker(self, layout: Layout, of_input: Layout | None) -> Callable[[Array], Array] | None:
        """Makes an output of what was lent for its slot; None where it is that array."""
        if of_input == layout:
            return None
        array_in, buffer_of = self.device.arrays(layout), self.device.buffer_of
        return array_in if of_input is None else lambda array: array_in(buffer_of(array))

    def lend(self, program: Program, given: Mapping[str, Array]) -> list[Array | Buffer]:
        """Let the program have a call's arrays.  Gives what it has got, which the caller keeps until the run ends."""
        return program.lend([*map(given.__getitem__, self.inputs), *self.device.allocate_each(self.sizes)])

    def results(self, program: Program, lent: list[Array | Buffer]) -> dict[str, Array]:
        """The outputs by name, when the run has ended."""
        for slot in self._kept:
            lent.append(program.buffer(slot))
        return {name: lent[n] if make is None else make(lent[n]) for name, n, make in self._outputs}
