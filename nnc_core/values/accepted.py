"""The eager kernels that a stack remembers for operands that inference has accepted: the fast path reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from nnc_core.base.dtype import COMPLEX, FLOATS, INTEGERS, DType
from nnc_core.operator import OPERATORS
from nnc_core.operator.declare import ALL_INPUTS
from nnc_core.stacks import Stack
from nnc_core.type import Attributes, Op
from nnc_core.values.value import Value

MOST_ACCEPTED = 4096
"""Kernels that a stack remembers at a time."""
GET_ITEM, SET_ITEM = ("getitem",), ("setitem",)
"""Keys of the kernels that read and write items, which several operators do otherwise."""
WHOLE = 1 << 16
"""The bit of a first operand that is a Python integer; kernels check that arrays of integers can hold it."""
_INEXACT, _INTEGERS = frozenset(FLOATS + COMPLEX), frozenset(INTEGERS)
_TRANSFER = OPERATORS["transfer"]


def accept_items(stack: Stack, key: tuple[str]) -> None:
    """Remember the kernel that reads or writes items, where items have been read or written by operators."""
    kernel = stack.device.eager.get(key[0])
    if kernel is not None and stack.infers_by_dtype and not stack.operator.replaced:
        stack.accepted[key] = kernel


def accept(op: Op, inputs: tuple[Any, ...], attributes: Attributes, stack: Stack) -> None:
    """Remember the eager kernel for operands that inference has accepted and that need no promotion.

    Attributes are remembered with operators whose result has the dtype that an attribute names, and of those without
    operands.  A stack with layers
    of its own for types or shapes is asked each time: what it refuses may depend on anything.
    """
    kernel = stack.device.eager.get(op.name)
    if kernel is None or op is _TRANSFER or not stack.infers_by_dtype:
        return
    if not inputs:
        _remember((op, attributes), kernel, stack)
        return
    dtypes, numbers = _dtypes(inputs)
    for_dtypes = getattr(kernel, "for_dtypes", None)
    if for_dtypes is not None:
        kernel = for_dtypes(dtypes)
    promoted = _promoted(op, inputs) if dtypes.__class__ is tuple and op.promote else dtypes
    if promoted is None:
        return
    if promoted in _INEXACT or not (op.to_float or (numbers if promoted not in _INTEGERS else numbers % WHOLE)):
        _remember((op, dtypes, numbers, attributes) if op.names_dtype else (op, dtypes, numbers), kernel, stack)


class Accepted(NamedTuple):
    """A kernel that is remembered for some operands, with what it is called with."""

    kernel: Callable[..., Any]
    arrays: list[Any]
    """Arrays of the values, and numbers as they are."""
    stack: Stack
    takes_values: bool
    """Whether there are no numbers."""


def kernel_for(op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> Accepted | None:
    """The kernel remembered for operands with arrays, on a stack whose operators are nnc's own; None if there is none.

    `dispatch` asks the same for operands that no gradient is asked through, without a call."""
    stack, dtypes, arrays, numbers = None, None, [], 0
    for x in inputs:
        if x.__class__ is Value:
            array = x.array
            if array is None or array.__class__ is tuple:
                return None
            if stack is None:
                dtypes, stack = array.dtype, x.stack
            elif x.stack is not stack:
                return None
            elif array.dtype is not dtypes:
                dtypes = (dtypes, len(arrays), array.dtype)
            arrays.append(array)
        elif x.__class__ is float or x.__class__ is int:
            numbers |= (1 if x.__class__ is float else WHOLE) << len(arrays)
            arrays.append(x)
        else:
            return None
    if stack is None or stack.operator.replaced:
        return None
    kernel = stack.accepted.get((op, dtypes, numbers, attributes) if op.names_dtype else (op, dtypes, numbers))
    return None if kernel is None else Accepted(kernel, arrays, stack, not numbers)


def _remember(key: tuple[Any, ...], kernel: Callable[..., Any], stack: Stack) -> None:
    if len(stack.accepted) >= MOST_ACCEPTED:
        stack.accepted.clear()
    stack.accepted[key] = kernel


def _dtypes(inputs: tuple[Any, ...]) -> tuple[Any, int]:
    """The dtype of the values, and the places of the numbers as bits, those of integers apart.

    Of several dtypes: the first, joined by place and dtype of each value from the first with another one on.

    No dtype where an operand is neither a value nor one of the numbers that the fast path takes.
    """
    found: Any = None
    numbers = 0
    for place, x in enumerate(inputs):
        if x.__class__ is float or x.__class__ is int:
            numbers |= (1 if x.__class__ is float else WHOLE) << place
        elif x.__class__ is not Value:
            return None, 0
        elif found is None:
            found = x.dtype
        elif x.dtype is not found:
            found = (found, place, x.dtype)
    return found, numbers


def _promoted(op: Op, inputs: tuple[Any, ...]) -> DType | None:
    """The one dtype of the operands that promote together; None where there are several, or a number elsewhere."""
    together = range(len(inputs)) if op.promote == ALL_INPUTS else op.promote
    if any([x.__class__ is not Value and i not in together for i, x in enumerate(inputs)]):
        return None
    found = {inputs[i].dtype for i in together if inputs[i].__class__ is Value}
    return found.pop() if len(found) == 1 else None
