"""The mode that looks at indices: an operator that has one out of range does not run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nnc_core.base.errors import Error, OutOfRangeError
from nnc_core.device import Device, HostArray
from nnc_core.device.host import download
from nnc_core.engine.groups import NodeGroup
from nnc_core.engine.nonfinite import Located
from nnc_core.operator.program import Input, Operand, Program, Step, StepResult
from nnc_core.symbol import Line, show_line
from nnc_core.type import Attributes, IndexRange, Op


def check_indices(device: Device, op: Op, attributes: Attributes, operands: Sequence[Located]) -> None:
    """OutOfRangeError for an index out of range among the operands, which are waited for."""
    if op.indices is None:
        return
    expected = op.indices([layout.shape for layout, _ in operands], *attributes)
    layout, buffer = operands[expected.operand]
    _check(device, op, expected, download(device, buffer, layout))


def check_host_indices(device: Device, op: Op, attributes: Attributes, operands: Sequence[HostArray]) -> None:
    """The same for operands that are on the host."""
    if op.indices is not None:
        expected = op.indices([x.shape for x in operands], *attributes)
        _check(device, op, expected, operands[expected.operand])


def check_program(device: Device, group: NodeGroup, operands: Sequence[Located]) -> None:
    """The same for a fused command, whose step and line the error names.  What indices are made of is computed on the
    host, and nothing else; those that a kernel notes are left to it."""
    program: Program = group.attributes[0]
    notes = "notes" in device.spec.features
    looks = {n: found for n, step in enumerate(program.steps) if not (notes and step.op.notes)
             and (found := _indices_of(program, step)) is not None}
    if not looks:
        return
    values = _HostValues(group, lambda k: download(device, operands[k][1], operands[k][0]))
    for n, (expected, indices) in looks.items():
        try:
            _check(device, program.steps[n].op, expected, values.of(indices))
        except Error as error:
            error.locate(line=show_line(group.lines[n]))
            raise


def _indices_of(program: Program, step: Step) -> tuple[IndexRange, Operand] | None:
    if step.op.indices is None:
        return None
    expected = step.op.indices([program.spec_of(x).shape for x in step.operands], *step.attributes)
    return expected, step.operands[expected.operand]


class _HostValues:
    """Values of a program's operands, each computed when it is asked for, by the references of its steps."""

    def __init__(self, group: NodeGroup, given: Callable[[int], HostArray]) -> None:
        self.program: Program = group.attributes[0]
        self.lines, self.given = group.lines, given
        self._known: dict[Operand, HostArray] = {}

    def of(self, operand: Operand) -> HostArray:
        if operand not in self._known:
            self._known[operand] = self._found(operand)
        return self._known[operand]

    def _found(self, operand: Operand) -> Any:
        match operand:
            case Input(number):
                return self.given(number)
            case StepResult(number):
                return self._of_step(self.program.steps[number], self.lines[number])
            case _:
                return np.asarray(operand.value)

    def _of_step(self, step: Step, line: Line | None) -> Any:
        assert step.op.reference is not None
        operands = [*map(self.of, step.operands)]
        try:
            with np.errstate(all="ignore"):
                return np.asarray(step.op.reference(*operands, *step.attributes), step.spec.dtype)
        except Error as error:
            error.locate(operator=step.op.name, line=show_line(line))
            raise


def _check(device: Device, op: Op, expected: IndexRange, indices: HostArray) -> None:
    try:
        expected.check(indices)
    except OutOfRangeError as error:
        error.locate(operator=op.name, device=device.spec.id)
        raise
