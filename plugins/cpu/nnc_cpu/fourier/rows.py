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
        self.prepare(x)
        with self.function.loop(integer(0), integer(self.width), self.lanes) as column:
            self.columns(self.source(x), column)
        with self.function.loop(integer(0), integer(self.height), self.lanes) as row:
            self.rows(self.target(y), row)
        self.finish(y)

    # ---- before columns, and behind rows
    def source(self, x: Register) -> Register:
        """The place at which a row's complex numbers lie side by side."""
        if self.kind.way == "irfft" or is_widened(self.kind):
            return self.joined
        return x if self.kind.x == "rows" else self.copied

    def prepare(self, x: Register) -> None:
        """Make them of what the row has."""
        kind, step = self.kind, self.numbers["x_step"]
        if is_widened(kind):
            zeros = integer(2 * kind.points * kind.dtype.itemsize)
            self.function.call_void("llvm.memset.p0.i64", self.joined, integer(0, 8), zeros, Register("false", "i1"))
            self.copy(x, step, self.joined, integer(2), kind.points, 1)
            return
        if kind.x != "rows":
            words = words_of(kind)[0]
            self.copy(x, step, self.copied, integer(words), numbers_of(kind)[0], words)
        if kind.way == "irfft":
            self.call(self.pairs, x if kind.x == "rows" else self.copied, self.joined)

    def target(self, y: Register) -> Register:
        """That at which its complex results do."""
        odd = self.kind.way != "fft" and not self.kind.in_pairs
        return y if self.kind.y == "rows" and not odd else self.copied

    def finish(self, y: Register) -> None:
        """Make what the row has of them."""
        kind, found, words = self.kind, self.target(y), words_of(self.kind)[1]
        step = 2 if kind.way == "irfft" and not kind.in_pairs else words
        if kind.way == "rfft":
            given, found = found, found if kind.in_pairs else y if kind.y == "rows" else self.joined
            self.call(self.pairs, given, found)
        if found is not y:
            self.copy(found, integer(step), y, self.numbers["y_step"], numbers_of(kind)[1], words)

    @property
    def pairs(self) -> str:
        """The function that joins frequencies, or parts them."""
        return f"step{len(self.chain.steps) - 1}"

    # ---- blocks of lanes
    def columns(self, x: Register, column: Register) -> None:
        """Transform some columns: from a row to the matrix."""
        f, height = self.function, _padded(self.height, self.lanes)
        steps = [f"step{n}" for n in range(self.chain.columns)]
        by = product(f, column, integer(2))
        factors, far = self.factors_of(column)
        block = self.at(self.matrix, product(f, by, integer(height)))
        left = difference(f, integer(self.width), column)
        self.run(steps, self.at(x, by), block, 2 * self.width, left, factors, far)

    def factors_of(self, column: Register) -> tuple[Register, Register]:
        """The places at which the roots of a block of columns begin, and those that they are multiplied by."""
        f, size = self.function, integer(2 * self.height)
        if not self.kind.factors.by_products:
            return self.at(self.factors, product(f, column, size)), self.far
        near = f.let(f"urem {column}, {VECTOR}", "i64")
        group = f.let(f"udiv {column}, {VECTOR}", "i64")
        return self.at(self.factors, product(f, near, size)), self.at(self.far, product(f, group, size))

    def rows(self, y: Register, row: Register) -> None:
        """Transform some rows: from the matrix to a row of the result, in which columns come first."""
        f = self.function
        end = len(self.chain.steps) - (self.kind.way != "fft")
        steps = [f"step{n}" for n in range(self.chain.columns, end)]
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


def is_widened(kind: FourierKind) -> bool:
    """Tell whether real numbers get imaginary parts first."""
    return kind.way == "rfft" and not kind.in_pairs


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
