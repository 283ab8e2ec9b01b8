"""Rules of reductions."""

from __future__ import annotations

from nnc_core.base import dtype as dt
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.shape.axes import check_axes
from nnc_core.shape.elementwise import floating, inexact, ordered
from nnc_core.type import Dims, TensorSpec


def reduced_shape(shape: Dims, axis: tuple[int, ...], keepdims: bool) -> Dims:
    check_axes(axis, len(shape))
    if keepdims:
        return tuple(1 if i in axis else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in axis)


def reduction(x: TensorSpec, axis: tuple[int, ...], keepdims: bool) -> TensorSpec:
    """Numbers in, the same dtype out."""
    if x.dtype == dt.boolean:
        raise DTypeError("needs numbers, not booleans", hint="cast with astype")
    return TensorSpec(reduced_shape(x.shape, axis, keepdims), x.dtype)


def mean(x: TensorSpec, axis: tuple[int, ...], keepdims: bool) -> TensorSpec:
    """Floats in, floats out."""
    return reduction(inexact(x), axis, keepdims)


def real_mean(x: TensorSpec, axis: tuple[int, ...], keepdims: bool) -> TensorSpec:
    return reduction(floating(x), axis, keepdims)


def variance(x: TensorSpec, axis: tuple[int, ...], correction: float, keepdims: bool) -> TensorSpec:
    """Real floats, of complex numbers too."""
    return TensorSpec(mean(x, axis, keepdims).shape, dt.real_of(x.dtype))


def vector_norm(x: TensorSpec, axis: tuple[int, ...], ord: float, keepdims: bool) -> TensorSpec:
    """Real floats; the smallest and the largest magnitude need something to choose from."""
    if ord != ord:
        raise AttributeValueError("a norm of order NaN")
    return real_extremum(x, axis, keepdims) if ord < 0 else real_mean(x, axis, keepdims)


def real_extremum(x: TensorSpec, axis: tuple[int, ...], keepdims: bool) -> TensorSpec:
    return extremum(floating(x), axis, keepdims)


def extremum(x: TensorSpec, axis: tuple[int, ...], keepdims: bool) -> TensorSpec:
    """A `reduction` that refuses empty axes, as nothing has no extremum."""
    ordered(x)
    if any(x.shape[a] == 0 for a in axis if a < x.ndim):
        raise ShapeError(f"no extremum over an empty axis of {x}")
    return reduction(x, axis, keepdims)


def quantifier(x: TensorSpec, axis: tuple[int, ...], keepdims: bool) -> TensorSpec:
    """Booleans in, booleans out."""
    if x.dtype != dt.boolean:
        raise DTypeError(f"needs booleans, not {x.dtype}", hint="compare with 0")
    return TensorSpec(reduced_shape(x.shape, axis, keepdims), dt.boolean)


def position(x: TensorSpec, axis: int, keepdims: bool) -> TensorSpec:
    """int64 positions along one axis."""
    return TensorSpec(extremum(x, (axis,), keepdims).shape, dt.int64)
