"""Elements of A that are converted to the dtype of sums, or copied side by side, before tiles go along them."""

from __future__ import annotations

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import held, stored
from nnc_cpu.llvm.scalars import ScalarWriter
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.writing import (
    Signature,
    difference,
    function_text,
    lanes_below,
    loaded,
    moved,
    parameters,
    product,
    smaller,
    store,
)

SIGNATURE: Signature = (("table", "ptr"), ("entries", "i64"), ("first", "i64"), ("length", "i64"), ("room", "ptr"))
"""A table of addresses, from each of which `length` elements are wanted, the first of them `first` further on; they
become addresses in `room`."""


def room_size(kind: Kind) -> int:
    """Elements of the room for those of a block of steps; an entry may be filled up to whole vectors."""
    return (kind.most_rows + 2 * kind.rows + kind.lanes) * (kind.most_words + kind.lanes)


class ConvertedWriter:
    """Writes the function that converts what a table says."""

    def __init__(self, kind: Kind, halves: bool, declared: dict[str, None]) -> None:
        self.kind, self.lanes = kind, kind.lanes
        self.function = FunctionWriter(declared)
        self.scalars = ScalarWriter(self.function, halves)

    def text(self, name: str) -> str:
        f, type = self.function, held(self.kind.dtype)
        table, entries, first, length, room = parameters(SIGNATURE)
        with f.loop(integer(0), entries) as n:
            entry = moved(f, table, "ptr", n)
            source = moved(f, f.let(f"load ptr, {entry}", "ptr"), stored(self.kind.dtype), first)
            # copies of columns lie an odd number of lines apart: each set of a first cache takes some of them
            apart = integer(self.kind.most_rows + self.kind.lanes) if self.kind.copies else length
            target = moved(f, room, type, product(f, n, apart))
            with f.loop(integer(0), length, self.lanes) as k:
                self.vector(source, target, k, lanes_below(f, difference(f, length, k), self.lanes))
            zero = difference(f, integer(0), first)
            f.line(f"store {moved(f, target, type, zero)}, {entry}")
        return function_text(f, name, SIGNATURE)

    def vector(self, source: Register, target: Register, k: Register, mask: Register) -> None:
        f, dtype = self.function, self.kind.dtype
        raw = loaded(f, moved(f, source, stored(dtype), k), stored(dtype), self.lanes, dtype.itemsize, mask)
        place = moved(f, target, held(dtype), k)
        store(f, self.scalars.loaded(raw, dtype), place, self.kind.wide.itemsize, mask)


def wanted(f: FunctionWriter, kind: Kind, rows: Register) -> tuple[Register, Register]:
    """The first row of columns of A that tiles of a block want, which may lie before the block's, and the number."""
    first = smaller(f, integer(0), difference(f, rows, integer(kind.rows)))
    return first, difference(f, rows, first)
