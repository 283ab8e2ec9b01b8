"""Tiles that look ahead: they send for B of the block of steps that comes next, line by line.

It lies where no prefetcher of a processor foresees it: the steps of a panel may be pages apart.  Lines that lie side by
side are sent for one after the other, and each once: asking for other pages at each step, or again for what is on its
way, takes a third of a tile's time.
"""

from __future__ import annotations

from collections.abc import Mapping

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import stored
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.tile import SIGNATURE, TileWriter
from nnc_cpu.products.writing import Signature, difference, moved, prefetch, product, store, total

AHEAD: Signature = (("ahead", "ptr"), ("ahead_step", "i64"), ("ahead_shift", "i64"), ("panel", "ptr"))
"""At one of 1 << `ahead_shift` steps a tile sends for a line behind `ahead`, as many side by side as `line_bits` says,
then those `ahead_step` elements of B further on; `panel`: where one that packs puts what it reads of B."""


def line_bits(kind: Kind) -> int:
    """The logarithm of lines that lie side by side in a block of steps: of a step, or of a column."""
    lines = kind.vectors if kind.right != "columns" else kind.most_steps // kind.lanes
    return (lines - 1).bit_length()


class AheadTileWriter(TileWriter):
    """Writes the function of a tile that sends for what comes next."""

    @property
    def signature(self) -> Signature:
        return (*SIGNATURE, *AHEAD)

    def begin_steps(self, k: Register, count: int) -> None:
        with self.each_of(k, count, self.others[2]) as line:
            self.send_for(line)

    def send_for(self, line: Register) -> None:
        """Send for the line with this number."""
        f, bits = self.function, line_bits(self.kind)
        ahead, step, *_ = self.others
        by = product(f, f.let(f"lshr {line}, {bits}", "i64"), step)
        beside = product(f, f.let(f"and {line}, {(1 << bits) - 1}", "i64"), integer(self.kind.lanes))
        prefetch(f, moved(f, ahead, stored(self.kind.dtype), total(f, by, beside)))


class PackingTileWriter(AheadTileWriter):
    """Writes the function of a block's first tile, which packs B while multiply-adders are busy anyhow."""

    together = 1

    def steps(self) -> None:
        f = self.function
        self.packed = f.variable("ptr")
        f.set(self.packed, self.others[-1])
        super().steps()

    def right_at(self, place: Register) -> list[Register]:
        f, right = self.function, super().right_at(place)
        panel = f.get(self.packed, "ptr")
        for v, vector in enumerate(right):
            store(f, vector, moved(f, panel, self.type, integer(v), self.lanes), self.size, None)
        f.set(self.packed, moved(f, panel, self.type, integer(self.vectors), self.lanes))
        return right


class AheadWriter:
    """Writes the arguments of tiles that look ahead: B of the block that comes next, shared out among them."""

    def __init__(self, kind: Kind, function: FunctionWriter, numbers: Mapping[str, Register]) -> None:
        self.kind, self.function, self.numbers = kind, function, numbers

    def begin(self, b: Register, ends: Register, length: Register, panel: Register, last: Register,
              panels: Register) -> None:
        """Note what comes after a block of `length` steps from `b` on: the same steps of the next panel of the strip;
        after the `last` of its `panels` those behind it, of the first; where it `ends` the sum, the next strip."""
        f = self.function
        further = self.at(b, product(f, length, self.numbers["b_step"]))
        if self.kind.strips:
            before = product(f, difference(f, panels, integer(1)), self.numbers["b_panel"])
            further = self.at(further, difference(f, integer(0), before))
        beside = self.at(panel, self.numbers["b_panel"])
        self.following = f.let(f"select {ends}, {beside}, {further}", "ptr")
        if self.kind.strips:
            self.following = f.let(f"select {last}, {self.following}, {self.at(b, self.numbers['b_panel'])}", "ptr")

    def of_tile(self, row: Register, nowhere: Register) -> list[Register]:
        """`AHEAD` for the tile at a row; when all has been sent for, the tiles that are left ask for what is there."""
        f = self.function
        numbers, shift = self.numbers, self.numbers["ahead_shift"]
        lines = f.let(f"lshr {numbers['part']}, {shift.name}", "i64")
        first = product(f, f.let(f"udiv {row}, {self.kind.rows}", "i64"), lines)
        number = f.let(f"lshr {first}, {line_bits(self.kind)}", "i64")
        if self.kind.right == "columns":
            step, most = numbers["b_column"], integer(self.kind.width)
        else:
            step, most = numbers["b_step"], numbers["part"]
        left = f.let(f"icmp slt {number}, {most.name}", "i1")
        place = moved(f, self.following, stored(self.kind.dtype), product(f, number, step))
        place = f.let(f"select {left}, {place}, {nowhere}", "ptr")
        return [place, f.let(f"select {left}, {step}, i64 0", "i64"), shift]

    def at(self, place: Register, by: Register) -> Register:
        return moved(self.function, place, stored(self.kind.dtype), by)
