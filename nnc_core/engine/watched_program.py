"""Fused commands under watch: their operators run one by one on the host first, so that the one at fault is named."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.base.errors import Error
from nnc_core.device import Device, HostArray
from nnc_core.engine.host import download
from nnc_core.engine.index_checks import check_host_indices
from nnc_core.engine.nonfinite import Located, Watch
from nnc_core.operator.fused import executed
from nnc_core.operator.program import Program, Step


def watch_program(device: Device, program: Program, operands: Sequence[Located], nonfinite: str,
                  indices: bool) -> None:
    """NonfiniteError or OutOfRangeError that names the operator of the program; operands are waited for."""
    hosts = [download(device, buffer, layout) for layout, buffer in operands]

    def check_indices(step: Step, given: Sequence[HostArray]) -> None:
        if indices:
            check_host_indices(device, step.op, step.attributes, given)

    for step, given, value in executed(program, hosts, check_indices):
        try:
            if nonfinite != "off":
                Watch(device, nonfinite, step.attributes, given).check_host(value)
        except Error as error:
            error.locate(operator=step.op.name)
            raise
