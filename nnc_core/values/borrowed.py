"""Operands in memory that others may change: what is read of them, and when."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.operator import OPERATORS
from nnc_core.values.modes import current_trace
from nnc_core.values.value import Step, Value, owned

_IDENTITY = OPERATORS["identity"]


def snapshot(x: Value, line: Any = None) -> Value:
    """The copy that a step holds instead of borrowed memory.  It hangs on x, so that a graph can be cut there; a trace
    reads x at each call, and so needs no copy."""
    array = None if current_trace.get() is not None else owned(x).array
    return Value(array, x.stack, x.spec, Step(_IDENTITY, (x,), (), line))


def shares_memory(result: Value, x: Value) -> bool:
    """True if the host can see that they may share memory; where it sees no memory at all, nothing is borrowed."""
    if result.stack is not x.stack:
        return False
    expose = x.stack.device.expose
    parts = result.array if isinstance(result.array, tuple) else (result.array,)
    seen = [expose(part) for part in (*parts, x.array)]
    return any(a is not None and np.may_share_memory(a, seen[-1]) for a in seen[:-1])
