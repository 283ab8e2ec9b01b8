"""Kernels of scatters: code that those of one kind share, and the numbers of one of them."""

from __future__ import annotations

from functools import cache

from nnc_core.base.command import Command
from nnc_cpu.kinds import CodeByKind, FunctionCode, FunctionKernel
from nnc_cpu.llvm.compiler import HostCompiler, TargetHost, host
from nnc_cpu.llvm.helpers import definitions
from nnc_cpu.llvm.objects import Objects
from nnc_cpu.scattering.problem import ScatterKind, ScatterProblem, scatter_of
from nnc_cpu.scattering.writer import NAME, render
from nnc_cpu.threads.pool import wanted_threads
from nnc_cpu.threads.tasks import WORTH

INDEX, ELEMENT = 2e-9, 0.1e-9
"""Seconds for each index, and for each element of an update."""
LINE, PIECES = 64, 2
"""Bytes of which threads must not share any, and tasks that each should have."""


class ScatterCompiler:
    """Compiles scatters for one host; kept: object code is kept on disk between processes."""

    def __init__(self, target: TargetHost, kept: bool = False) -> None:
        self.target, self.machine = target, HostCompiler(target)
        self.objects = Objects(self.machine, kept)
        self.codes = CodeByKind(self._made)

    def problem(self, command: Command) -> ScatterProblem:
        """The problem of a command; NotSupportedError where there is no code for it."""
        return scatter_of(command, 4 * self.target.lanes)

    def kernel(self, problem: ScatterProblem, threads: int | None = None) -> FunctionKernel:
        """The kernel of a problem, whose buffers are array, indices, updates, result and room for a note; in pieces for
        so many threads, None: those that its work is worth."""
        seconds = _seconds(problem)
        if threads is None:
            threads = wanted_threads() if seconds > 2 * WORTH else 1
        tasks = PIECES * threads if threads > 1 else 1
        cut = in_pieces(problem, tasks)
        return FunctionKernel(self.codes[cut.kind], cut.numbers, cut.rows * cut.numbers.pieces, seconds, notes=True)

    def _made(self, kind: ScatterKind) -> FunctionCode:
        code = self.objects.of_kind(("scatter", kind), lambda: self._text(kind))
        return FunctionCode(self.machine.load([code], [NAME]), NAME)

    def _text(self, kind: ScatterKind) -> str:
        declared: dict[str, None] = {}
        text = render(kind, declared)
        defined = definitions(declared)
        return "\n".join([*declared, *defined, text])


def _seconds(problem: ScatterProblem) -> float:
    n = problem.numbers
    return problem.rows * n.updated * (INDEX + n.inner * ELEMENT)


def in_pieces(problem: ScatterProblem, tasks: int) -> ScatterProblem:
    """The problem with rows cut where there would be fewer tasks than that, between lines of memory."""
    n = problem.numbers
    line = LINE // problem.kind.size
    most = max(1, n.inner // line)
    pieces = min(most, -(-tasks // max(problem.rows, 1)))
    columns = -(-n.inner // pieces)
    columns = n.inner if pieces == 1 else -(-columns // line) * line
    return problem._replace(numbers=n._replace(columns=columns, pieces=-(-n.inner // columns)))


@cache
def compiler() -> ScatterCompiler:
    """The compiler for this machine."""
    return ScatterCompiler(host(), kept=True)
