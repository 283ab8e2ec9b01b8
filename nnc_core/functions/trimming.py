"""Vectors without the zeros at their ends."""

from __future__ import annotations

from nnc_core.base.dtype import int64
from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.functions.selection import places_of
from nnc_core.values.arguments import ArrayLike, as_value, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor

__all__ = ["trim_zeros"]


@names_itself
def trim_zeros(x: ArrayLike, /, trim: str = "fb") -> Tensor:
    """A vector without the zeros before its first and behind its last other element; `trim` "f" or "b": only there.

    How long it is depends on data.
    """
    v = as_value(x)
    if v.ndim != 1:
        raise ShapeError(f"{v.spec} is no vector")
    if trim.lower() not in ("f", "b", "fb", "bf"):
        raise AttributeValueError(f"trim {trim!r} is none of 'f', 'b', 'fb'")
    marks = F.cast(F.not_equal(v, F.number(0, v.dtype, v)), dtype=int64)
    kept = F.greater_equal(marks, 0)
    for end, backwards in (("f", False), ("b", True)):
        if end in trim.lower():
            kept = F.logical_and(kept, F.greater(F.cumulative_sum(marks, axis=0, reverse=backwards), 0))
    return Tensor(F.take(v, places_of(kept), axis=0))
