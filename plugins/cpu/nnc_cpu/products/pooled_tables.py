"""Addresses of what windows of images see, where results are pooled: pooling window by pooling window."""

from __future__ import annotations

from collections.abc import Mapping

from nnc_core.operator.products.problem import PoolAxis
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.numbers import SPATIAL
from nnc_cpu.products.window_tables import BEYOND, WindowTableWriter
from nnc_cpu.products.writing import moved, product, split, total


class PooledTableWriter(WindowTableWriter):
    """Writes the addresses of the pixels that windows see.  What lies between the elements of a pooling window is the
    same for all of these, and is found once."""

    def __init__(self, kind: Kind, function: FunctionWriter, type: str, numbers: Mapping[str, Register],
                 table: Register) -> None:
        super().__init__(kind, function, type, numbers, table)
        f, self.height = function, kind.ending.height
        pool = [{name: numbers[f"pool_{name}{n}"] for name in PoolAxis._fields} for n in range(SPATIAL)]
        self.further = [f.variable("i64", 1, self.height) for _ in range(SPATIAL)]
        """Pixels on each axis from what the first element of a pooling window sees to what each of them sees."""
        self.moves = f.variable("i64", 1, self.height)
        """The bytes between them."""
        with f.loop(integer(0), integer(self.height)) as element:
            rest, elements = element, integer(0)
            for n in reversed(range(SPATIAL)):
                place, rest = split(f, rest, pool[n]["elements"])
                pixels = product(f, place, pool[n]["apart"])
                f.line(f"store {pixels}, {moved(f, self.further[n], 'i64', element)}")
                elements = total(f, elements, product(f, pixels, self.axes[n]["pixel"]))
            f.line(f"store {self.bytes_of(elements)}, {moved(f, self.moves, 'i64', element)}")

    def note_windows(self, count: Register) -> None:
        f, height = self.function, self.height
        self.at(f.let(f"udiv {self.first_row}, {height}", "i64"))
        with f.loop(integer(0), count, height) as row:
            places = [self.sighted(n) for n in range(SPATIAL)]
            base = self.bytes_of(self.pixel(places))
            places[0] = self.unless_behind(row, places[0])
            with f.loop(integer(0), integer(height)) as element:
                at = total(f, row, element)
                for known, noted, first in zip((*self.further, self.moves), (*self.places, self.bases), (*places, base),
                                               strict=True):
                    more = f.let(f"load i64, {moved(f, known, 'i64', element)}", "i64")
                    f.line(f"store {total(f, first, more)}, {moved(f, noted, 'i64', at)}")
            self.advance()

    def unless_behind(self, row: Register, place: Register) -> Register:
        """A place on the first axis, or behind the last row one that is in no image."""
        f = self.function
        past = f.let(f"icmp sge {total(f, self.first_row, row)}, {self.numbers['rows'].name}", "i1")
        return f.let(f"select {past}, i64 {BEYOND}, {place}", "i64")
