"""Packing B as words: some steps of a panel of columns, side by side, and what A's elements being moved adds."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.products.dots import added
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.panels import SIGNATURE, turned
from nnc_cpu.products.words import TOP_BITS, WordMaker, word_count
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


class WordPanelWriter:
    """Writes the function that packs a panel of some vectors: `SIGNATURE` of `panels.py`, with words of steps."""

    def __init__(self, kind: Kind, vectors: int, declared: dict[str, None]) -> None:
        assert kind.dots is not None
        self.kind, self.vectors, self.lanes, self.dots = kind, vectors, kind.lanes, kind.dots
        self.function = FunctionWriter(declared)
        self.words = WordMaker(self.function, kind.dots, kind.b_dtype or kind.dtype, kind.lanes)
        self.b, self.step, self.column, self.length, self.columns, self.panel = parameters(SIGNATURE)

    def text(self, name: str) -> str:
        f = self.function
        self.whole = f.let(f"lshr {self.length}, {self.dots.steps.bit_length() - 1}", "i64")
        self.count = word_count(f, self.length, self.dots)
        (self.rows if self.kind.right == "rows" else self.turned)()
        return function_text(f, name, SIGNATURE)

    # ---- rows are contiguous
    def rows(self) -> None:
        f = self.function
        width = self.vectors * self.lanes
        masks = [lanes_below(f, difference(f, self.columns, integer(v * self.lanes)), self.lanes)
                 for v in range(self.vectors)]
        full = f.let(f"icmp sge {self.columns}, {width}", "i1")
        for condition, given in ((full, [None] * self.vectors), (f.let(f"xor {full}, true", "i1"), masks)):
            with f.where(condition), f.loop(integer(0), self.whole) as word:
                self.across(word, [(step, None) for step in self.words.first_steps(word)], given)
        with f.loop(self.whole, self.count) as word:
            within = [self.words.within(step, self.length) for step in self.words.first_steps(word)]
            self.across(word, within, masks)

    def across(self, word: Register, steps: Sequence[tuple[Register, Register | None]],
               masks: Sequence[Register | None]) -> None:
        """Write the words of some steps; those for which a condition does not hold count as zeros."""
        f, target = self.function, self.place(word)
        places = [moved(f, self.b, self.words.type, product(f, step, self.step)) for step, _ in steps]
        for v, mask in enumerate(masks):
            rows = []
            for place, (_, inside) in zip(places, steps, strict=True):
                row = self.words.elements(moved(f, place, self.words.type, integer(v), self.lanes), self.lanes, mask)
                nothing = Register("zeroinitializer", row.type, row.lanes)
                rows.append(row if inside is None else
                            f.let(f"select {inside}, {row}, {nothing}", row.type, row.lanes))
            store(f, self.words.across(rows), moved(f, target, "i32", integer(v), self.lanes), 4, None)

    # ---- columns are contiguous
    def turned(self) -> None:
        """Squares of words, turned in registers; the last words one by one."""
        f, lanes, words = self.function, self.lanes, self.words
        squares = f.let(f"and {self.whole}, {-lanes}", "i64")
        with f.loop(integer(0), integer(self.vectors)) as v:
            first = product(f, v, integer(lanes))
            columns = [self.start(total(f, first, integer(n))) for n in range(lanes)]
            with f.loop(integer(0), squares, lanes) as word:
                step = product(f, word, integer(self.dots.steps))
                read = [words.along(moved(f, column, words.type, step)) for column in columns]
                for n, value in enumerate(turned(f, read)):
                    place = moved(f, self.place(total(f, word, integer(n))), "i32", first)
                    store(f, value, place, 4, None)
        with f.loop(squares, self.count) as word, f.loop(integer(0), integer(self.vectors * lanes)) as column:
            step = product(f, word, integer(self.dots.steps))
            value = words.one(self.start(column), step, self.length)
            f.line(f"store {value}, {moved(f, self.place(word), 'i32', column)}")

    def start(self, column: Register) -> Register:
        """The first element of a column; past the end that of the last."""
        f = self.function
        number = smaller(f, column, difference(f, self.columns, integer(1)))
        return moved(f, self.b, self.words.type, product(f, number, self.column))

    def place(self, word: Register) -> Register:
        f = self.function
        return moved(f, self.panel, "i32", product(f, word, integer(self.vectors * self.lanes)))


EXCESS: Signature = (("panel", "ptr"), ("words", "i64"), ("step", "i64"), ("excess", "ptr"))
"""`words` of a panel, `step` of them from one to the next."""


def excess_text(name: str, kind: Kind, vectors: int, declared: dict[str, None]) -> str:
    """The function that finds how much too large sums are because the elements of A are 128 greater than they are."""
    assert kind.dots is not None
    f = FunctionWriter(declared)
    panel, words, step, excess = parameters(EXCESS)
    sums = [f.variable("i32", kind.lanes) for _ in range(vectors)]
    for variable in sums:
        f.set(variable, Register("zeroinitializer", "i32", kind.lanes))
    left = f.spread(Register(TOP_BITS, "i32"), kind.lanes)
    with f.loop(integer(0), words) as word:
        row = moved(f, panel, "i32", product(f, word, step))
        for v, variable in enumerate(sums):
            right = loaded(f, moved(f, row, "i32", integer(v), kind.lanes), "i32", kind.lanes, 4, None)
            f.set(variable, added(f, kind.dots, f.get(variable, "i32", kind.lanes), left, right))
    for v, variable in enumerate(sums):
        store(f, f.get(variable, "i32", kind.lanes), moved(f, excess, "i32", integer(v), kind.lanes), 4, None)
    return function_text(f, name, EXCESS)
