"""Transforms of rows, one after another, as matrices: columns in lanes, then rows in lanes."""

from __future__ import annotations

from typing import NamedTuple

from nnc_cpu.fourier.chain import numbers_of, words_of
from nnc_cpu.fourier.driver import TransformWriter
from nnc_cpu.fourier.factors import VECTOR
from nnc_cpu.fourier.problem import FourierKind, FourierProblem
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import held
from nnc_cpu.products.panels import turned
from nnc_cpu.products.writing import (
    Signature,
    difference,
    function_text,
    loaded,
    moved,
    parameters,
    product,
    split,
    store,
)

TURN: Signature = (("matrix", "ptr"), ("room", "ptr"))
COPY: Signature = (("source", "ptr"), ("source_step", "i64"), ("target", "ptr"), ("target_step", "i64"),
                   ("count", "i64"), ("words", "i64"))


class Parts(NamedTuple):
    """Numbers of the parts of a slot: two rooms, the matrix, a copy of a row, and one whose elements are joined."""

    rooms: int
    matrix: int
    copied: int
    joined: int


def parts_of(kind: FourierKind) -> Parts:
    height, width = _padded(kind.factors.height, kind.lanes), _padded(kind.factors.width, kind.lanes)
    odd = kind.way != "fft" and not kind.in_pairs
    copied = 2 * kind.points if odd else max(numbers_of(kind)) if (kind.x, kind.y) != ("rows", "rows") else 0
    return Parts(4 * kind.lanes * max(height, width), 2 * height * width, copied,
                 2 * kind.length if odd or kind.way == "irfft" else 0)


