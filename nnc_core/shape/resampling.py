"""Rules of operators that make each element along an axis a weighted sum of a few others."""

from __future__ import annotations

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import accumulator
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.shape.axes import check_axes
from nnc_core.shape.elementwise import floating
from nnc_core.type import DimLike, TensorSpec

Reach = tuple[int, int, int, int]


def _check_tables(x: TensorSpec, indices: TensorSpec, weights: TensorSpec, axis: int, reach: Reach) -> None:
    check_axes((axis,), floating(x).ndim)
    if not dt.is_integer(indices.dtype):
        raise DTypeError(f"the indices are {indices.dtype}, not integers")
    if weights.dtype != accumulator(x.dtype):
        raise DTypeError(f"the weights of {x.dtype} are {weights.dtype}, not {accumulator(x.dtype)}")
    if indices.ndim != 2 or weights.shape != indices.shape:
        raise ShapeError(f"indices {indices} and weights {weights} should have one row for each result")
    if len(reach) != 4 or reach[1] < 1 or reach[3] < 0:
        raise AttributeValueError(f"reach {reach} should be (numerator, denominator >= 1, offset, count >= 0)")


def resample(x: TensorSpec, indices: TensorSpec, weights: TensorSpec, axis: int, reach: Reach) -> TensorSpec:
    """Elements along the axis, as many as the tables have rows."""
    _check_tables(x, indices, weights, axis, reach)
    return TensorSpec((*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :]), x.dtype)


def spread(g: TensorSpec, indices: TensorSpec, weights: TensorSpec, axis: int, size: DimLike,
           reach: Reach) -> TensorSpec:
    """`size` elements along the axis."""
    _check_tables(g, indices, weights, axis, reach)
    if g.shape[axis] != indices.shape[0]:
        raise ShapeError(f"{g} has {g.shape[axis]} elements along axis {axis}, the tables {indices.shape[0]} rows")
    return TensorSpec((*g.shape[:axis], size, *g.shape[axis + 1 :]), g.dtype)
