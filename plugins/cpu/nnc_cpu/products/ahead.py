"""Tiles that look ahead: they send for B of the block of steps that comes next, line by line.

It lies where no prefetcher of a processor foresees it: the steps of a panel may be pages apart.
"""

from __future__ import annotations

from collections.abc import Mapping

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import stored
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.tile import SIGNATURE, TileWriter
from nnc_cpu.products.writing import Signature, difference, moved, prefetch, product, store

AHEAD: Signature = (("ahead", "ptr"), ("ahead_step", "i64"), ("ahead_shift", "i64"), ("panel", "ptr"))
"""At step k a tile sends for what lies k >> `ahead_shift` times `ahead_step` elements of B behind `ahead`; `panel`:
where one that packs puts what it reads of B."""


class AheadTileWriter(TileWriter):
    """Writes the function of a tile that sends for what comes next."""

    @property
    def signature(self) -> Signature:
        return (*SIGNATURE, *AHEAD)

    def begin_step(self, k: Register) -> None:
        f = self.function
        ahead, step, shift, *_ = self.others
        by = product(f, f.let(f"lshr {k}, {shift.name}", "i64"), step)
        prefetch(f, moved(f, ahead, stored(self.kind.dtype), by))


class PackingTileWriter(AheadTileWriter):
    """Writes the function of a block's first tile, which packs B while multiply-adders are busy anyhow."""

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

    def begin(self, b: Register, ends: Register, length: Register, panel: Register) -> None:
        """Note what comes after a block of `length` steps from `b` on: those behind it; where it `ends` the sum, the
        next panel."""
        f = self.function
        further = self.at(b, product(f, length, self.numbers["b_step"]))
        beside = self.at(panel, self.numbers["b_panel"])
        self.following = f.let(f"select {ends}, {beside}, {further}", "ptr")

    def of_tile(self, row: Register, nowhere: Register) -> list[Register]:
        """`AHEAD` for the tile at a row; when all has been sent for, the tiles that are left ask for what is there."""
        f = self.function
        tile = f.let(f"udiv {row}, {self.kind.rows}", "i64")
        place, step, left = self.by_columns(tile) if self.kind.right == "columns" else self.by_rows(tile)
        return [f.let(f"select {left}, {place}, {nowhere}", "ptr"), f.let(f"select {left}, {step}, i64 0", "i64"),
                self.numbers["ahead_shift"]]

    def by_columns(self, tile: Register) -> tuple[Register, Register, Register]:
        """As many steps as a line has, of all columns."""
        f = self.function
        first = product(f, tile, integer(self.kind.lanes))
        return self.at(self.following, first), self.numbers["b_column"], self.below(first, self.numbers["part"])

    def by_rows(self, tile: Register) -> tuple[Register, Register, Register]:
        """One vector of a step, of some of the steps."""
        f, numbers, shift = self.function, self.numbers, self.numbers["ahead_shift"].name
        vector = f.let(f"lshr {tile}, {shift}", "i64")
        which = difference(f, tile, f.let(f"shl {vector}, {shift}", "i64"))
        first = product(f, which, f.let(f"lshr {numbers['part']}, {shift}", "i64"))
        place = self.at(self.following, product(f, first, numbers["b_step"]))
        place = self.at(place, product(f, vector, integer(self.kind.lanes)))
        return place, numbers["b_step"], self.below(vector, integer(self.kind.vectors))

    def below(self, x: Register, most: Register) -> Register:
        return self.function.let(f"icmp slt {x}, {most.name}", "i1")

    def at(self, place: Register, by: Register) -> Register:
        return moved(self.function, place, stored(self.kind.dtype), by)
