"""Rows that lie one behind another: taken to scratch memory with a row in each lane, and given back from there.

Real and imaginary parts of neighbours alternate in a row, and so do the vectors of scratch memory: to turn a row of
complex numbers is to turn one of twice as many real ones, and rows of real numbers are taken as complex ones.
"""

from __future__ import annotations

from typing import NamedTuple

from nnc_core.base.dtype import DType
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import held
from nnc_cpu.products.panels import turned
from nnc_cpu.products.writing import (
    Signature,
    difference,
    either,
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

SIGNATURE: Signature = (("array", "ptr"), ("row", "i64"), ("step", "i64"), ("left", "i64"), ("room", "ptr"))
"""`row`: numbers from one row to the next; `step`: from one element to the next, where they are apart; `left`: rows
that there are."""


class TurnedRows(NamedTuple):
    """Rows of an array: so many numbers, of which `words` belong to an element; `apart`: elements have gaps."""

    numbers: int
    words: int
    apart: bool
    real: bool = False
    """The numbers are real parts: imaginary ones are beside them in scratch memory alone."""


class RowsWriter:
    """Writes the functions that take rows and give them."""

    def __init__(self, rows: TurnedRows, dtype: DType, lanes: int, declared: dict[str, None]) -> None:
        self.rows, self.lanes, self.function = rows, lanes, FunctionWriter(declared)
        self.type, self.size = held(dtype), dtype.itemsize
        self.array, self.row, self.step, self.left, self.room = parameters(SIGNATURE)
        self.whole = 0 if rows.apart else rows.numbers // lanes * lanes

    # ---- places
    def in_room(self, number: Register) -> Register:
        return moved(self.function, self.room, self.type, number, self.lanes * (2 if self.rows.real else 1))

    def lane(self, n: Register) -> Register:
        """The address of a row."""
        return moved(self.function, self.array, self.type, product(self.function, n, self.row))

    def number(self, row: Register, n: Register) -> Register:
        """The address of a number of a row."""
        f, words = self.function, integer(self.rows.words)
        if not self.rows.apart:
            return moved(f, row, self.type, n)
        element, part = f.let(f"udiv {n}, {words.name}", "i64"), f.let(f"urem {n}, {words.name}", "i64")
        return moved(f, row, self.type, total(f, product(f, element, self.step), part))

    def mask(self, count: int) -> Register | None:
        return None if count == self.lanes else lanes_below(self.function, integer(count), self.lanes)

    # ---- taking
    def take(self, name: str) -> str:
        """The function that fills the room; lanes without a row have that of the last."""
        f = self.function
        last = difference(f, self.left, integer(1))
        rows = [self.lane(smaller(f, integer(n), last)) for n in range(self.lanes)]
        if self.rows.apart:
            with f.loop(integer(0), integer(self.rows.numbers)) as n:
                self._take_one(rows, n)
        else:
            with f.loop(integer(0), integer(self.whole), self.lanes) as n:
                self._take_square(rows, n, self.lanes)
            if self.whole < self.rows.numbers:
                self._take_square(rows, integer(self.whole), self.rows.numbers - self.whole)
        return function_text(f, name, SIGNATURE)

    def _take_one(self, rows: list[Register], n: Register) -> None:
        f = self.function
        target = self.in_room(n)
        for lane, row in enumerate(rows):
            value = f.let(f"load {self.type}, {self.number(row, n)}, align {self.size}", self.type)
            f.line(f"store {value}, {moved(f, target, self.type, integer(lane))}, align {self.size}")
        self._without_imaginary(target)

    def _take_square(self, rows: list[Register], first: Register, count: int) -> None:
        f, mask = self.function, self.mask(count)
        read = [loaded(f, self.number(row, first), self.type, self.lanes, self.size, mask) for row in rows]
        for k, value in enumerate(turned(f, read)[:count]):
            target = self.in_room(total(f, first, integer(k)))
            store(f, value, target, self.size, None)
            self._without_imaginary(target)

    def _without_imaginary(self, target: Register) -> None:
        if self.rows.real:
            zeros = Register("zeroinitializer", self.type, self.lanes)
            beside = moved(self.function, target, self.type, integer(1), self.lanes)
            store(self.function, zeros, beside, self.size, None)

    # ---- giving
    def give(self, name: str) -> str:
        """The function that empties the room."""
        f = self.function
        if self.rows.apart:
            with f.loop(integer(0), self.left) as lane, f.loop(integer(0), integer(self.rows.numbers)) as n:
                self._give_one(lane, n)
        else:
            square = f.variable(self.type, self.lanes, self.lanes)
            with f.loop(integer(0), integer(self.whole), self.lanes) as n:
                self._give_square(n, self.lanes, square)
            if self.whole < self.rows.numbers:
                self._give_square(integer(self.whole), self.rows.numbers - self.whole, square)
        return function_text(f, name, SIGNATURE)

    def _give_one(self, lane: Register, n: Register) -> None:
        f = self.function
        source = moved(f, self.in_room(n), self.type, lane)
        value = f.let(f"load {self.type}, {source}, align {self.size}", self.type)
        f.line(f"store {value}, {self.number(self.lane(lane), n)}, align {self.size}")

    def _give_square(self, first: Register, count: int, square: Register) -> None:
        """Straight to the rows, where there is one for each lane."""
        f, mask = self.function, self.mask(count)
        read = [loaded(f, self.in_room(total(f, first, integer(k))), self.type, self.lanes, self.size, None)
                for k in range(count)]
        read += [Register("zeroinitializer", self.type, self.lanes)] * (self.lanes - count)
        rows = turned(f, read)

        def all_rows() -> None:
            for lane, value in enumerate(rows):
                store(f, value, self.number(self.lane(integer(lane)), first), self.size, mask)

        def some() -> None:
            for lane, value in enumerate(rows):
                f.set(moved(f, square, self.type, integer(lane), self.lanes), value)
            with f.loop(integer(0), self.left) as n:
                value = f.get(moved(f, square, self.type, n, self.lanes), self.type, self.lanes)
                store(f, value, self.number(self.lane(n), first), self.size, mask)

        either(f, f.let(f"icmp sge {self.left}, {self.lanes}", "i1"), all_rows, some)
