"""Elements of A as words of steps: what a table of addresses says is copied to a room, and found there by tiles."""

from __future__ import annotations

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.products.converted import SIGNATURE
from nnc_cpu.products.dots import is_moved
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.words import TOP_BITS, WordMaker, word_count
from nnc_cpu.products.writing import (
    difference,
    function_text,
    lanes_below,
    moved,
    parameters,
    product,
    store,
)


class WordRowsWriter:
    """Writes the function that makes words of what a table says (`SIGNATURE` of `converted.py`).

    Where the table has columns of A, it has an address for each word afterwards, not for each step.
    """

    def __init__(self, kind: Kind, declared: dict[str, None]) -> None:
        assert kind.dots is not None
        self.kind, self.lanes, self.dots = kind, kind.lanes, kind.dots
        self.function = FunctionWriter(declared)
        self.words = WordMaker(self.function, kind.dots, kind.dtype, kind.lanes)
        self.table, self.entries, self.first, self.length, self.room = parameters(SIGNATURE)

    def text(self, name: str) -> str:
        (self.columns if self.kind.left == "columns" else self.rows)()
        return function_text(self.function, name, SIGNATURE)

    def rows(self) -> None:
        f, lanes, steps = self.function, self.lanes, self.dots.steps
        count = word_count(f, self.length, self.dots)
        most = lanes * steps
        whole = f.let(f"and {self.length}, {-most}", "i64")
        with f.loop(integer(0), self.entries) as n:
            entry = moved(f, self.table, "ptr", n)
            source = self.source(entry)
            target = moved(f, self.room, "i32", product(f, n, count))
            for begin, end in ((integer(0), whole), (whole, self.length)):
                with f.loop(begin, end, most) as k:
                    mask = None if end is whole else lanes_below(f, difference(f, self.length, k), most)
                    value = self.words.along(moved(f, source, self.words.type, k), mask)
                    word = f.let(f"lshr {k}, {steps.bit_length() - 1}", "i64")
                    self.write(value, moved(f, target, "i32", word))
            f.line(f"store {target}, {entry}")

    def columns(self) -> None:
        f, lanes = self.function, self.lanes
        whole = f.let(f"and {self.length}, {-lanes}", "i64")
        with f.loop(integer(0), word_count(f, self.entries, self.dots)) as word:
            within = [self.words.within(step, self.entries) for step in self.words.first_steps(word)]
            sources = [self.source(moved(f, self.table, "ptr", step)) for step, _ in within]
            target = moved(f, self.room, "i32", product(f, word, self.length))
            for begin, end in ((integer(0), whole), (whole, self.length)):
                with f.loop(begin, end, lanes) as row:
                    mask = None if end is whole else lanes_below(f, difference(f, self.length, row), lanes)
                    rows = []
                    for source, (_, inside) in zip(sources, within, strict=True):
                        x = self.words.elements(moved(f, source, self.words.type, row), lanes, mask)
                        nothing = Register("zeroinitializer", x.type, x.lanes)
                        rows.append(f.let(f"select {inside}, {x}, {nothing}", x.type, x.lanes))
                    self.write(self.words.across(rows), moved(f, target, "i32", row))
            start = moved(f, target, "i32", difference(f, integer(0), self.first))
            f.line(f"store {start}, {moved(f, self.table, 'ptr', word)}")

    def source(self, entry: Register) -> Register:
        f = self.function
        return moved(f, f.let(f"load ptr, {entry}", "ptr"), self.words.type, self.first)

    def write(self, value: Register, place: Register) -> None:
        f = self.function
        if is_moved(self.dots, self.kind.dtype):
            value = f.let(f"xor {value}, {f.spread(Register(TOP_BITS, 'i32'), self.lanes).name}", "i32", self.lanes)
        store(f, value, place, 4, None)
