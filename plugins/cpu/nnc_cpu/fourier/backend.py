"""Library code for Fourier transforms, along axes one after another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.errors import NotSupportedError
from nnc_core.device import CommandBackend, Kernel
from nnc_core.operator.steps.fourier import parts_of
from nnc_core.operator.steps.fourier_chirp import by_chirps
from nnc_core.operator.steps.fourier_text import Way
from nnc_cpu.fourier.factors import factors_of
from nnc_cpu.fourier.problem import FourierProblem, is_aligned, length_of

if TYPE_CHECKING:
    from nnc_cpu.fourier.kernel import FourierCompiler


class MatrixTransforms(CommandBackend):
    """One operator's transforms as machine code.  What is refused depends on lengths alone, so that bits do not depend
    on where arrays lie, but for elements that are not aligned."""

    name = "passes"

    def __init__(self, operator: Way) -> None:
        self.operator = operator

    def refuse(self, command: Command) -> str | None:
        if command.name != self.operator:
            return f"it is made for {self.operator}"
        try:
            for part in parts_of(command):
                length_of(part)
        except NotSupportedError as error:
            return error.message
        if not all(map(is_aligned, (*command.inputs, command.output))):
            return "elements are not aligned"
        return None if command.output.size else "there is nothing to transform"

    def instead(self, F: Any, inputs: Sequence[Any], command: Command) -> Any:
        if config.deterministic or not command.output.size:
            return None  # eagerly NumPy has its own order
        return by_chirps(F, inputs, command, lambda points: factors_of(points) is not None)

    def workspace(self, command: Command) -> int:
        return max([_scratch(problem) for problem in problems(command)])

    def prepare(self, command: Command) -> Kernel:
        return _compiler().kernel(problems(command))


@lru_cache(maxsize=256)
def problems(command: Command) -> tuple[FourierProblem, ...]:
    """A command as problems, one after another."""
    return tuple(map(_compiler().problem, parts_of(command)))


def _scratch(problem: FourierProblem) -> int:
    nbytes: int = import_module("nnc_cpu.fourier.kernel").scratch_of(problem).nbytes
    return nbytes


def _compiler() -> FourierCompiler:
    """Loaded late: LLVM takes a tenth of a second."""
    found: FourierCompiler = import_module("nnc_cpu.fourier.kernel").compiler()
    return found
