"""Calls whose arrays a program takes by their addresses: nothing is bound, and nothing has to be let go."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nnc_core.base.layout import Layout
from nnc_core.device import Array, Buffer, Device, Program
from nnc_core.engine.program_slots import Slots


class ByAddress:
    """The arrays of a call in the order in which a program is lent them: inputs, then fresh memory for outputs.

    A caller has arrays for inputs of these names, some of which the program may not read, and wants these outputs.
    """

    def __init__(self, slots: Slots, device: Device, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.device, self.sizes = device, tuple(slots.fresh.values())
        self.slots = (*slots.inputs.values(), *slots.fresh)
        order = [inputs.index(name) for name in slots.inputs]
        self._order = None if order == [*range(len(inputs))] else order
        """Which array is which input of the program; None where they are the same."""
        others = {slot for slot, _ in slots.outputs.values()}.difference(self.slots)
        self._kept = tuple(others)
        """Slots of outputs that the program has by itself, such as constants."""
        number = {slot: n for n, slot in enumerate((*self.slots, *self._kept))}
        of_input = dict(zip(slots.inputs.values(), slots.layouts, strict=True))
        wanted = [slots.outputs[name] for name in outputs]
        self._outputs = [(number[slot], self._maker(layout, of_input.get(slot))) for slot, layout in wanted]

    def _maker(self, layout: Layout, of_input: Layout | None) -> Callable[[Array], Array] | None:
        """Makes an output of what was lent for its slot; None where it is that array."""
        if of_input == layout:
            return None
        array_in, buffer_of = self.device.arrays(layout), self.device.buffer_of
        return array_in if of_input is None else lambda array: array_in(buffer_of(array))

    def lend(self, program: Program, arrays: Sequence[Array]) -> list[Array | Buffer]:
        """Let the program have a call's arrays.  Gives what it has got, which the caller keeps until the run ends."""
        given = arrays if self._order is None else [arrays[i] for i in self._order]
        return program.lend([*given, *self.device.allocate_each(self.sizes)])

    def results(self, program: Program, lent: list[Array | Buffer]) -> list[Array]:
        """The outputs, when the run has ended."""
        for slot in self._kept:
            lent.append(program.buffer(slot))
        return [lent[n] if make is None else make(lent[n]) for n, make in self._outputs]
