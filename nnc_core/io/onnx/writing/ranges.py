"""Floats that are known to be numbers of an integer dtype: models that were read say so where they are cast."""

from __future__ import annotations

import numpy as np

from nnc_core.base.dtype import DType
from nnc_core.operator import OPERATORS
from nnc_core.optimiser.inspect import number_of
from nnc_core.symbol import Node

_CLIP, _MAXIMUM, _WHERE = OPERATORS["clip"], OPERATORS["maximum"], OPERATORS["where"]
_GREATER_EQUAL, _NOT_EQUAL = OPERATORS["greater_equal"], OPERATORS["not_equal"]


def is_nan_test(node: Node) -> bool:
    """Tell whether this asks which elements of its operand are NaN."""
    return node.op is _NOT_EQUAL and node.inputs[0] is node.inputs[1]


def fits(node: Node, target: DType) -> bool:
    """Tell whether floats are between the ends of these integers, and no NaN, for what was done to them last: they were
    clipped, or what is too large was replaced and the larger taken of the rest and a bound."""
    limits = np.iinfo(target)
    if node.op is _CLIP:
        x, low, high = node.inputs
        bounds = _number(low), _number(high)
    elif node.op is _WHERE and node.inputs[0].op is _GREATER_EQUAL and node.inputs[2].op is _MAXIMUM:
        (x, above), (again, low) = node.inputs[0].inputs, node.inputs[2].inputs
        instead, end = _number(node.inputs[1]), _number(above)
        if again is not x or instead is None or not limits.min <= instead <= limits.max or end is None:
            return False
        bounds = _number(low), float(np.nextafter(node.dtype.type(end), node.dtype.type(0)))
    else:
        return False
    return _is_no_nan(x) and all([b is not None and limits.min <= int(b) <= limits.max for b in bounds])


def _number(node: Node) -> float | None:
    """The number that a constant is everywhere, if it is one and finite."""
    found = number_of(node)
    value = None if found is None else float(found.value)
    return value if value is not None and np.isfinite(value) else None


def _is_no_nan(node: Node) -> bool:
    """Tell whether NaN were replaced by a number."""
    return (node.op is _WHERE and is_nan_test(node.inputs[0]) and node.inputs[0].inputs[0] is node.inputs[2]
            and _number(node.inputs[1]) is not None)
