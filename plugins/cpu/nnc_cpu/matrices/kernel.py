"""Kernels of operators of matrices: code that those of one kind share, and the numbers of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from nnc_core.base.command import Command
from nnc_core.device import Kernel
from nnc_core.operator import OPERATORS
from nnc_cpu.addresses import bytes_at
from nnc_cpu.blas import holding, is_in_the_way
from nnc_cpu.kinds import CodeByKind, FunctionCode, FunctionKernel
from nnc_cpu.llvm.compiler import HostCompiler, TargetHost, host
from nnc_cpu.llvm.helpers import definitions
from nnc_cpu.llvm.objects import Objects
from nnc_cpu.matrices.plan import PLANS, LapackPlan
from nnc_cpu.matrices.steps import NOTE, MatrixKind
from nnc_cpu.matrices.writer import NAME, render
from nnc_cpu.threads.tasks import WORTH

OPERATION, CALL = 0.3e-9, 0.3e-6
"""Seconds for an operation of LAPACK's, and for a matrix besides."""
PIECES = 16
"""Tasks that a stack is cut into that is worth several threads, whatever their number: each has scratch memory."""


class Division(NamedTuple):
    """Tasks of a stack, and the matrices of each."""

    pieces: int
    each: int
    seconds: float


class LapackKernel(FunctionKernel):
    """The function of a kind.  A command with a matrix that it notes is run by another kernel, which gives the result
    or says what is wrong."""

    def __init__(self, code: FunctionCode, command: Command, plan: LapackPlan, otherwise: Kernel) -> None:
        division, work = divided(command, plan), operations(command, plan)
        hold = holding() if plan.kind.calls_routines or is_in_the_way(int(work / 2)) else None
        head = (plan.matrices, division.each, plan.room, *(hold or (0, 0, 0)))
        super().__init__(code, (*head, *plan.numbers), division.pieces, division.seconds, notes=True)
        self.command, self.otherwise = command, otherwise

    def noted(self, addresses: Sequence[int]) -> None:
        layouts = (*self.command.inputs, *self.command.outputs)
        self.otherwise.launch([bytes_at(address, layout.extent) for address, layout in
                               zip(addresses, layouts, strict=False)])


def operations(command: Command, plan: LapackPlan) -> float:
    """Operations for one matrix of the stack."""
    flops = OPERATORS[command.name].flops
    assert flops is not None
    return flops(command) / max(plan.matrices, 1)


def divided(command: Command, plan: LapackPlan) -> Division:
    """The same whatever the number of threads."""
    seconds = plan.matrices * (CALL + operations(command, plan) * OPERATION)
    pieces = min(plan.matrices, PIECES) if seconds > 2 * WORTH else 1
    each = -(-plan.matrices // pieces)
    return Division(-(-plan.matrices // each), each, seconds)


def workspace(command: Command, plan: LapackPlan) -> int:
    """Bytes of a note, and of scratch memory for each task."""
    return NOTE + divided(command, plan).pieces * plan.room


class MatrixCompiler:
    """Compiles operators of matrices for one host; kept: object code is kept on disk between processes."""

    def __init__(self, target: TargetHost, kept: bool = False) -> None:
        self.machine = HostCompiler(target)
        self.objects = Objects(self.machine, kept)
        self.codes = CodeByKind(self._made)

    def kernel(self, command: Command, otherwise: Kernel) -> LapackKernel:
        """The kernel of a command, whose last buffer is its workspace; NotSupportedError where there is no code."""
        plan = PLANS[command.name](command)
        return LapackKernel(self.codes[plan.kind], command, plan, otherwise)

    def _made(self, kind: MatrixKind) -> FunctionCode:
        code = self.objects.of_kind(("matrices", kind), lambda: self._text(kind))
        return FunctionCode(self.machine.load([code], [NAME]), NAME)

    def _text(self, kind: MatrixKind) -> str:
        declared: dict[str, None] = {}
        text = render(kind, declared)
        defined = definitions(declared)
        return "\n".join([*declared, *defined, text])


@cache
def compiler() -> MatrixCompiler:
    """The compiler for this machine."""
    return MatrixCompiler(host(), kept=True)
