"""Tiles that end what they have summed while it is in registers.

Where a sum has few steps, keeping it in memory and ending it from there takes as long as the steps do.
"""

from __future__ import annotations

from functools import lru_cache

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import stored
from nnc_cpu.products.ahead import AheadTileWriter
from nnc_cpu.products.ending import EndingWriter, arrays, expanded
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.tile import TileWriter
from nnc_cpu.products.writing import Signature, difference, lanes_below, moved, product

MOST = 10
"""Instructions of an ending, beside loads, stores and constants, that are written once for each vector of a tile."""


@lru_cache(maxsize=256)
def ends_at_once(kind: Kind) -> bool:
    """Tell whether tiles with all steps of their sums end these in registers: what ends them is short, and of one row
    of sums for one row of the results."""
    if kind.ending.pool is not None or kind.windows == "apart" or kind.ends_late or kind.is_amx:
        return False
    work = [x for x in expanded(kind.ending.body) if x.operation not in ("load", "store", "constant")]
    return len(work) <= MOST


class RegisterEnding(EndingWriter):
    """Writes the ending of sums that are in registers."""

    def __init__(self, kind: Kind, halves: bool, declared: dict[str, None], function: FunctionWriter) -> None:
        super().__init__(kind, halves, declared)
        self.write_into(function)
        self.value_at_hand = Register("", "")

    def sum(self, row: int, column: Register) -> Register:
        return self.scalars.loaded(self.value_at_hand, self.kind.wide)


class AtOnceTileWriter(TileWriter):
    """Writes the function of a tile that goes through all steps of its sums and ends them."""

    def __init__(self, kind: Kind, vectors: int, masked: bool, halves: bool, declared: dict[str, None]) -> None:
        super().__init__(kind, vectors, masked, declared)
        self.ending = RegisterEnding(kind, halves, declared, self.function)
        self.partial = vectors == kind.last
        """Not all lanes of the last vector may be columns."""

    @property
    def signature(self) -> Signature:
        return (*super().signature, *arrays(self.kind))

    def begin_sums(self) -> None:
        self.begin_with_nothing()
        given = self.others[-len(arrays(self.kind)):]
        self.starts, self.distances = given[::2], given[1::2]
        self.send_for_next()

    def send_for_next(self) -> None:
        """Send for what the next tile reads and writes, where that is no row that all have."""
        f, rows = self.function, range(self.kind.rows, 2 * self.kind.rows)
        for n, (x, step) in enumerate(zip(self.starts, self.distances, strict=True)):
            with f.where(f.let(f"icmp ne {step}, 0", "i1")):
                for row in rows:
                    self.ending.send_for(n, integer(row), x, step, self.vectors)

    def end_sums(self) -> None:
        f, lanes = self.function, self.lanes
        mask = self.mask
        if self.partial and mask is None:
            mask = lanes_below(f, difference(f, self.columns, integer((self.vectors - 1) * lanes)), lanes)
        for row in range(self.kind.rows):
            self.ending.starts = [Register("null", "ptr"), *[
                moved(f, x, stored(argument.dtype), product(f, integer(row), step)) for argument, x, step in zip(
                    self.ending.arguments[1:], self.starts, self.distances, strict=True)]]
            for v in range(self.vectors):
                self.ending.value_at_hand = f.get(self.totals[row, v], self.type, lanes)
                self.ending.vector(integer(v * lanes), mask if v == self.vectors - 1 else None)


class AtOnceAheadTileWriter(AtOnceTileWriter, AheadTileWriter):
    """The same of tiles that look ahead."""
