"""Functions that a device computes as a whole, where operators make them up otherwise.

A kernel of `Device.eager` that bears the name of such a function takes its operands and attributes as the function has
brought them into order.  It gives the same elements as the operators; those are asked wherever anything is recorded,
followed for a gradient, looked at one by one, or replaced.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Protocol

from nnc_core.base.fast_path import CLOSED_BY
from nnc_core.type import Attributes
from nnc_core.values.modes import lazy
from nnc_core.values.value import Value

PROGRAM = "program"
"""The name of a kernel that runs programs of operators on each element, which are its attribute."""

class Noting(Protocol):
    """The notes of what eager code would run, while operators are recorded."""

    def whole(self, kernel: Any, operands: tuple[Value, ...], attributes: Attributes) -> Any:
        """Symbols for what a kernel gives; None where it takes no such operands."""


noting: ContextVar[Noting | None] = ContextVar("nnc_noting", default=None)


def as_whole(name: str, operands: tuple[Value, ...], attributes: Attributes = ()) -> Any:
    """The result of the device's own kernel, of several results a tuple; None where there is none for such operands."""
    noted = noting.get() if lazy.get() else None
    if CLOSED_BY or (lazy.get() and noted is None):
        return None
    stack = operands[0].stack
    kernel = stack.device.eager.get(name)
    if kernel is None or stack.operator.replaced or not stack.infers_by_dtype:
        return None
    if noted is not None:
        return noted.whole(kernel, operands, attributes)
    for v in operands:
        if v.__class__ is not Value or v.array is None or v.tracked or v.trace is not None or v.stack is not stack:
            return None
    try:
        found = kernel(*[v.array for v in operands], *attributes)
    except Exception:
        return None  # the operators find out why
    if found is NotImplemented:
        return None
    return tuple([Value(x, stack) for x in found]) if found.__class__ is tuple else Value(found, stack)
