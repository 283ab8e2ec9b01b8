"""Tiles: what lies across the lanes in memory is read along, and turned in registers.

A tile holds the elements that a load touches at `width` points along the lanes' axis and as many along another axis, on
which they are neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.base.loopnest import Access
from nnc_cpu.llvm.ir import Register, integer
from nnc_cpu.llvm.logic import stored
from nnc_cpu.llvm.places import plus, times
from nnc_cpu.llvm.points import PointWriter


class TileReader:
    """Reads the tiles of some accesses, all along the same axis; `axis` has `length` points, None if that is open."""

    def __init__(self, points: PointWriter, accesses: Sequence[Access], axis: int, length: int | None,
                 lengths: Sequence[int]) -> None:
        self.points, self.function, self.width = points, points.function, points.width
        self.axis, self.lengths, self.accesses = axis, lengths, accesses
        self.always_full = length is not None and length % self.width == 0
        for access in accesses:
            points.tiles[access] = self.function.variable(self.element(access), self.width, self.width)

    def element(self, access: Access) -> str:
        return stored(self.points.nest.arguments[access.argument].dtype)

    def read(self, along: Register, left: Register) -> None:
        """Fill the tiles with so many points along their axis; there are so many left along that of the lanes."""
        f, lanes = self.function, integer(self.width)
        if self.points.mask is not None:
            self.read_parts(along, left)
        elif self.always_full:
            self.read_whole()
        else:
            full = f.let(f"icmp eq {along}, {self.width}", "i1")
            with f.where(full):
                self.read_whole()
            with f.where(self.points.scalars.negated(full)):
                self.read_parts(along, lanes)

    def read_whole(self) -> None:
        for access in self.accesses:
            first, step = self.corner(access)
            rows = [self.row(access, plus(self.function, first, integer(step * lane))) for lane in range(self.width)]
            for place, row in enumerate(self.turned(rows)):
                self.function.set(self.points.tile_row(access, integer(place)), row)

    def read_parts(self, along: Register, lanes: Register) -> None:
        """Element by element, zeros beside them."""
        f = self.function
        for access in self.accesses:
            first, step = self.corner(access)
            type = self.element(access)
            for place in range(self.width):
                f.set(self.points.tile_row(access, integer(place)), Register("zeroinitializer", type, self.width))
            with f.loop(integer(0), lanes) as lane, f.loop(integer(0), along) as row:
                index = plus(f, plus(f, first, times(f, lane, step)), row)
                source = self.address(access, index)
                target = f.let(f"getelementptr {type}, {self.points.tile_row(access, row)}, {lane}", "ptr")
                f.set(target, f.get(source, type))

    def corner(self, access: Access) -> tuple[Register, int]:
        """The first element, and how far it is from lane to lane."""
        place = self.points.places.place(access, self.lengths, self.points.index)
        assert place.further is None and place.valid is None, "only plain accesses have tiles"
        return place.first, place.step

    def row(self, access: Access, first: Register) -> Register:
        type, dtype = self.element(access), self.points.nest.arguments[access.argument].dtype
        pointer, full = self.address(access, first), Register("", type, self.width).full
        return self.function.let(f"load {full}, {pointer}, align {dtype.itemsize}", type, self.width)

    def address(self, access: Access, index: Register) -> Register:
        pointer = self.points.pointers[access.argument]
        return self.function.let(f"getelementptr {self.element(access)}, {pointer}, {index}", "ptr")

    def turned(self, rows: list[Register]) -> list[Register]:
        """The columns of a square of rows: quarters change places, then quarters of quarters."""
        distance = self.width // 2
        while distance:
            for k in range(self.width):
                if not k & distance:
                    rows[k], rows[k + distance] = self.exchanged(rows[k], rows[k + distance], distance)
            distance //= 2
        return rows

    def exchanged(self, a: Register, b: Register, distance: int) -> tuple[Register, Register]:
        lanes = range(self.width)
        upper = [lane + self.width - distance if lane & distance else lane for lane in lanes]
        lower = [lane + self.width if lane & distance else lane + distance for lane in lanes]
        return self.function.shuffled(a, b, upper), self.function.shuffled(a, b, lower)
