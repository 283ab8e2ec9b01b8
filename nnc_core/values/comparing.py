"""Comparisons of integers with Python numbers that their dtype cannot hold: answered by value, as in NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from nnc_core.base.dtype import is_integer
from nnc_core.operator import OPERATORS
from nnc_core.type import Op
from nnc_core.values.value import Value

_COMPARISONS: dict[Op, Callable[[int, int], bool]] = {
    OPERATORS["equal"]: operator.eq, OPERATORS["not_equal"]: operator.ne, OPERATORS["less"]: operator.lt,
    OPERATORS["less_equal"]: operator.le, OPERATORS["greater"]: operator.gt, OPERATORS["greater_equal"]: operator.ge,
}  # fmt: skip


def by_value(op: Op, inputs: tuple[Any, ...]) -> tuple[Op, tuple[Any, ...]]:
    """An operator and its operands; where every element compares alike with a number out of range, the comparison of
    the array with itself that has this result."""
    compare = _COMPARISONS.get(op)
    if compare is None:
        return op, inputs
    a, b = inputs
    if a.__class__ is int and _cannot_hold(b, a):
        return OPERATORS["equal" if compare(a, 0) else "not_equal"], (b, b)
    if b.__class__ is int and _cannot_hold(a, b):
        return OPERATORS["equal" if compare(0, b) else "not_equal"], (a, a)
    return op, inputs


def _cannot_hold(x: Any, number: int) -> bool:
    if not isinstance(x, Value) or not is_integer(x.dtype):
        return False
    limits = np.iinfo(x.dtype)
    return not limits.min <= number <= limits.max
