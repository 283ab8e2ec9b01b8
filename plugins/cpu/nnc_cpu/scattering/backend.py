"""Library code for scatters: updates one after the other, as machine code."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from nnc_core.base.command import Command
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.loopnest import NOTE_WORDS
from nnc_core.device import CommandBackend, Kernel

if TYPE_CHECKING:
    from nnc_cpu.scattering.kernel import ScatterCompiler


class SequentialScatter(CommandBackend):
    """Replaces, adds and multiplies; an index out of range is noted, and nothing is written then."""

    name = "in order"

    def refuse(self, command: Command) -> str | None:
        if command.name != "scatter":
            return "it is made for scatter"
        try:
            _compiler().problem(command)
        except NotSupportedError as error:
            return error.message
        return None

    def prepare(self, command: Command) -> Kernel:
        return _compiler().kernel(_compiler().problem(command))

    def workspace(self, command: Command) -> int:
        return 8 * NOTE_WORDS

    def inplace(self, command: Command, offered: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([n for n in offered if n == 0])


def _compiler() -> ScatterCompiler:
    """Loaded late: LLVM takes a tenth of a second."""
    found: ScatterCompiler = import_module("nnc_cpu.scattering.kernel").compiler()
    return found
