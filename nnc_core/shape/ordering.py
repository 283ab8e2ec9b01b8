"""Rules of sorting and searching."""

from __future__ import annotations

from nnc_core.base.dtype import int64
from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.shape.axes import check_axes
from nnc_core.shape.elementwise import ordered, same_dtype
from nnc_core.type import TensorSpec


def sort(x: TensorSpec, axis: int, descending: bool) -> TensorSpec:
    """Elements that have an order; the result is like the input."""
    check_axes((axis,), x.ndim)
    return ordered(x)


def argsort(x: TensorSpec, axis: int, descending: bool) -> TensorSpec:
    return TensorSpec(sort(x, axis, descending).shape, int64)


def arg_top_k(x: TensorSpec, axis: int, k: int, largest: bool) -> TensorSpec:
    """k positions along the axis, at most as many as it has."""
    sort(x, axis, largest)
    length = x.shape[axis]
    if k < 0 or (isinstance(length, int) and k > length):
        raise AttributeValueError(f"k {k} should be from 0 to {length}, the length of axis {axis} of {x}")
    return TensorSpec(tuple(k if i == axis else n for i, n in enumerate(x.shape)), int64)


def lexsort(keys: TensorSpec, axis: int) -> TensorSpec:
    """Keys along the first axis; each orders along an axis of the others."""
    if keys.ndim < 2 or keys.shape[0] == 0:
        raise ShapeError(f"{keys} are no keys: the first axis numbers them, another holds what they order")
    check_axes((axis,), keys.ndim - 1)
    return TensorSpec(ordered(keys).shape[1:], int64)


def searchsorted(x: TensorSpec, values: TensorSpec, right: bool) -> TensorSpec:
    """One position in x for each value."""
    if x.ndim != 1:
        raise ShapeError(f"{x} is no sequence: what is searched has one axis")
    same_dtype(x, values)
    return TensorSpec(ordered(values).shape, int64)
