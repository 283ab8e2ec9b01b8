"""Rules of scans along one axis."""

from __future__ import annotations

from nnc_core.base.dtype import int64
from nnc_core.base.errors import ShapeError
from nnc_core.shape.axes import check_axes
from nnc_core.shape.elementwise import arithmetic, floating, real_arithmetic
from nnc_core.type import TensorSpec


def cumulative(x: TensorSpec, axis: int, reverse: bool) -> TensorSpec:
    """Numbers in, the same out."""
    check_axes((axis,), x.ndim)
    return arithmetic(x)


def extremum(x: TensorSpec, axis: int, reverse: bool) -> TensorSpec:
    return real_arithmetic(cumulative(x, axis, reverse))


def position(x: TensorSpec, axis: int, reverse: bool) -> TensorSpec:
    """int64 positions along the axis."""
    return TensorSpec(extremum(x, axis, reverse).shape, int64)


def logarithmic(x: TensorSpec, axis: int, reverse: bool) -> TensorSpec:
    """Floats in, floats out."""
    return floating(cumulative(x, axis, reverse))


def recurrence(factor: TensorSpec, value: TensorSpec, axis: int, reverse: bool) -> TensorSpec:
    """Two arrays of one shape."""
    if factor.shape != value.shape:
        raise ShapeError(f"factors {factor} and values {value} differ in shape", hint="broadcast them first")
    check_axes((axis,), value.ndim)
    return arithmetic(factor, value)
