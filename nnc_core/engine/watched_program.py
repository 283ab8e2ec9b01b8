"""Fused commands under watch: their operators run one by one on the host first, so that the one at fault is named."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.base.errors import Error
from nnc_core.device import Device, HostArray
from nnc_core.device.host import download
from nnc_core.engine.groups import NodeGroup
from nnc_core.engine.index_checks import check_host_indices
from nnc_core.engine.nonfinite import Located, Watch
from nnc_core.operator.fused import executed
from nnc_core.operator.program import Program, Step
from nnc_core.symbol import show_line


def watch_program(device: Device, group: NodeGroup, operands: Sequence[Located], nonfinite: str,
                  indices: bool) -> None:
    """NonfiniteError or OutOfRangeError that names the operator of the program and its line; operands are waited
    for."""
    program: Program = group.attributes[0]
    hosts = [download(device, buffer, layout) for layout, buffer in operands]

    def check_indices(step: Step, given: Sequence[HostArray]) -> None:
        if indices:
            check_host_indices(device, step.op, step.attributes, given)

    done = 0
    try:
        for step, given, value in executed(program, hosts, check_indices):
            if nonfinite != "off":
                Watch(device, nonfinite, step.attributes, given).check_host(value)
            done += 1
    except Error as error:
        error.locate(operator=program.steps[done].op.name, line=show_line(group.lines[done]))
        raise
