"""Notes of checks that fail, written beside the way that kernels take when none does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nnc_core.base.loopnest import Instruction
from nnc_cpu.llvm.ir import Register, integer
from nnc_cpu.llvm.places import NOTHING, plus

if TYPE_CHECKING:
    from nnc_cpu.llvm.points import PointWriter


class NoteWriter:
    """Writes the notes of the points at hand, in a stage that sees axes of some lengths."""

    def __init__(self, points: PointWriter, lengths: Sequence[int]) -> None:
        self.points, self.function = points, points.function
        self.lengths = [points.lengths.get(axis, integer(length)) for axis, length in enumerate(lengths)]

    def write(self, instruction: Instruction) -> None:
        f, points = self.function, self.points
        wrong, value = [points.values[n] for n in instruction.operands]
        if wrong.lanes == 1:  # the first lane always has a point
            with f.where(wrong):
                self.call(instruction, NOTHING, value if value.lanes == 1 else f.lane(value, 0))
            return
        lanes, value = points.width, f.spread(value, points.width)
        wrong = wrong if points.mask is None else points.scalars.both(wrong, points.mask)
        with f.where(f.any(wrong)), f.loop(NOTHING, integer(lanes)) as lane, f.where(
                f.let(f"extractelement {wrong}, {lane}", "i1")):
            self.call(instruction, lane, f.let(f"extractelement {value}, {lane}", "i64"))

    def call(self, instruction: Instruction, lane: Register, value: Register) -> None:
        """Note it, unless what is noted comes before it."""
        assert instruction.access is not None
        note = self.points.pointers[instruction.access.argument]
        self.function.call_void("nnc_note_s64", note, integer(int(instruction.literal or 0)), self.place(lane), value)

    def place(self, lane: Register) -> Register:
        """The place of a point in row-major order."""
        f, places, total = self.function, self.points.places, NOTHING
        for axis, length in enumerate(self.lengths):
            position = plus(f, places.axes[axis], lane) if axis == places.vector else places.axes[axis]
            if total != NOTHING:
                total = f.let(f"mul {total}, {length.name}", "i64")
            total = plus(f, total, position)
        return total