class RowByRowWriter(TransformWriter):
    """Writes the function.  The matrix in between lies in blocks of columns, row by row, real and imaginary parts."""

    @classmethod
    def slot_numbers(cls, kind: FourierKind) -> int:
        return sum(parts_of(kind))

    @classmethod
    def tasks(cls, problem: FourierProblem) -> int:
        return problem.outer * problem.rows.length

    def text(self) -> str:
        return super().text() + _turn_text(self.kind, self.function.declared) + _copy_text(self.kind)

    def rooms(self) -> None:
        parts, factors = parts_of(self.kind), self.kind.factors
        self.height, self.width = factors.height, factors.width
        self.both = self.room(0), self.room(parts.rooms // 2)
        self.matrix, self.copied = self.room(parts.rooms), self.room(parts.rooms + parts.matrix)
        self.joined = self.room(parts.rooms + parts.matrix + parts.copied)

    def task(self, task: Register) -> None:
        row, outer = split(self.function, task, self.numbers["rows"])
        x, y = self.row(row, outer)
        self.transform_columns(self.source(x))
        kind, pairs = self.kind, f"step{len(self.chain.steps) - 1}"
        if kind.way == "fft":
            self.end(y, 2)
        elif kind.way == "irfft":
            self.end(y, 1, 1 if kind.in_pairs else 2)
        elif kind.in_pairs:
            self.end(y, 2, ending=pairs)
        else:
            self.transform_rows(self.copied)
            target = y if kind.y == "rows" else self.joined
            self.call(pairs, self.copied, target)
            self.give(target, y, 2, 2)

    def source(self, x: Register) -> Register:
        """Complex numbers side by side, made of what a row has."""
        kind, pairs = self.kind, f"step{len(self.chain.steps) - 1}"
        if kind.way == "rfft" and not kind.in_pairs:
            zeros = integer(2 * kind.points * kind.dtype.itemsize)
            self.function.call_void("llvm.memset.p0.i64", self.joined, integer(0, 8), zeros, Register("false", "i1"))
            self.copy(x, self.numbers["x_step"], self.joined, integer(2), kind.points, 1)
            return self.joined
        if kind.x != "rows":
            words = words_of(kind)[0]
            self.copy(x, self.numbers["x_step"], self.copied, integer(words), numbers_of(kind)[0], words)
            x = self.copied
        if kind.way == "irfft":
            self.call(pairs, x, self.joined)
        return self.joined if kind.way == "irfft" else x

    def end(self, y: Register, words: int, step: int = 0, ending: str = "") -> None:
        """Transform rows to where they stay, or are copied from: elements of so many numbers, `step` apart."""
        step = step or words
        target = y if self.kind.y == "rows" and step == words else self.copied
        self.transform_rows(target)
        if ending:
            self.call(ending, target, target)
        self.give(target, y, words, step)

    def give(self, source: Register, y: Register, words: int, step: int) -> None:
        """Copy a row, unless it is there."""
        if source is not y:
            self.copy(source, integer(step), y, self.numbers["y_step"], numbers_of(self.kind)[1], words)

    def transform_columns(self, x: Register) -> None:
        """From a row to the matrix."""
        f, height = self.function, _padded(self.height, self.lanes)
        steps = [f"step{n}" for n in range(self.chain.columns)]
        with f.loop(integer(0), integer(self.width), self.lanes) as column:
            by = product(f, column, integer(2))
            factors, far = self.factors_of(column)
            block = self.at(self.matrix, product(f, by, integer(height)))
            left = difference(f, integer(self.width), column)
            self.run(steps, self.at(x, by), block, 2 * self.width, left, factors, far)

    def factors_of(self, column: Register) -> tuple[Register, Register]:
        """Where the roots of a block of columns begin, and those that they are multiplied by."""
        f, size = self.function, integer(2 * self.height)
        if not self.kind.factors.by_products:
            return self.at(self.factors, product(f, column, size)), self.far
        near = f.let(f"urem {column}, {VECTOR}", "i64")
        group = f.let(f"udiv {column}, {VECTOR}", "i64")
        return self.at(self.factors, product(f, near, size)), self.at(self.far, product(f, group, size))

    def transform_rows(self, y: Register) -> None:
        """From the matrix to a row, in which columns come first."""
        f = self.function
        end = len(self.chain.steps) - (self.kind.way != "fft")
        steps = [f"step{n}" for n in range(self.chain.columns, end)]
        with f.loop(integer(0), integer(self.height), self.lanes) as row:
            by = product(f, row, integer(2))
            f.line(f"call void @turn({self.at(self.matrix, product(f, by, integer(self.lanes)))}, {self.both[1]})")
            left = difference(f, integer(self.height), row)
            self.run(steps, self.both[1], self.at(y, by), 2 * self.height, left)

    def run(self, steps: list[str], source: Register, target: Register, step: int, left: Register,
            factors: Register | None = None, far: Register | None = None) -> None:
        """Steps one after another: what is in between lies in one room or the other, in turns."""
        for n, name in enumerate(steps):
            to = target if n == len(steps) - 1 else self.both[n % 2]
            self.call(name, source, to, step, step, left, factors, far)
            source = to

    def copy(self, source: Register, source_step: Register, target: Register, target_step: Register, count: int,
             words: int) -> None:
        """Copy a row, so many numbers of elements that are so many each."""
        operands = (source, source_step, target, target_step, integer(count // words), integer(words))
        self.function.line(f"call void @copy({', '.join(map(str, operands))})")


def _padded(length: int, lanes: int) -> int:
    return -(-length // lanes) * lanes


def _turn_text(kind: FourierKind, declared: dict[str, None]) -> str:
    """The function that takes as many rows of the matrix as there are lanes to a room, with a row in each lane."""
    f, lanes, type, size = FunctionWriter(declared), kind.lanes, held(kind.dtype), kind.dtype.itemsize
    matrix, room = parameters(TURN)
    block_size = integer(2 * _padded(kind.factors.height, lanes))
    with f.loop(integer(0), integer(kind.factors.width), lanes) as column:
        block = moved(f, matrix, type, product(f, column, block_size))
        target = moved(f, room, type, column, 2 * lanes)
        for part in (0, 1):
            read = [loaded(f, moved(f, block, type, integer(2 * n + part), lanes), type, lanes, size, None)
                    for n in range(lanes)]
            for n, value in enumerate(turned(f, read)):
                store(f, value, moved(f, target, type, integer(2 * n + part), lanes), size, None)
    return function_text(f, "turn", TURN)


def _copy_text(kind: FourierKind) -> str:
    """The function that copies a row."""
    f, type = FunctionWriter({}), held(kind.dtype)
    source, source_step, target, target_step, count, words = parameters(COPY)
    with f.loop(integer(0), count) as n:
        here, there = (moved(f, array, type, product(f, n, step)) for array, step in
                       ((source, source_step), (target, target_step)))
        with f.loop(integer(0), words) as part:
            value = f.let(f"load {type}, {moved(f, here, type, part)}, align {kind.dtype.itemsize}", type)
            f.line(f"store {value}, {moved(f, there, type, part)}, align {kind.dtype.itemsize}")
    return function_text(f, "copy", COPY)
