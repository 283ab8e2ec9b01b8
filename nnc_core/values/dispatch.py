"""The one dispatcher: run an operator now, or record it.

Kernel first: operands that are there and agree go straight to the device's eager kernel.  Everything else takes the
slow way, which knows why.
"""

from __future__ import annotations

from typing import Any

from nnc_core.base.fast_path import CLOSED_BY
from nnc_core.symbol import user_line
from nnc_core.type import Attributes, Op
from nnc_core.values.accepted import WHOLE, kernel_for
from nnc_core.values.modes import current_stack, gradients, lazy
from nnc_core.values.namespace import F
from nnc_core.values.prepared import has_own_rule
from nnc_core.values.slow_way import agreeing, apply_slowly
from nnc_core.values.value import Step, Value

__all__ = ["F", "dispatch"]


def dispatch(op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> Value:
    """Values and Python numbers in, a value out."""
    if not lazy.get() and not CLOSED_BY:
        stack, dtypes, arrays, numbers = None, None, [], 0
        for x in inputs:
            if x.__class__ is Value:
                array = x.array
                if array is None:
                    break
                if x.tracked and gradients.get():
                    return _followed(op, inputs, attributes)
                if stack is None:
                    dtypes, stack = array.dtype, x.stack
                elif x.stack is not stack:
                    break
                elif array.dtype is not dtypes:
                    dtypes = (dtypes, len(arrays), array.dtype)
                arrays.append(array)
            elif x.__class__ is float:
                numbers |= 1 << len(arrays)
                arrays.append(x)
            elif x.__class__ is int:
                numbers |= WHOLE << len(arrays)
                arrays.append(x)
            else:
                break
        else:
            if stack is not None:
                kernel = stack.accepted.get((op, dtypes, numbers))
                if kernel is None and op.names_dtype:
                    kernel = stack.accepted.get((op, dtypes, numbers, attributes))
                if kernel is not None:
                    try:
                        result = kernel(*arrays, *attributes)
                    except Exception:
                        result = NotImplemented  # the slow way finds out why
                    if result is not NotImplemented:
                        return Value(result, stack)
            elif not inputs:
                return _created(op, attributes)
    return apply_slowly(op, inputs, attributes)


def _created(op: Op, attributes: Attributes) -> Value:
    """A value of attributes alone, on the device in use."""
    stack = current_stack()
    kernel = stack.accepted.get((op, attributes))
    if kernel is not None:
        try:
            result = kernel(*attributes)
        except Exception:
            result = NotImplemented  # the slow way finds out why
        if result is not NotImplemented:
            return Value(result, stack)
    return apply_slowly(op, (), attributes)


def _followed(op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> Value:
    """A value that gradients may be asked through: by the same kernels, with the step that it comes from."""
    known = kernel_for(op, inputs, attributes) if has_own_rule(op) else None
    if known is not None:
        try:
            result = known.kernel(*known.arrays, *attributes)
        except Exception:
            result = NotImplemented  # the slow way finds out why
        if result is not NotImplemented:
            if not op.differentiable:
                return Value(result, known.stack)
            operands = inputs if known.takes_values else agreeing(op, inputs) or F.operands(op, inputs)
            return Value(result, known.stack, None, Step(op, operands, attributes, user_line()), True)
    return apply_slowly(op, inputs, attributes)


F.apply, F.apply_slowly = dispatch, apply_slowly
