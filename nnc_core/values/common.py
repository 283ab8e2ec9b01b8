"""Properties that operands have in common: the stack that computes, the trace they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnc_core.base.errors import DeviceError
from nnc_core.stacks import Stack
from nnc_core.values.modes import current_stack
from nnc_core.values.value import Value


def common_stack(values: Sequence[Value]) -> Stack:
    """The stack of all operands, the current one without any; DeviceError where they are on several."""
    if not values:
        return current_stack()
    stack = values[0].stack
    for v in values:
        if v.stack is not stack:
            raise DeviceError(f"operands are on {stack.and_on(v.stack)}",
                              hint="move one of them with .to(...)")
    return stack


def common_trace(values: Sequence[Value]) -> Any:
    """The innermost trace that an operand is a symbol of; None if there is none."""
    found = None
    for v in values:
        if v.trace is not None:
            if v.trace.ended:
                raise v.trace.refusal(v)
            if found is None or v.trace.depth > found.depth:
                found = v.trace
    return found
