"""The operator that runs a program: fusion makes it between the optimiser and the device.

No user calls it and no rule differentiates it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.loopnest import LoopNest
from nnc_core.operator.inlining import fused_nest
from nnc_core.operator.program import Input, Operand, Program, Step, StepResult
from nnc_core.type import Op, TensorSpec, TupleSpec


class Executed(NamedTuple):
    """A step, what it was given, and its value."""

    step: Step
    operands: Sequence[Any]
    value: Any


def _infer(*specs_and_program: Any) -> TensorSpec:
    program: Program = specs_and_program[-1]
    specs = tuple([program.steps[n].spec for n in program.results])
    return specs[0] if len(specs) == 1 else TupleSpec(specs)


def executed(program: Program, arrays: Sequence[Any],
             before: Callable[[Step, Sequence[Any]], None] | None = None) -> Iterator[Executed]:
    """Each step by its operator's reference, one after another; `before` sees it and its operands first."""
    values: list[Any] = []
    for step in program.steps:
        operands = [_held(operand, arrays, values) for operand in step.operands]
        assert step.op.reference is not None
        if before is not None:
            before(step, operands)
        with np.errstate(all="ignore"):
            values.append(np.asarray(step.op.reference(*operands, *step.attributes), step.spec.dtype))
        yield Executed(step, operands, values[-1])


def _run(*arrays_and_program: Any) -> Any:
    *arrays, program = arrays_and_program
    values = [done.value for done in executed(program, arrays)]
    results = tuple([values[n] for n in program.results])
    return results[0] if len(results) == 1 else results


def _held(operand: Operand, arrays: Sequence[Any], values: Sequence[Any]) -> Any:
    match operand:
        case Input(number):
            return arrays[number]
        case StepResult(number):
            return values[number]
        case _:
            return np.asarray(operand.value)


def _nest(command: Command) -> LoopNest:
    return fused_nest(command, command.attributes[0])


FUSED = Op("fused", ("*inputs",), ("program",), _infer, _run, "The operators of a program, as one command.", nest=_nest,
           storage=True)


def command_of(program: Program) -> Command:
    """A program as a command, on packed arrays."""
    inputs = tuple([x.layout() for x in program.inputs])
    return Command(FUSED.name, (program,), inputs, tuple([program.steps[n].spec.layout() for n in program.results]))
