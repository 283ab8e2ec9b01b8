"""Library code for operators of matrices: NumPy's LAPACK by address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING

from nnc_core.base.command import Command
from nnc_core.base.errors import NotSupportedError
from nnc_core.device import CommandBackend, Kernel
from nnc_core.operator import OPERATORS
from nnc_cpu.blas import LONG
from nnc_cpu.matrices.plan import PLANS

if TYPE_CHECKING:
    from nnc_cpu.matrices.kernel import MatrixCompiler

Otherwise = Callable[[Command], Kernel]


class Matrices(CommandBackend):
    """One operator, for matrices that are not so large that several threads are worth it for one of them; `otherwise`
    makes the kernel for what LAPACK has no result for."""

    name = "lapack"

    def __init__(self, operator: str, otherwise: Otherwise) -> None:
        self.operator, self.otherwise = operator, otherwise
        self._plan = lru_cache(maxsize=256)(PLANS[operator])

    def refuse(self, command: Command) -> str | None:
        if command.name != self.operator:
            return f"it is made for {self.operator}"
        if _is_long(command):
            return "several threads are worth it for one matrix"
        try:
            self._plan(command)
        except NotSupportedError as error:
            return error.message
        return None

    def workspace(self, command: Command) -> int:
        found: int = import_module("nnc_cpu.matrices.kernel").workspace(command, self._plan(command))
        return found

    def prepare(self, command: Command) -> Kernel:
        return _compiler().kernel(command, self.otherwise(command))


def _is_long(command: Command) -> bool:
    flops = OPERATORS[command.name].flops
    stack = prod(command.inputs[0].shape[:-2])
    return flops is not None and flops(command) >= 2 * LONG * stack


def _compiler() -> MatrixCompiler:
    """Loaded late: LLVM takes a tenth of a second."""
    found: MatrixCompiler = import_module("nnc_cpu.matrices.kernel").compiler()
    return found


def matrices(otherwise: Otherwise) -> Mapping[str, CommandBackend]:
    """The backends by operator."""
    return {name: Matrices(name, otherwise) for name in PLANS}
