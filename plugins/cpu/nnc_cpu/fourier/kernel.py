"""Kernels of Fourier transforms: code that those of one kind share, and the numbers of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import log2
from typing import NamedTuple

from nnc_core.base.dtype import real_of
from nnc_core.device import Kernel
from nnc_core.operator.steps.fourier import AxisTransform
from nnc_cpu.fourier.chain import chain_of, table_of, text_of
from nnc_cpu.fourier.driver import HEAD, MOST_SLOTS, NAME, TransformWriter, numbers_of
from nnc_cpu.fourier.in_turn import IN_TURN, SharedTransforms, TransformsInTurn
from nnc_cpu.fourier.lanes import LanesWriter
from nnc_cpu.fourier.problem import FourierKind, FourierProblem, problem_of
from nnc_cpu.fourier.rows import RowByRowWriter
from nnc_cpu.fourier.shared import SharedRowWriter
from nnc_cpu.kinds import CodeByKind, FunctionCode, FunctionKernel
from nnc_cpu.llvm.compiler import HostCompiler, TargetHost, host
from nnc_cpu.llvm.helpers import definitions
from nnc_cpu.llvm.objects import Objects
from nnc_cpu.threads.pool import wanted_threads
from nnc_cpu.threads.system import usable_cores
from nnc_cpu.threads.tasks import WORTH

OPERATION, ELEMENT = 0.02e-9, 0.5e-9
"""Seconds of one of the 5 n log2 n operations that transforms are counted by, and for each element."""
LINE = 128
"""Bytes of which threads should not share any."""


class Scratch(NamedTuple):
    """Memory of the threads of a launch: as many slots, of so many bytes each, and bytes that they share."""

    slots: int
    slot: int
    shared: int

    @property
    def nbytes(self) -> int:
        return HEAD + self.slots * self.slot + self.shared


def writer_of(kind: FourierKind) -> type[TransformWriter]:
    """The writer of the function of a kind."""
    if not kind.by_rows:
        return LanesWriter
    return SharedRowWriter if kind.shared else RowByRowWriter


def scratch_of(problem: FourierProblem) -> Scratch:
    """A slot for each thread that may come."""
    writer, kind = writer_of(problem.kind), problem.kind
    slot, shared = (-(-numbers * kind.dtype.itemsize // LINE) * LINE
                    for numbers in (writer.slot_numbers(kind), writer.shared_numbers(kind)))
    return Scratch(max(1, min(MOST_SLOTS, problem.threads, writer.tasks(problem))), slot, shared)


class AxisKernel(FunctionKernel):
    """A transform along one axis, whose buffers are input, output and scratch memory."""

    def __init__(self, code: FunctionCode, problem: FourierProblem) -> None:
        scratch, kind = scratch_of(problem), problem.kind
        self.table = table_of(kind, problem.scale)
        numbers = numbers_of(problem, self.table, scratch.slots, scratch.slot)
        super().__init__(code, numbers, writer_of(kind).tasks(problem), _seconds(problem), notes=True)
        self._tasks = self._tasks._replace(most_threads=min(self._tasks.most_threads, scratch.slots))


class FourierCompiler:
    """Compiles transforms for one host; kept: object code is kept on disk between processes."""

    def __init__(self, target: TargetHost, kept: bool = False) -> None:
        self.target, self.machine = target, HostCompiler(target)
        self.objects = Objects(self.machine, kept)
        self.codes = CodeByKind(self._made)
        self.threads = usable_cores()
        """Those that problems are made for: what scratch memory is planned with must hold when a kernel is made."""
        self._in_turn: FunctionCode | None = None

    def problem(self, part: AxisTransform) -> FourierProblem:
        """The problem of a transform; NotSupportedError where there is no code for it."""
        return problem_of(part, 4 * self.target.lanes // real_of(part.x.dtype).itemsize, self.threads)

    def kernel(self, problems: Sequence[FourierProblem]) -> Kernel:
        """The kernel of problems, of which each but the first goes on with what the one before has given."""
        kernels = [AxisKernel(self.codes[problem.kind], problem) for problem in problems]
        if len(kernels) == 1:
            return kernels[0]
        seconds = sum([kernel.tasks.seconds for kernel in kernels])
        if wanted_threads() > 1 and seconds > 2 * WORTH:
            return SharedTransforms(kernels)
        return TransformsInTurn(self.in_turn, kernels, seconds)

    @property
    def in_turn(self) -> FunctionCode:
        """The function that calls others."""
        if self._in_turn is None:
            code = self.objects.of_text(IN_TURN)
            self._in_turn = FunctionCode(self.machine.load([code], ["in_turn"]), "in_turn")
        return self._in_turn

    def _made(self, kind: FourierKind) -> FunctionCode:
        code = self.objects.of_kind(("fourier", kind), lambda: self.text(kind))
        return FunctionCode(self.machine.load([code], [NAME]), NAME)

    def text(self, kind: FourierKind) -> str:
        """The module of a kind."""
        declared: dict[str, None] = {}
        chain = chain_of(kind)
        texts = [text_of(step, f"step{n}", kind, declared, gives=n > 0) for n, step in enumerate(chain.steps)]
        driver = writer_of(kind)(kind, chain, declared).text()
        return "\n".join([*declared, *definitions(declared), *texts, driver])


def _seconds(problem: FourierProblem) -> float:
    """Seconds that all tasks take in one thread."""
    length = problem.kind.length
    return problem.outer * problem.rows.length * length * (5 * log2(max(length, 2)) * OPERATION + ELEMENT)


@cache
def compiler() -> FourierCompiler:
    """The compiler for this machine."""
    return FourierCompiler(host(), kept=True)
