"""Transforms of a few long rows, each of which all threads share: tasks are blocks of its columns, then of its rows.

A task waits until all tasks of the phases before it are done.  Tasks are taken in order, so that those that it waits
for have been taken by threads that run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from nnc_core.base.loopnest import NOTE_WORDS
from nnc_cpu.fourier.driver import HEAD
from nnc_cpu.fourier.problem import FourierKind, FourierProblem
from nnc_cpu.fourier.rows import RowByRowWriter, is_widened, parts_of
from nnc_cpu.llvm.ir import Register, integer
from nnc_cpu.products.writing import difference, moved, product, split, total

Phase: TypeAlias = tuple[int, Callable[[Register], None]]
"""Tasks, and what one of them does, by its number in the phase."""
DONE = 2
"""The word of scratch memory that counts tasks that are done."""
assert DONE < NOTE_WORDS
WAIT = """\
define internal void @wait(ptr %done, i64 %least) #0 {
entry:
  br label %look
look:
  %now = load atomic i64, ptr %done acquire, align 8
  %enough = icmp sge i64 %now, %least
  br i1 %enough, label %end, label %look
end:
  ret void
}
"""


def _blocks(kind: FourierKind) -> tuple[int, int]:
    """Blocks of columns and of rows."""
    return -(-kind.factors.width // kind.lanes), -(-kind.factors.height // kind.lanes)


def _has_ends(kind: FourierKind) -> tuple[bool, bool]:
    """Tell whether something is made of a row before, and of what is found behind."""
    odd = kind.way != "fft" and not kind.in_pairs
    return (kind.x != "rows" or kind.way == "irfft" or is_widened(kind),
            kind.y != "rows" or kind.way == "rfft" or odd)


def tasks_of_row(kind: FourierKind) -> int:
    return sum(_blocks(kind)) + sum(_has_ends(kind))


class SharedRowWriter(RowByRowWriter):
    """Writes the function: the matrix and copies lie behind the slots, which have rooms alone."""

    @classmethod
    def slot_numbers(cls, kind: FourierKind) -> int:
        return parts_of(kind).rooms

    @classmethod
    def shared_numbers(cls, kind: FourierKind) -> int:
        return sum(parts_of(kind)[1:])

    @classmethod
    def tasks(cls, problem: FourierProblem) -> int:
        return super().tasks(problem) * tasks_of_row(problem.kind)

    def text(self) -> str:
        return WAIT + super().text()

    def rooms(self) -> None:
        f, numbers, parts = self.function, self.numbers, parts_of(self.kind)
        super().rooms()
        behind = total(f, product(f, numbers["slots"], numbers["slot"]), integer(HEAD))
        self.matrix = moved(f, self.scratch, "i8", behind)
        self.copied = self.at(self.matrix, integer(parts.matrix))
        self.joined = self.at(self.copied, integer(parts.copied))
        self.done = moved(f, self.scratch, "i64", integer(DONE))
        rows = [numbers["rows"], *[numbers[f"length{n}"] for n in range(self.kind.axes)]]
        self.all = integer(tasks_of_row(self.kind))
        for length in rows:
            self.all = product(f, self.all, length)

    def task(self, task: Register) -> None:
        f, before = self.function, 0
        each, number = split(f, task, integer(tasks_of_row(self.kind)))
        row, outer = split(f, number, self.numbers["rows"])
        earlier = difference(f, task, each)
        for count, run in self.phases(*self.row(row, outer)):
            n = difference(f, each, integer(before))
            with f.where(f.let(f"icmp ult {n}, {count}", "i1")):
                least = total(f, earlier, integer(before))
                f.line(f"call void @wait({self.done}, {least})")
                run(n)
            before += count
        self.count()

    def phases(self, x: Register, y: Register) -> list[Phase]:
        columns, rows = _blocks(self.kind)
        first, last = _has_ends(self.kind)
        return [(int(first), lambda n: self.prepare(x)),
                (columns, partial(self.block, lambda n: self.columns(self.source(x), n))),
                (rows, partial(self.block, lambda n: self.rows(self.target(y), n))),
                (int(last), lambda n: self.finish(y))]

    def block(self, run: Callable[[Register], None], n: Register) -> None:
        run(product(self.function, n, integer(self.lanes)))

    def count(self) -> None:
        """Count a task that is done; the last one begins anew, for what comes after it."""
        f = self.function
        before = f.let(f"atomicrmw add {self.done}, i64 1 acq_rel", "i64")
        is_last = f.let(f"icmp eq {total(f, before, integer(1))}, {self.all.name}", "i1")
        with f.where(is_last):
            f.line(f"store atomic i64 0, {self.done} release, align 8")
