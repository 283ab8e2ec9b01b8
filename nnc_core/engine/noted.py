"""Indices that a kernel has noted as out of range, said as the operator says it that they were given to."""

from __future__ import annotations

from nnc_core.base.command import Command
from nnc_core.base.errors import Error, OutOfRangeError
from nnc_core.operator.fused import FUSED
from nnc_core.operator.program import Program
from nnc_core.symbol import Line, show_line
from nnc_core.type import Op


def say_noted(error: Error, op: Op, command: Command, lines: tuple[Line | None, ...] = ()) -> None:
    """Complete an error that a kernel of the command has raised; `lines` are those of a program's steps."""
    noted = getattr(error, "noted", None)
    if not isinstance(error, OutOfRangeError) or noted is None:
        return
    check, index = noted
    if op is FUSED:
        program: Program = command.attributes[0]
        op, command = program.steps[check].op, program.command_of(check)
        error.locate(line=show_line(lines[check]) if lines else None)
    assert op.indices is not None
    expected = op.indices([x.shape for x in command.inputs], *command.attributes)
    if index < 0 and command.inputs[expected.operand].dtype.kind == "u":
        index += 1 << 64
    error.message, error.noted = expected.message(index), None
    error.args = (error.message,)
    error.locate(operator=op.name, operands=str(command), hint=expected.hint)
