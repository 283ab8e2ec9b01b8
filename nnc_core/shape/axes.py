"""Axes as users write them (negative, single, None) and as operators hold them (sorted, non-negative)."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.base.errors import AttributeValueError, AxisError
from nnc_core.type import whole


def normalise_axis(axis: int, ndim: int) -> int:
    """0 <= axis < ndim; AxisError if it is out of range."""
    index = axis if axis.__class__ is int else whole(axis, "axis")
    if not -ndim <= index < ndim:
        raise AxisError(f"axis {index} is out of range for {ndim} dimensions", hint=f"-{ndim} <= axis < {ndim}")
    return index % ndim


def normalise_axes(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Sorted, unique and non-negative; None means all."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(sorted(normalise_axis(a, ndim) for a in given))
    if len(set(axes)) != len(axes):
        raise AttributeValueError(f"axis {axis} names an axis twice")
    return axes


def check_axes(axes: tuple[int, ...], ndim: int) -> None:
    """AxisError unless every axis is in canonical form."""
    for axis in axes:
        if not 0 <= axis < ndim:
            raise AxisError(f"axis {axis} is out of range for {ndim} dimensions")
