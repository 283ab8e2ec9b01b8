"""Commands that may raise: state is not overwritten before they have run."""

from __future__ import annotations

from nnc_core.engine.groups import NodeGroup
from nnc_core.operator.control import CASE_OF


def may_fail(group: NodeGroup) -> bool:
    """True if a command raises for some values: functions of the host, linear algebra, branches without one for every
    number.  The commands in its bodies are commands of their own."""
    op = group.op
    return op.host or op.fallible or (op is CASE_OF and not group.attributes[1])
