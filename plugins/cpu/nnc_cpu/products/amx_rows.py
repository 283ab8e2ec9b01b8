"""Elements of A as rows of words for AMX: all words of a row of a block of steps side by side, in a room."""

from __future__ import annotations

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.products.amx import ROWS
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.panels import turned
from nnc_cpu.products.words import WordMaker, word_count
from nnc_cpu.products.writing import (
    Signature,
    difference,
    function_text,
    lanes_below,
    moved,
    parameters,
    product,
    smaller,
    store,
    total,
)

SIGNATURE: Signature = (("table", "ptr"), ("rows", "i64"), ("noted", "i64"), ("segments", "i64"), ("length", "i64"),
                        ("room", "ptr"), ("step", "i64"))
"""A table of the addresses of `noted` rows for each of `segments` of `length` steps, of which `rows` are wanted; or, if
columns of A are contiguous, of the columns of `length` steps.  `step`: words from a row in the room to the next."""


class AmxRowsWriter:
    """Writes the function that fills the room; behind the words of a row there are zeros to the end of its tile."""

    def __init__(self, kind: Kind, declared: dict[str, None]) -> None:
        assert kind.dots is not None
        self.kind, self.lanes, self.dots = kind, kind.lanes, kind.dots
        self.function = FunctionWriter(declared)
        self.words = WordMaker(self.function, kind.dots, kind.dtype, kind.lanes)
        (self.table, self.count, self.noted, self.segments, self.length, self.room,
         self.step) = parameters(SIGNATURE)

    def text(self, name: str) -> str:
        (self.columns if self.kind.left == "columns" else self.rows)()
        return function_text(self.function, name, SIGNATURE)

    # ---- rows are contiguous
    def rows(self) -> None:
        f, most = self.function, self.lanes * self.dots.steps
        words = word_count(f, self.length, self.dots)
        last = f.let(f"and {product(f, words, self.segments)}, {-ROWS}", "i64")
        whole = f.let(f"and {self.length}, {-most}", "i64")
        mask = lanes_below(f, difference(f, self.length, whole), most)
        partial = f.let(f"icmp slt {whole}, {self.length.name}", "i1")
        with f.loop(integer(0), self.count) as row:
            start = moved(f, self.room, "i32", product(f, row, self.step))
            store(f, Register("zeroinitializer", "i32", self.lanes), moved(f, start, "i32", last), 4, None)
            with f.loop(integer(0), self.segments) as segment:
                entry = total(f, product(f, segment, self.noted), row)
                source = f.let(f"load ptr, {moved(f, self.table, 'ptr', entry)}", "ptr")
                target = moved(f, start, "i32", product(f, segment, words))
                with f.loop(integer(0), whole, most) as k:
                    self.copy(source, target, k, None)
                with f.where(partial):
                    self.copy(source, target, whole, mask)

    def copy(self, source: Register, target: Register, k: Register, mask: Register | None) -> None:
        """Write a vector of words; those that a mask does not have are zeros."""
        f = self.function
        value = self.words.along(moved(f, source, self.words.type, k), mask)
        word = f.let(f"lshr {k}, {self.dots.steps.bit_length() - 1}", "i64")
        store(f, value, moved(f, target, "i32", word), 4, None)

    # ---- columns are contiguous
    def columns(self) -> None:
        """Squares of words, turned in registers."""
        f = self.function
        side = ROWS * self.dots.steps
        with f.loop(integer(0), self.length, side) as step:
            there = f.let(f"icmp sle {total(f, step, integer(side))}, {self.length.name}", "i1")
            with f.loop(integer(0), self.count, ROWS) as row:
                left = difference(f, self.count, row)
                full = f.let(f"and {there}, {f.let(f'icmp sge {left}, {ROWS}', 'i1').name}", "i1")
                with f.where(full):
                    self.square(step, row, None)
                with f.where(f.let(f"xor {full}, true", "i1")):
                    self.square(step, row, lanes_below(f, left, ROWS))

    def square(self, step: Register, row: Register, mask: Register | None) -> None:
        """The words of a square; with a mask of its rows also steps past the end may be among it, which are zeros."""
        f = self.function
        columns = [self.words.across([self.column(total(f, step, integer(word * self.dots.steps + n)), row, mask)
                                      for n in range(self.dots.steps)]) for word in range(ROWS)]
        word = f.let(f"lshr {step}, {self.dots.steps.bit_length() - 1}", "i64")
        for n, value in enumerate(turned(f, columns)):
            place = total(f, product(f, total(f, row, integer(n)), self.step), word)
            store(f, value, moved(f, self.room, "i32", place), 4, None)

    def column(self, step: Register, row: Register, mask: Register | None) -> Register:
        """The elements of neighbouring rows at a step."""
        f, inside = self.function, None
        if mask is not None:
            inside = f.let(f"icmp slt {step}, {self.length.name}", "i1")
            step = smaller(f, step, difference(f, self.length, integer(1)))
        start = f.let(f"load ptr, {moved(f, self.table, 'ptr', step)}", "ptr")
        x = self.words.elements(moved(f, start, self.words.type, row), ROWS, mask)
        if inside is None:
            return x
        return f.let(f"select {inside}, {x}, {x._replace(name='zeroinitializer')}", x.type, x.lanes)
