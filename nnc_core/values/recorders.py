"""Recording of what is done with symbols of unknown shape: operators by themselves, and who is recorded as a whole."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

from nnc_core.stacks import Stack
from nnc_core.symbol import is_users
from nnc_core.type import Attributes, Op
from nnc_core.values.modes import current_trace
from nnc_core.values.unshaped import RecordedCall, Unshaped, resolving, unknown_shape
from nnc_core.values.value import Value, owned

_RECORDERS: set[CodeType] = set()


def recorder(function: Callable[..., Any]) -> None:
    """Note a function that is recorded as a whole, so that what it calls is not."""
    _RECORDERS.add(function.__code__)


def inside_recorder(above: int) -> bool:
    """True if, between that frame above the caller and the user's code, a function runs that is recorded as a whole."""
    frame = sys._getframe(above + 1)
    while frame is not None and not is_users(frame.f_code):
        if frame.f_code in _RECORDERS:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def may_be_recorded(inputs: Sequence[Value]) -> bool:
    """False in a function that is being traced, whose graph has shapes from the start, and while calls run again."""
    symbols = next((v for v in inputs if v.__class__ is Unshaped), None)
    return (symbols is not None and current_trace.get() is None and resolving.get() is None
            and all(v.trace is None or v.trace is symbols.trace for v in inputs))


def recorded(call: RecordedCall, stack: Stack) -> list[Unshaped]:
    """The symbols that a call gives."""
    trace = next(v.trace for v in call.inputs if isinstance(v, Unshaped))
    return [Unshaped(stack, trace, call, i) for i in range(call.results)]


class Late:
    """An operand that depends on the dtype of the operand beside it: made when that is known."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[Value], Any]) -> None:
        self.make = make


def _made(operands: list[Any]) -> tuple[Any, ...]:
    beside = next(x for x in operands if isinstance(x, Value))
    return tuple([x.make(beside) if x.__class__ is Late else x for x in operands])


def applied(run: Callable[[Op, tuple[Any, ...], Attributes], Value], op: Op, inputs: tuple[Any, ...],
            attributes: Attributes, stack: Stack) -> Value:
    """An operator on symbols of unknown shape: run if shapes are known here, recorded otherwise."""
    resolver = resolving.get()
    if resolver is not None:
        known = [resolver.resolve(x) if x.__class__ is Unshaped else x for x in inputs]
        return run(op, _made(known), attributes)
    inputs = tuple([owned(x) if isinstance(x, Value) else x for x in inputs])
    values = tuple([x for x in inputs if isinstance(x, Value)])
    if not may_be_recorded(values) or inside_recorder(2):
        raise unknown_shape(next(x for x in values if x.__class__ is Unshaped))
    places = [i for i, x in enumerate(inputs) if isinstance(x, Value)]

    def again(given: Sequence[Value]) -> list[Value]:
        operands = list(inputs)
        for i, v in zip(places, given, strict=True):
            operands[i] = v
        return [run(op, _made(operands), attributes)]

    shown = {name: "..." if x.__class__ is Late else str(x) for name, x in zip(op.inputs, inputs, strict=False)
             if not isinstance(x, Value)}
    shown |= {k: str(a) for k, a in zip(op.attributes, attributes, strict=True)}
    return recorded(RecordedCall(op.name, again, values, shown), stack)[0]
