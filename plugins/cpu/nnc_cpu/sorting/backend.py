"""Library code for the order of rows: digits of their elements, as machine code that loops of graphs need no Python
for."""

from __future__ import annotations

from importlib import import_module

from nnc_core.base.command import Command
from nnc_core.base.errors import NotSupportedError
from nnc_core.device import CommandBackend, Kernel
from nnc_cpu.positions import FEW, MANY
from nnc_cpu.sorting.rows import rows_of


class RowsByDigits(CommandBackend):
    """Rows of less than MANY elements, or FEW of 64 bits, which have twice as many digits: of more NumPy's code makes
    one word each."""

    name = "digits"

    def refuse(self, command: Command) -> str | None:
        if command.name != "argsort":
            return "it is made for argsort"
        most = FEW if command.inputs[0].dtype.itemsize == 8 else MANY
        if command.output.shape[command.attributes[0]] >= most:
            return "the rows are long"
        try:
            rows_of(command)
        except NotSupportedError as error:
            return error.message
        return None

    def workspace(self, command: Command) -> int:
        found: int = import_module("nnc_cpu.sorting.kernel").workspace(command)
        return found

    def prepare(self, command: Command) -> Kernel:
        """Loaded late: LLVM takes a tenth of a second."""
        made: Kernel = import_module("nnc_cpu.sorting.kernel").compiler().kernel(command)
        return made
