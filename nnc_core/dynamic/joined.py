"""Nested lists with tensors in them, made one array by operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

from nnc_core.base.dtype import DType
from nnc_core.base.errors import ShapeError
from nnc_core.composition import Stack
from nnc_core.dynamic.dispatch import F
from nnc_core.dynamic.tensor import Tensor, holds_tensors, operand
from nnc_core.dynamic.value import Value
from nnc_core.symbol import show_line, user_line
from nnc_core.type import promote, promote_number


def joined(xs: Sequence[Any], stack: Stack | None = None) -> Value:
    """The elements along a new first axis, in their common dtype; numbers are weak, as they are beside an operator.

    Host arrays go where the tensors are.  ShapeError where elements are not all of one shape.
    """
    stack = stack or next(_tensors(xs))._value.stack
    elements = [joined(x, stack) if isinstance(x, (list, tuple)) and holds_tensors(x) else operand(x, stack)
                for x in xs]  # fmt: skip
    values = [x for x in elements if isinstance(x, Value)]
    numbers = [x for x in elements if not isinstance(x, Value)]
    _check(values, numbers)
    dtype = reduce(promote_number, numbers, reduce(promote, [v.dtype for v in values]))
    like = _row(values[0], dtype)
    return F.concat(*[_row(x, dtype) if isinstance(x, Value) else F.full_like(like, x) for x in elements], axis=0)


def _tensors(xs: Sequence[Any]) -> Iterator[Tensor]:
    for x in xs:
        if isinstance(x, Tensor):
            yield x
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
