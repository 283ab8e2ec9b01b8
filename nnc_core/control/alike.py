"""Checks of what loops and branches are given, and of what their bodies return."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from nnc_core.base.errors import DeviceError, DTypeError, OperandError, ShapeError
from nnc_core.stacks import Stack
from nnc_core.symbol import show_line, user_line
from nnc_core.type import Dim, TensorSpec, whole
from nnc_core.values.value import Value


def on_one_device(what: str, values: Sequence[Value]) -> None:
    """DeviceError unless all are where the first is."""
    for i, v in enumerate(values):
        if v.stack is not values[0].stack:
            raise DeviceError(f"{what}: value {i} is on {_device(v.stack)}, value 0 on {_device(values[0].stack)}",
                              hint="move one of them with .to(...)")


def _device(stack: Stack) -> str:
    return stack.device.spec.id


def alike(what: str, wanted: Sequence[TensorSpec], found: Sequence[Value], stack: Stack,
          hint: str = "what is carried keeps its shape; reshape, pad or broadcast it") -> None:
    """Each value of the dtype, shape and device that is wanted."""
    for i, (spec, v) in enumerate(zip(wanted, found, strict=True)):
        if v.spec.dtype != spec.dtype:
            raise DTypeError(f"{what}: value {i} is {v.spec}, it should be {spec}", hint="cast it with astype",
                             line=show_line(v.line or user_line()))
        if v.spec.shape != spec.shape:
            raise ShapeError(f"{what}: value {i} is {v.spec}, it should be {spec}", hint=hint,
                             line=show_line(v.line or user_line()))
        if v.stack is not stack:
            raise DeviceError(f"{what}: value {i} is on {_device(v.stack)}, it should be on {_device(stack)}",
                              hint="move it with .to(...)", line=show_line(v.line or user_line()))


def as_tuple(result: Any, what: str) -> tuple[Any, ...]:
    """The tuple that a function gave."""
    if not isinstance(result, (tuple, list)):
        raise OperandError(f"{what} gives {type(result).__name__}, not a tuple", hint="return (x,) for one value")
    return tuple(result)


def given_tuple(argument: Any, what: str) -> tuple[Any, ...]:
    """The tuple that an argument is."""
    if not isinstance(argument, (tuple, list)):
        raise OperandError(f"{what} is {type(argument).__name__}, not a tuple", hint="give (x,) for one value")
    return tuple(argument)


def functions(**given: Any) -> None:
    """OperandError unless all can be called."""
    for name, f in given.items():
        if not callable(f):
            raise OperandError(f"{name} is {type(f).__name__}, not a function",
                               hint="give a function, a module, or anything else that can be called")


def check_takes(what: str, f: Callable[..., Any], given: Sequence[Any]) -> None:
    """OperandError if f cannot be called with these arguments, as one that expects a single tuple cannot."""
    try:
        inspect.signature(f).bind(*given)
    except TypeError as error:
        raise OperandError(f"{what} is given {len(given)} arguments, one for each carried value: {error}",
                           hint=f"lambda {', '.join(f'x{i}' for i in range(len(given)))}: ...") from None
    except ValueError:  # it has no signature
        return


def length_of(rows: Sequence[Value], length: Any) -> Any:
    """The number of rows to go over."""
    if length is not None and not isinstance(length, Dim):
        length = whole(length, "length", 0)
    found = dict.fromkeys([v.shape[0] if v.shape else None for v in rows] + ([length] if length is not None else []))
    if None in found or len(found) != 1:
        raise ShapeError(f"no one length to go over: {', '.join(repr(v.spec) for v in rows)}; length={length}",
                         hint="give tensors with one length of first axis, or `length`")
    return next(iter(found))
