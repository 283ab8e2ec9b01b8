"""Operands made values: tensors, host arrays, nested lists, which may have tensors in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, is_inexact
from nnc_core.base.errors import Error, OperandError, ShapeError
from nnc_core.stacks import Stack
from nnc_core.symbol import show_line, user_line
from nnc_core.type import Dim, promote, promote_number
from nnc_core.values.dispatch import F
from nnc_core.values.from_host import dtype_given, host_value
from nnc_core.values.modes import current_trace
from nnc_core.values.value import Handle, Value

_NUMBERS = {bool, int, float, complex}


def value_of(t: Handle) -> Value:
    """The value a tensor points at; a running trace notes that it was read from outside."""
    value = t._value
    trace = current_trace.get()
    if trace is not None and value.trace is None:
        trace.note(t)
    return value


def copied(value: Value) -> Value:
    """The same elements in memory of their own, so that a program which was handed one cannot write into the other.

    Symbols stay as they are: what compiled code gives is in memory of its own.
    """
    return value if value.trace is not None else F.copy(value)


def operand(x: Any, stack: Stack | None = None, beside: DType | None = None) -> Any:
    """A value, or a Python number as it is; NumPy arrays and lists become values of that device, or the current one.

    Python floats in lists get the dtype of the floats `beside` them.
    """
    if isinstance(x, Handle):
        return value_of(x)
    if isinstance(x, (bool, int, float, complex, np.generic, Dim)):
        return x
    if isinstance(x, (np.ndarray, list, tuple)):
        try:
            return listed_value(x, stack, beside)
        except Error as error:
            error.locate(line=show_line(user_line()))
            raise
    if hasattr(type(x), "__nnc_tensor__"):
        return value_of(x.__nnc_tensor__())
    raise OperandError(f"{type(x).__name__} is no array and no number", line=show_line(user_line()),
                       hint=getattr(type(x), "operand_hint", "make it an array with nnc.asarray"))


def listed_value(x: Any, stack: Stack | None, beside: DType | None = None) -> Value:
    """A host array or nested lists as a value; tensors in lists are joined by operators, which gradients follow."""
    if isinstance(x, (list, tuple)) and holds_tensors(x):
        return joined(x, stack)
    return host_value(x, stack=stack, beside=beside)


def holds_tensors(xs: Sequence[Any]) -> bool:
    """Tell whether nested lists hold a tensor."""
    kinds = set(map(type, xs))  # without a step of Python for each of a million numbers
    if kinds <= _NUMBERS:
        return False
    if any(issubclass(kind, Handle) or hasattr(kind, "__nnc_tensor__") for kind in kinds):
        return True
    return bool(kinds & {list, tuple}) and any(isinstance(x, (list, tuple)) and holds_tensors(x) for x in xs)


# ---- lists that hold tensors
def joined(xs: Sequence[Any], stack: Stack | None = None) -> Value:
    """The elements along a new first axis, in their common dtype; numbers are weak, as they are beside an operator.

    Host arrays go where the tensors are.  ShapeError where elements are not all of one shape.
    """
    stack = stack or next(_tensors(xs))._value.stack
    given = dtype_given(xs)
    beside = given if given is not None and is_inexact(given) else None
    elements = [joined(x, stack) if isinstance(x, (list, tuple)) and holds_tensors(x) else operand(x, stack, beside)
                for x in xs]  # fmt: skip
    values = [x for x in elements if isinstance(x, Value)]
    numbers = [x for x in elements if not isinstance(x, Value)]
    _check(values, numbers)
    dtype = reduce(promote_number, numbers, reduce(promote, [v.dtype for v in values]))
    like = _row(values[0], dtype)
    return F.concat(*[_row(x, dtype) if isinstance(x, Value) else F.full_like(like, x) for x in elements], axis=0)


def _tensors(xs: Sequence[Any]) -> Iterator[Handle]:
    for x in xs:
        if isinstance(x, Handle):
            yield x
        elif hasattr(type(x), "__nnc_tensor__"):
            yield x.__nnc_tensor__()
        elif isinstance(x, (list, tuple)):
            yield from _tensors(x)


def _check(values: Sequence[Value], numbers: Sequence[Any]) -> None:
    shape = () if numbers else values[0].shape
    other = next((v for v in values if v.shape != shape), None)
    if other is not None:
        first = f"the number {numbers[0]!r}" if numbers else values[0].spec
        raise ShapeError(f"a list has {first} beside {other.spec}", hint="elements of a list need one shape",
                         line=show_line(user_line()))


def _row(v: Value, dtype: DType) -> Value:
    v = v if v.dtype == dtype else F.cast(v, dtype=dtype)
    return F.reshape(v, shape=(1, *v.shape))
