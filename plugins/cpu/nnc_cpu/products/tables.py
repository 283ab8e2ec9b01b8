"""Addresses of the elements of A that tiles go along, for each block of steps."""

from __future__ import annotations

from collections.abc import Mapping

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.writing import difference, moved, product, smaller, total

ROW_LANES = 8
"""Rows whose addresses are found at once."""


class TableWriter:
    """Writes the addresses of an ordinary matrix."""

    def __init__(self, kind: Kind, function: FunctionWriter, type: str, numbers: Mapping[str, Register],
                 table: Register) -> None:
        self.kind, self.function, self.type = kind, function, type
        self.numbers, self.table = numbers, table

    def begin(self, a: Register, first_row: Register, count: Register, last: Register) -> None:
        """Note where a task begins: A, its first row, a number of rows, and the place on the last axis of batches."""
        self.a, self.first_row = a, first_row

    def rows(self, segment: Register, segments: Register, step: Register, count: Register) -> None:
        """The addresses of `count` rows at a step; past the end the last row's."""
        f = self.function
        start = moved(f, self.a, self.type, step)
        last = difference(f, self.numbers["rows"], integer(1))
        with f.loop(integer(0), count) as row:
            number = smaller(f, total(f, self.first_row, row), last)
            self.note(row, moved(f, start, self.type, product(f, number, self.numbers["a_step"])))

    def columns(self, step: Register, length: Register) -> None:
        """The addresses of the columns of `length` steps, at the task's first row."""
        f = self.function
        start = moved(f, self.a, self.type, self.first_row)
        with f.loop(integer(0), length) as k:
            self.note(k, moved(f, start, self.type, product(f, total(f, step, k), self.numbers["a_step"])))

    def note(self, place: Register, address: Register) -> None:
        self.function.line(f"store {address}, {moved(self.function, self.table, 'ptr', place)}")
