"""The function that finds the order of rows: one pass makes words and counts their digits, then each digit sorts."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.products.parts import SIGNATURE
from nnc_cpu.products.writing import function_text, moved, parameters, product, smaller, split, total
from nnc_cpu.sorting.rows import DIGITS, RowKind, RowNumbers

NAME = "rows"
_POSITION = 32
"""Bits of a word below its rank, which say where its element lies, if there is one word for both."""


def render(kind: RowKind, declared: dict[str, None]) -> str:
    """The text of the function."""
    return RowWriter(kind, declared).text()


class RowWriter:
    """Writes the function.  In a task's scratch memory lie the counts of each digit, then words twice: those of here
    are copied there in the order of a digit."""

    def __init__(self, kind: RowKind, declared: dict[str, None]) -> None:
        self.kind, self.function = kind, FunctionWriter(declared)

    def text(self) -> str:
        f, kind = self.function, self.kind
        arguments, numbers, begin, end = parameters(SIGNATURE)
        n = {name: f.let(f"load i64, {moved(f, numbers, 'i64', integer(k))}", "i64")
             for k, name in enumerate(RowNumbers._fields)}
        x, out, area = [f.let(f"load ptr, {moved(f, arguments, 'ptr', integer(k))}", "ptr") for k in range(3)]
        x, out = moved(f, x, "i8", n["x_offset"]), moved(f, out, "i8", n["out_offset"])
        self.length, self.step = n["length"], n["inner"]
        self.here, self.there, self.begun = f.variable("ptr"), f.variable("ptr"), f.variable("i64")
        with f.loop(begin, end) as task:
            self.counts = moved(f, area, "i8", product(f, task, n["room"]))
            words = moved(f, self.counts, "i64", integer(kind.passes * DIGITS))
            first = product(f, task, n["each"])
            with f.loop(first, smaller(f, total(f, first, n["each"]), n["rows"])) as row:
                f.set(self.here, words)
                f.set(self.there, moved(f, words, "i64", product(f, self.length, integer(kind.words))))
                inside, outside = split(f, row, self.step)
                base = total(f, product(f, outside, product(f, self.length, self.step)), inside)
                self.make_words(moved(f, x, kind.element_type, base))
                for digit in range(kind.passes):
                    self.sort_by(digit)
                self.give(moved(f, out, "i64", base))
        return function_text(f, NAME, SIGNATURE, linkage="")

    # ---- words
    def make_words(self, x: Register) -> None:
        """Words of a row, in order of their positions, and how often each of their digits comes."""
        f, words = self.function, self.pointer(self.here)
        with f.loop(integer(0), integer(self.kind.passes * DIGITS)) as place:
            f.line(f"store i64 0, {moved(f, self.counts, 'i64', place)}")
        with f.loop(integer(0), self.length) as k:
            word = self.rank(moved(f, x, self.kind.element_type, product(f, k, self.step)))
            if self.kind.words == 1:
                word = f.let(f"or {f.let(f'shl {word}, {_POSITION}', 'i64')}, {k.name}", "i64")
            self.store([word, k], words, k)
            for digit in range(self.kind.passes):
                self.next_of(self.count(digit, word))

    def rank(self, place: Register) -> Register:
        """A number that rises with the elements: zeros of either sign are equal, and NaN above all."""
        f, kind = self.function, self.kind
        x = f.let(f"load {kind.element_type}, {place}", kind.element_type)
        sign = 1 << kind.bits - 1
        if kind.element_type in ("float", "double"):
            x = self.of_float(x, sign)
        if kind.signed:
            x = f.let(f"xor {x}, {sign}", x.type)
        if kind.descending:
            x = f.let(f"xor {x}, {2 * sign - 1}", x.type)
        return x if kind.bits == 64 else f.let(f"zext {x} to i64", "i64")

    def of_float(self, x: Register, sign: int) -> Register:
        """An integer that rises with a number, whose bits do but for those below zero."""
        f, type = self.function, f"i{self.kind.bits}"
        bits = f.let(f"bitcast {f.let(f'fadd {x}, 0.0', x.type)} to {type}", type)  # -0.0 + 0.0 is 0.0
        below = f.let(f"and {f.let(f'ashr {bits}, {self.kind.bits - 1}', type)}, {sign - 1}", type)
        risen = f.let(f"xor {bits}, {below.name}", type)
        unordered = f.let(f"fcmp uno {x}, {x.name}", "i1")
        return f.let(f"select {unordered}, {integer(sign - 1, self.kind.bits)}, {risen}", type)

    def give(self, out: Register) -> None:
        """The positions of the words in their order."""
        f, words = self.function, self.pointer(self.here)
        with f.loop(integer(0), self.length) as k:
            position = self.load(words, k)[-1]
            if self.kind.words == 1:
                position = f.let(f"and {position}, {2**_POSITION - 1}", "i64")
            f.line(f"store {position}, {moved(f, out, 'i64', product(f, k, self.step))}")

    # ---- digits
    def sort_by(self, digit: int) -> None:
        """Copy words there, unless all have the same digit; there is here then."""
        f, here = self.function, self.pointer(self.here)
        among = f.let(f"load i64, {self.count(digit, self.load(here, integer(0))[0])}", "i64")
        with f.where(f.let(f"icmp ne {among}, {self.length.name}", "i1")):
            f.set(self.begun, integer(0))
            with f.loop(integer(digit * DIGITS), integer((digit + 1) * DIGITS)) as number:
                place = moved(f, self.counts, "i64", number)
                before = f.get(self.begun, "i64")
                f.set(self.begun, total(f, before, f.let(f"load i64, {place}", "i64")))
                f.line(f"store {before}, {place}")
            there = self.pointer(self.there)
            with f.loop(integer(0), self.length) as k:
                words = self.load(here, k)
                self.store(words, there, self.next_of(self.count(digit, words[0])))
            f.set(self.here, there)
            f.set(self.there, here)

    def count(self, digit: int, word: Register) -> Register:
        """The place of the count of a word's digit."""
        f = self.function
        shift = 8 * digit + (_POSITION if self.kind.words == 1 else 0)
        value = f.let(f"and {f.let(f'lshr {word}, {shift}', 'i64')}, {DIGITS - 1}", "i64")
        return moved(f, self.counts, "i64", total(f, value, integer(digit * DIGITS)))

    def next_of(self, place: Register) -> Register:
        """A count, which is one more from now on."""
        f = self.function
        found = f.let(f"load i64, {place}", "i64")
        f.line(f"store {total(f, found, integer(1))}, {place}")
        return found

    def places(self, words: Register, k: Register) -> list[Register]:
        """The places of an element's words."""
        f, each = self.function, self.kind.words
        first = moved(f, words, "i64", product(f, k, integer(each)))
        return [first, *[moved(f, first, "i64", integer(n)) for n in range(1, each)]]

    def load(self, words: Register, k: Register) -> list[Register]:
        f = self.function
        return [f.let(f"load i64, {place}", "i64") for place in self.places(words, k)]

    def store(self, values: Sequence[Register], words: Register, k: Register) -> None:
        """Store an element's words; of a rank and a position the first is all if there is one word."""
        for value, place in zip(values, self.places(words, k), strict=False):
            self.function.line(f"store {value}, {place}")

    def pointer(self, variable: Register) -> Register:
        return self.function.get(variable, "ptr")
