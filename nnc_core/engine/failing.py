"""Commands that may raise: state is not overwritten before they have run."""

from __future__ import annotations

from nnc_core.device import NOTES, Device
from nnc_core.engine.groups import NodeGroup
from nnc_core.operator.control import CASE_OF
from nnc_core.operator.fused import FUSED


def may_fail(group: NodeGroup, device: Device) -> bool:
    """True if a command raises for some values: functions of the host, linear algebra, branches without one for every
    number, what takes notes.  The commands in its bodies are commands of their own."""
    op = group.op
    return op.host or op.fallible or (op is CASE_OF and not group.attributes[1]) or takes_notes(group, device)


def takes_notes(group: NodeGroup, device: Device) -> bool:
    """True if a command notes indices that are out of range, and raises when it has run."""
    if NOTES not in device.spec.features:
        return False
    return any(step.op.notes for step in group.attributes[0].steps) if group.op is FUSED else group.op.notes
