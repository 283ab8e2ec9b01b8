"""Packing B: some steps of a panel of columns, side by side."""

from __future__ import annotations

from collections.abc import Sequence

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
    total,
)

SIGNATURE: Signature = (("b", "ptr"), ("step", "i64"), ("column", "i64"), ("length", "i64"), ("columns", "i64"),
                        ("panel", "ptr"))
"""`b`: the first element; elements from one step to the next and from one column to the next, one of which is 1;
`length` steps, `columns` columns.  What lies behind these in the panel's vectors may be anything."""


class PanelWriter:
    """Writes the function that packs a panel of some vectors."""

    def __init__(self, kind: Kind, vectors: int, halves: bool, declared: dict[str, None]) -> None:
        self.kind, self.vectors, self.lanes = kind, vectors, kind.lanes
        self.type, self.size = held(kind.dtype), kind.wide.itemsize
        self.source, self.source_size = stored(kind.dtype), kind.dtype.itemsize
        self.function = FunctionWriter(declared)
        self.scalars = ScalarWriter(self.function, halves)
        self.b, self.step, self.column, self.length, self.columns, self.panel = parameters(SIGNATURE)

    def text(self, name: str) -> str:
        if self.kind.right == "rows":
            self.rows()
        else:
            self.turned()
        return function_text(self.function, name, SIGNATURE)

    # ---- rows are contiguous
    def rows(self) -> None:
        f = self.function
        width = self.vectors * self.lanes
        full = f.let(f"icmp sge {self.columns}, {width}", "i1")
        with f.where(full):
            self.copied([None] * self.vectors)
        with f.where(f.let(f"xor {full}, true", "i1")):
            self.copied([lanes_below(f, difference(f, self.columns, integer(v * self.lanes)), self.lanes)
                         for v in range(self.vectors)])

    def copied(self, masks: Sequence[Register | None]) -> None:
        f = self.function
        with f.loop(integer(0), self.length) as k:
            source = moved(f, self.b, self.source, product(f, k, self.step))
            target = moved(f, self.panel, self.type, product(f, k, integer(self.vectors * self.lanes)))
            for v, mask in enumerate(masks):
                value = self.loaded(moved(f, source, self.source, integer(v), self.lanes), mask)
                store(f, value, moved(f, target, self.type, integer(v), self.lanes), self.size, None)

    # ---- columns are contiguous
    def turned(self) -> None:
        """Squares of steps and columns, turned in registers; the last steps one by one."""
        f, lanes = self.function, self.lanes
        whole = f.let(f"and {self.length}, {-lanes}", "i64")
        last = difference(f, self.columns, integer(1))
        with f.loop(integer(0), integer(self.vectors)) as v:
            first = product(f, v, integer(lanes))
            columns = [moved(f, self.b, self.source, product(f, smaller(f, total(f, first, integer(n)), last),
                                                           self.column)) for n in range(lanes)]
            panel = moved(f, self.panel, self.type, first)
            with f.loop(integer(0), whole, lanes) as k:
                read = [self.loaded(moved(f, column, self.source, k), None) for column in columns]
                for n, value in enumerate(turned(f, read)):
                    store(f, value, self.place(panel, total(f, k, integer(n))), self.size, None)
            with f.loop(whole, self.length) as k:
                target = self.place(panel, k)
                for n, column in enumerate(columns):
                    raw = f.let(f"load {self.source}, {moved(f, column, self.source, k)}", self.source)
                    store(f, self.converted(raw), moved(f, target, self.type, integer(n)), self.size, None)

    def loaded(self, place: Register, mask: Register | None) -> Register:
        """A vector of B in the dtype of sums."""
        raw = loaded(self.function, place, self.source, self.lanes, self.source_size, mask)
        return self.converted(raw)

    def converted(self, raw: Register) -> Register:
        """Elements of B in the dtype of sums."""
        return self.scalars.loaded(raw, self.kind.dtype)

    def place(self, panel: Register, k: Register) -> Register:
        f = self.function
        return moved(f, panel, self.type, product(f, k, integer(self.vectors * self.lanes)))


def turned(f: FunctionWriter, rows: Sequence[Register]) -> list[Register]:
    """The columns of a square that vectors are the rows of."""
    values, lanes = list(rows), len(rows)
    half = lanes // 2
    while half:
        for i in range(lanes):
            if not i & half:
                values[i], values[i | half] = _exchanged(f, values[i], values[i | half], half)
        half //= 2
    return values


def _exchanged(f: FunctionWriter, a: Register, b: Register, half: int) -> tuple[Register, Register]:
    """Two rows `half` apart, with those lanes of each other that lie as far apart."""
    lanes = range(a.lanes)
    upper = [k if not k & half else a.lanes + (k ^ half) for k in lanes]
    lower = [k | half if not k & half else a.lanes + k for k in lanes]
    first, second = (f.let(f"shufflevector {a}, {b}, <{a.lanes} x i32> <{', '.join([f'i32 {k}' for k in which])}>",
                           a.type, a.lanes) for which in (upper, lower))
    return first, second
