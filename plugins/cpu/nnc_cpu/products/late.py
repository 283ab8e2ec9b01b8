"""Tiles that end, between their own steps, what the tile before has summed.

Roots and quotients have one slow unit, which would have nothing to do while tiles multiply, and multipliers nothing
while it is at work.
"""

from __future__ import annotations

from nnc_cpu.llvm.ir import Register, integer
from nnc_cpu.llvm.logic import held, stored
from nnc_cpu.products.ahead import AHEAD, AheadTileWriter
from nnc_cpu.products.ending import EndingWriter, arrays
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.tile import SIGNATURE
from nnc_cpu.products.writing import Signature, difference, moved, prefetch, prefetch_to_write, product, total

LATE: Signature = (("pause", "i64"), ("before", "ptr"))
"""A vector is ended at one of 1 << `pause` steps; `before`: the sums of the tile before.  Behind these: the first
element of each operand and output of its ending, and its rows' distance."""
MOST_PAUSE = 2


class LateTileWriter(AheadTileWriter):
    """Writes the function of a tile that ends the one before: all of its rows and columns, in no fewer steps than
    vectors."""

    def __init__(self, kind: Kind, halves: bool, declared: dict[str, None]) -> None:
        super().__init__(kind, kind.vectors, False, declared)
        self.ending = EndingWriter(kind, halves, declared)
        self.ending.write_into(self.function)

    @property
    def signature(self) -> Signature:
        return (*SIGNATURE, *AHEAD, *LATE, *arrays(self.kind))

    def steps(self) -> None:
        f = self.function
        self.pause, before, *given = self.others[len(AHEAD):]
        self.starts, self.distances = [before, *given[::2]], [integer(self.kind.width), *given[1::2]]
        self.places = [f.variable("ptr") for _ in self.starts]
        for place, start in zip(self.places, self.starts, strict=True):
            f.set(place, start)
        self.vector = f.variable("i64")
        f.set(self.vector, integer(0))
        super().steps()

    def begin_steps(self, k: Register, count: int) -> None:
        super().begin_steps(k, count)
        with self.each_of(k, count, self.pause):
            self.end_next()

    def end_next(self) -> None:
        """End a vector, if any is left."""
        f = self.function
        vector = f.get(self.vector, "i64")
        with f.where(f.let(f"icmp slt {vector}, {self.kind.rows * self.kind.vectors}", "i1")):
            self.end(vector)

    def end(self, vector: Register) -> None:
        """End the vector with this number, and go on to the next."""
        f = self.function
        self.ending.starts = [f.get(place, "ptr") for place in self.places]
        self.ending.vector(integer(0), None)
        following = total(f, vector, integer(1))
        f.set(self.vector, following)
        within = f.let(f"urem {following}, {self.kind.vectors}", "i64")
        last = f.let(f"icmp eq {within}, 0", "i1")
        for n, (argument, start, place, distance) in enumerate(zip(
                self.ending.arguments, self.ending.starts, self.places, self.distances, strict=True)):
            type = stored(argument.dtype) if n else held(self.kind.wide)
            if argument.along and n:
                send = prefetch if n <= len(self.kind.ending.operands) else prefetch_to_write
                send(f, moved(f, start, type, product(f, distance, integer(self.kind.rows))))
            by = integer(self.kind.lanes if argument.along else 0)
            back = total(f, by, difference(f, distance, integer(self.kind.width if argument.along else 0)))
            f.set(place, moved(f, start, type, f.let(f"select {last}, {back}, {by}", "i64")))
