"""NaN mode, and looks at indices, for what runs eagerly or is evaluated.

`config.check_nan` and `config.check_indices` belong to a context and keep the fast path of `dispatch` closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from nnc_core.base.config import config
from nnc_core.base.errors import NonfiniteError
from nnc_core.base.fast_path import keep_closed
from nnc_core.engine.index_checks import check_indices
from nnc_core.engine.nonfinite import Located, Watch
from nnc_core.stacks import Stack
from nnc_core.symbol import Line, show_line, user_line
from nnc_core.type import Attributes, Op
from nnc_core.values.value import Value

_sweep: ContextVar[tuple[Line | None, str] | None] = ContextVar("nnc_sweep", default=None)


def watch_settings() -> None:
    """Close the fast path while a setting asks for it, in a context that lives."""
    config.watch("check_nan", lambda value, holder: keep_closed("check_nan", value != "off", holder))
    config.watch("check_indices", lambda value, holder: keep_closed("check_indices", value, holder))
    config.watch("deterministic", lambda value, holder: keep_closed("deterministic", value, holder))


def watch(op: Op, values: Sequence[Value], attributes: Attributes, stack: Stack) -> Watch | None:
    """A look at the operands of an operator that is about to run; None if this context does not care.

    An operator without operands makes what it was asked for.  OutOfRangeError if its indices are looked at, and one is
    out of range.
    """
    if op.indices is not None and config.check_indices:
        check_indices(stack.device, op, attributes, [p for v in values for p in _places(v.stack, v.array)])
    mode = config.check_nan
    if mode == "off" or not values:
        return None
    return Watch.of(stack.device, mode, attributes, [p for v in values for p in _places(v.stack, v.array)])


def check(watched: Watch, stack: Stack, result: Any) -> None:
    """NonfiniteError if a result has what no operand had; in a backward pass it also names the operator and the line
    whose derivative it was."""
    try:
        for layout, buffer in _places(stack, result):
            watched.check(layout, buffer)
    except NonfiniteError as error:
        sweep = _sweep.get()
        if sweep is not None and sweep[0] == user_line():
            error.message += f", in the derivative of {sweep[1]}"
        raise


def differentiating(value: Value) -> None:
    """A sweep goes on to this value: what is computed next, on the same line of the user, is its derivative."""
    if value.step is not None:
        _sweep.set((user_line(), f"{value.op.name} at {show_line(value.line)}"))


def _places(stack: Stack, array: Any) -> list[Located]:
    device = stack.device
    parts = array if isinstance(array, tuple) else (array,)
    return [(device.layout_of(a), device.buffer_of(a)) for a in parts]
