"""Reductions: sums, extremes and where they are, truth."""

from __future__ import annotations

from typing import Any

from nnc_core.base import dtype as dt
from nnc_core.dynamic.dispatch import F
from nnc_core.dynamic.functions.face import ArrayLike, Axis, as_value, count_of, located
from nnc_core.dynamic.tensor import Tensor
from nnc_core.dynamic.value import Value
from nnc_core.shape.axes import normalise_axes, normalise_axis
from nnc_core.type import admit_numpy

__all__ = ["all", "any", "argmax", "argmin", "max", "mean", "min", "sum"]


@located
def sum(x: ArrayLike, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Sum over axes; small integers and booleans are summed as int64 (uint64 for unsigned)."""
    v = as_value(x)
    wanted = admit_numpy(dtype) if dtype is not None else _sum_dtype(v.dtype)
    v = v if v.dtype == wanted else F.cast(v, dtype=wanted)
    return Tensor(F.sum(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))


def _sum_dtype(dtype: Any) -> Any:
    return dtype if dt.is_float(dtype) else dt.uint64 if dtype in dt.UNSIGNED else dt.int64


@located
def mean(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Mean over axes; of integers in the default float dtype."""
    v = as_value(x)
    if not dt.is_float(v.dtype):
        v = F.divide(v, 1)
    return Tensor(F.mean(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))


@located
def max(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Maximum over axes; NaN wins."""
    v = as_value(x)
    return Tensor(F.max(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))


@located
def min(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Minimum over axes; NaN wins."""
    v = as_value(x)
    return Tensor(F.min(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))


def _position(name: str, x: ArrayLike, axis: int | None, keepdims: bool) -> Tensor:
    v = as_value(x)
    method = getattr(F, name)
    if axis is not None:
        return Tensor(method(v, axis=normalise_axis(axis, v.ndim), keepdims=keepdims))
    flat = method(F.reshape(v, shape=(count_of(v.shape),)), axis=0, keepdims=False)
    return Tensor(F.reshape(flat, shape=(1,) * v.ndim) if keepdims else flat)


@located
def argmax(x: ArrayLike, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """int64 position of the first maximum; in the flattened array without an axis."""
    return _position("argmax", x, axis, keepdims)


@located
def argmin(x: ArrayLike, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """int64 position of the first minimum; in the flattened array without an axis."""
    return _position("argmin", x, axis, keepdims)


def _boolean(v: Value) -> Value:
    return v if v.dtype == dt.boolean else F.cast(v, dtype=dt.boolean)


@located
def all(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether all elements along axes are true (not zero)."""
    v = _boolean(as_value(x))
    return Tensor(F.all(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))


@located
def any(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether an element along axes is true (not zero)."""
    v = _boolean(as_value(x))
    return Tensor(F.any(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))
