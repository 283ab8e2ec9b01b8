"""The mode that looks at indices: an operator that has one out of range does not run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnc_core.base.errors import OutOfRangeError
from nnc_core.device import Device, HostArray
from nnc_core.engine.host import download
from nnc_core.engine.nonfinite import Located
from nnc_core.type import Attributes, Op


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


def _check(device: Device, op: Op, expected: Any, indices: HostArray) -> None:
    try:
        expected.check(indices)
    except OutOfRangeError as error:
        error.locate(operator=op.name, device=device.spec.id)
        raise
