"""Panels given to arrays: lanes become rows."""

from __future__ import annotations

from nnc_cpu.attention.kind import AttentionKind
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import held
from nnc_cpu.products.panels import turned
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
    total,
)

SIGNATURE: Signature = (("panel", "ptr"), ("size", "i64"), ("skipped", "i64"), ("last", "i64"), ("count", "i64"),
                        ("target", "ptr"), ("row", "i64"))
"""`panel`: the rows of tiles, of which `size` are wanted; the last tile begins at row `last`, and its first `skipped`
rows are those of the tile before; `count` lanes are given to rows of `target` that lie `row` elements apart."""


class GiveWriter:
    """Writes the function that turns a panel and gives it away."""

    def __init__(self, kind: AttentionKind, declared: dict[str, None]) -> None:
        self.kind, self.function = kind, FunctionWriter(declared)
        self.type, self.size, self.lanes = held(kind.dtype), kind.dtype.itemsize, kind.lanes

    def text(self, name: str) -> str:
        f = self.function
        self.panel, self.wanted, skipped, last, self.count, self.target, self.row = parameters(SIGNATURE)
        self.close(skipped, last)
        with f.loop(integer(0), integer(self.kind.vectors)) as v, f.loop(integer(0), self.wanted, self.lanes) as first:
            self.square(v, first)
        return function_text(f, name, SIGNATURE)

    def vector_at(self, row: Register, v: Register) -> Register:
        f = self.function
        start = moved(f, self.panel, self.type, product(f, row, integer(self.kind.width)))
        return moved(f, start, self.type, v, self.lanes)

    def read(self, place: Register) -> Register:
        return loaded(self.function, place, self.type, self.lanes, self.size, None)

    def close(self, skipped: Register, last: Register) -> None:
        """Move the rows of the last tile to where they follow those before."""
        f = self.function
        with f.where(f.let(f"icmp sgt {skipped}, 0", "i1")), f.loop(last, self.wanted) as row:
            for v in map(integer, range(self.kind.vectors)):
                value = self.read(self.vector_at(total(f, row, skipped), v))
                store(f, value, self.vector_at(row, v), self.size, None)

    def square(self, v: Register, first: Register) -> None:
        """As many rows as there are lanes, for the queries or keys of one vector."""
        f = self.function
        rows = [self.read(self.vector_at(total(f, first, integer(n)), v)) for n in range(self.lanes)]
        inside = lanes_below(f, difference(f, self.wanted, first), self.lanes)
        lane = product(f, v, integer(self.lanes))
        start = moved(f, self.target, self.type, first)
        left = smaller(f, difference(f, self.count, lane), integer(self.lanes))
        for n, value in enumerate(turned(f, rows)):
            with f.where(f.let(f"icmp sgt {left}, {n}", "i1")):
                place = moved(f, start, self.type, product(f, total(f, lane, integer(n)), self.row))
                store(f, value, place, self.size, inside)
