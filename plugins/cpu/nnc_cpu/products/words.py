"""Elements of memory as words of several steps, for products that go through some steps at once (`dots.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.base.dtype import SIGNED, DType
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import stored
from nnc_cpu.products.dots import Dots
from nnc_cpu.products.writing import loaded, moved, product, smaller, total

TOP_BITS = "-2139062144"
"""0x80808080 as int32: int8 and these are the numbers that are 128 greater, unsigned."""


class WordMaker:
    """Writes loads of elements of a dtype, and words that are made of them."""

    def __init__(self, function: FunctionWriter, dots: Dots, dtype: DType, lanes: int) -> None:
        self.function, self.dots, self.dtype, self.lanes = function, dots, dtype, lanes
        self.type = stored(dtype)

    def along(self, place: Register, mask: Register | None = None) -> Register:
        """A vector of words of elements that lie side by side."""
        return self._words(self.elements(place, self.lanes * self.dots.steps, mask))

    def across(self, rows: Sequence[Register]) -> Register:
        """Words of which each has an element of each of several vectors."""
        f, values = self.function, list(rows)
        while len(values) > 1:
            values = [self._wider(f.shuffled(a, b, _alternating(a.lanes)))
                      for a, b in zip(values[::2], values[1::2], strict=True)]
        return values[0]

    def one(self, place: Register, first: Register, length: Register) -> Register:
        """A word of elements that lie side by side, as a scalar; zeros stand for those past the end."""
        f, word = self.function, integer(0, 32)
        for step in range(self.dots.steps):
            number, inside = self.within(total(f, first, integer(step)), length)
            element = self.elements(moved(f, place, self.type, number), 1, None)
            known = f.let(f"select {inside}, {element}, {self.dots.element} 0", self.dots.element)
            wide = f.let(f"zext {known} to i32", "i32")
            word = f.let(f"or {word}, {f.let(f'shl {wide}, {8 * self.dots.bytes * step}', 'i32').name}", "i32")
        return word

    def within(self, number: Register, length: Register) -> tuple[Register, Register]:
        """The number of a step, or the last one's if it is past the end, and whether it is not."""
        f = self.function
        inside = f.let(f"icmp slt {number}, {length.name}", "i1")
        return smaller(f, number, f.let(f"sub {length}, 1", "i64")), inside

    def elements(self, place: Register, count: int, mask: Register | None) -> Register:
        """Elements of memory as words have them."""
        f = self.function
        if count == 1:
            raw = f.let(f"load {self.type}, {place}", self.type)
        else:
            raw = loaded(f, place, self.type, count, self.dtype.itemsize, mask)
        if self.type == self.dots.element:
            return raw
        word = "sext" if self.dtype in SIGNED else "zext"
        return f.let(f"{word} {raw} to {raw._replace(type=self.dots.element).full}", self.dots.element, count)

    def first_steps(self, word: Register) -> list[Register]:
        """The numbers of the steps of a word."""
        f, steps = self.function, self.dots.steps
        first = product(f, word, integer(steps))
        return [total(f, first, integer(n)) for n in range(steps)]

    def _words(self, elements: Register) -> Register:
        return self.function.let(f"bitcast {elements} to <{self.lanes} x i32>", "i32", self.lanes)

    def _wider(self, elements: Register) -> Register:
        """Neighbours as one element of twice the width."""
        bits, count = 2 * int(elements.type[1:]), elements.lanes // 2
        return self.function.let(f"bitcast {elements} to <{count} x i{bits}>", f"i{bits}", count)


def word_count(f: FunctionWriter, length: Register, dots: Dots) -> Register:
    """Words of so many steps, the last of which may not be full."""
    return f.let(f"lshr {total(f, length, integer(dots.steps - 1))}, {dots.steps.bit_length() - 1}", "i64")


def _alternating(lanes: int) -> list[int]:
    return [n + half * lanes for n in range(lanes) for half in (0, 1)]
