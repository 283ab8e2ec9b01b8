"""Transforms with a row in each lane: a task is as many rows as there are lanes."""

from __future__ import annotations

from nnc_cpu.fourier.driver import TransformWriter
from nnc_cpu.fourier.problem import FourierKind, FourierProblem
from nnc_cpu.fourier.turning import TurnedRows
from nnc_cpu.llvm.ir import Register, integer
from nnc_cpu.products.writing import difference, product, split, total


class LanesWriter(TransformWriter):
    """Writes the function: what is between two steps lies in one room or the other, in turns."""

    @classmethod
    def slot_numbers(cls, kind: FourierKind) -> int:
        return 2 * _room(kind)

    @classmethod
    def tasks(cls, problem: FourierProblem) -> int:
        return problem.outer * -(-problem.rows.length // problem.kind.lanes)

    def rooms(self) -> None:
        f, rows = self.function, self.numbers["rows"]
        self.both = self.room(0), self.room(_room(self.kind))
        self.blocks = f.let(f"udiv {total(f, rows, integer(self.lanes - 1))}, {self.lanes}", "i64")

    def task(self, task: Register) -> None:
        f = self.function
        block, outer = split(f, task, self.blocks)
        first = product(f, block, integer(self.lanes))
        left = difference(f, self.numbers["rows"], first)
        x, y = self.row(first, outer)
        last = len(self.chain.steps) - 1
        for n, step in enumerate(self.chain.steps):
            source, target = x if n == 0 else self.both[n % 2], y if n == last else self.both[(n + 1) % 2]
            if not isinstance(step, TurnedRows):
                self.call(f"step{n}", source, target, self.numbers["x_step"], self.numbers["y_step"], left)
            elif n == 0:
                self.turn(f"step{n}", "x", x, target, left)
            else:
                self.turn(f"step{n}", "y", y, source, left)


def _room(kind: FourierKind) -> int:
    """Numbers of the elements of a row, and of one more frequency, in all lanes."""
    return 2 * kind.lanes * (kind.length + (kind.way != "fft"))
