"""NumPy's options of reductions: `where` says which elements are taken, `initial` with which number they begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.errors import DTypeError, OperandError, ShapeError
from nnc_core.shape.elementwise import broadcast
from nnc_core.values.arguments import ArrayLike, as_value, stack_of
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value


def with_mask(x: ArrayLike, where: ArrayLike) -> tuple[Value, Value | None]:
    """The array, and where it is taken; None where all of it is.

    Raises DTypeError for a mask that is not boolean, and ShapeError for one that is no mask of the array's shape.
    """
    if where is True:
        return as_value(x), None
    stack = stack_of((x, where))
    v, mask = as_value(x, stack), as_value(where, stack)
    if mask.dtype != dt.boolean:
        raise DTypeError(f"where= is {mask.dtype}, not bool", hint="compare it: mask != 0")
    if broadcast(v.shape, mask.shape) != v.shape:
        raise ShapeError(f"where= of {list(mask.shape)} is no mask of {list(v.shape)}",
                         hint="broadcast the array first")
    return v, mask


def taken(v: Value, mask: Value | None, otherwise: Any) -> Value:
    """The elements where the mask is true, and a number elsewhere."""
    return v if mask is None else F.where(mask, v, otherwise)


def count_taken(v: Value, mask: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """int64: how many elements along axes are taken."""
    whole = F.broadcast_to(F.cast(mask, dtype=dt.int64), shape=v.shape)
    return F.sum(whole, axis=axes, keepdims=keepdims)


def begun(y: Value, initial: ArrayLike | None, combine: Callable[[Any, Any], Value], dtype: dt.DType) -> Value:
    """A result combined with the number with which it begins; DTypeError if it is no longer of the dtype so."""
    found = y if initial is None else combine(y, start_of(initial))
    if found.dtype != dtype:
        raise DTypeError(f"initial={initial!r} is no number of {dtype}", hint="cast the array with astype")
    return found


def start_of(initial: ArrayLike) -> Any:
    """The number as an operand: of NumPy's scalars the number of Python."""
    if isinstance(initial, (np.generic, np.ndarray)) and initial.ndim == 0:
        return initial.item()
    if isinstance(initial, (bool, int, float, complex)):
        return initial
    if isinstance(initial, Tensor) and initial.ndim == 0:
        return as_value(initial)
    raise OperandError(f"initial={initial!r} is no number")
