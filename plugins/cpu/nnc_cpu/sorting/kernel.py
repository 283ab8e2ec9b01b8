"""Kernels that find the order of rows: code that those of one kind share, and the numbers of one of them."""

from __future__ import annotations

from functools import cache

from nnc_core.base.command import Command
from nnc_cpu.kinds import CodeByKind, FunctionCode, FunctionKernel
from nnc_cpu.llvm.compiler import HostCompiler, TargetHost, host
from nnc_cpu.llvm.helpers import definitions
from nnc_cpu.llvm.objects import Objects
from nnc_cpu.sorting.rows import DIGITS, RowKind, RowProblem, rows_of
from nnc_cpu.sorting.writer import NAME, render
from nnc_cpu.threads.tasks import WORTH

PLACE = 1.5e-9
"""Seconds for a word in a pass, and for a count."""
PIECES = 16
"""Tasks that rows are cut into that are worth several threads, whatever their number: each has scratch memory."""


def divided(problem: RowProblem) -> RowProblem:
    """The problem in tasks, the same whatever the number of threads."""
    n = problem.numbers
    pieces = min(n.rows, PIECES) if seconds_of(problem) > 2 * WORTH else 1
    return problem._replace(numbers=n._replace(each=-(-n.rows // pieces)))


def seconds_of(problem: RowProblem) -> float:
    n, passes = problem.numbers, problem.kind.passes
    return n.rows * ((passes + 2) * n.length + 2 * passes * DIGITS) * PLACE


def tasks_in(problem: RowProblem) -> int:
    return -(-problem.numbers.rows // problem.numbers.each)


def workspace(command: Command) -> int:
    """Bytes of scratch memory for all tasks."""
    problem = divided(rows_of(command))
    return tasks_in(problem) * problem.numbers.room


class RowCompiler:
    """Compiles orders of rows for one host; kept: object code is kept on disk between processes."""

    def __init__(self, target: TargetHost, kept: bool = False) -> None:
        self.machine = HostCompiler(target)
        self.objects = Objects(self.machine, kept)
        self.codes = CodeByKind(self._made)

    def kernel(self, command: Command) -> FunctionKernel:
        """The kernel of a command, whose buffers are array, result and workspace; NotSupportedError where there is no
        code for it."""
        problem = divided(rows_of(command))
        return FunctionKernel(self.codes[problem.kind], problem.numbers, tasks_in(problem), seconds_of(problem))

    def _made(self, kind: RowKind) -> FunctionCode:
        code = self.objects.of_kind(("rows", kind), lambda: self._text(kind))
        return FunctionCode(self.machine.load([code], [NAME]), NAME)

    def _text(self, kind: RowKind) -> str:
        declared: dict[str, None] = {}
        text = render(kind, declared)
        defined = definitions(declared)
        return "\n".join([*declared, *defined, text])


@cache
def compiler() -> RowCompiler:
    """The compiler for this machine."""
    return RowCompiler(host(), kept=True)
