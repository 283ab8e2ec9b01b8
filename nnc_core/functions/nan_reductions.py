"""Reductions and scans that pass NaN over.

Of what is no floating-point number they are the plain functions.  The elements passed over get no gradient.
"""

from __future__ import annotations

from math import inf
from typing import Any

from nnc_core.base.dtype import accumulator, int64, is_complex, is_inexact, real_of
from nnc_core.functions.cumulative import along
from nnc_core.functions.pieces import flat
from nnc_core.functions.reduction import as_dtype, as_summed, in_dtype, mean, std, var
from nnc_core.shape.axes import normalise_axes, normalise_axis
from nnc_core.values.arguments import ArrayLike, Axis, as_value, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value
from nnc_core.values.whole import as_whole

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum",
    "nanvar",
]  # fmt: skip


def without_nan(v: Value, number: float) -> Value:
    """Another number in the place of NaN."""
    return F.where(F.equal(v, v), v, number) if is_inexact(v.dtype) else v


def counts(v: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """int64: how many elements are not NaN."""
    return F.sum(as_dtype(F.equal(v, v), int64), axis=axes, keepdims=keepdims)


def _ready(x: ArrayLike, axis: Axis, dtype: Any = None) -> tuple[Value, tuple[int, ...]]:
    v = in_dtype(as_value(x), dtype)
    return v, normalise_axes(axis, v.ndim)


@by_shapes
@names_itself
def nansum(x: ArrayLike, /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    """Sum of what is not NaN; 0 where nothing is left."""
    v, axes = _ready(x, axis)
    return Tensor(F.sum(as_summed(without_nan(v, 0), dtype), axis=axes, keepdims=keepdims))


@by_shapes
@names_itself
def nanprod(x: ArrayLike, /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    """Product of what is not NaN; 1 where nothing is left."""
    v, axes = _ready(x, axis)
    return Tensor(F.prod(as_summed(without_nan(v, 1), dtype), axis=axes, keepdims=keepdims))


def _mean(v: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """Halves in float32."""
    wide = accumulator(v.dtype)
    total = F.sum(as_dtype(without_nan(v, 0), wide), axis=axes, keepdims=keepdims)
    return F.divide(total, as_dtype(counts(v, axes, keepdims), wide))


@by_shapes
@names_itself
def nanmean(x: ArrayLike, /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    """Mean of what is not NaN; NaN where nothing is left.  In the dtype that is given, if one is."""
    v, axes = _ready(x, axis, dtype)
    if not is_inexact(v.dtype):
        return mean(Tensor(v), axis=axis, keepdims=keepdims)
    return Tensor(as_dtype(_mean(v, axes, keepdims), v.dtype))


def _variance(v: Value, axes: tuple[int, ...], correction: float, keepdims: bool) -> Value:
    """In the accumulating dtype; NaN where no more elements are left than the correction."""
    wide = accumulator(v.dtype)
    away = F.subtract(as_dtype(v, wide), _mean(v, axes, True))
    away = F.where(F.equal(v, v), away, 0)
    squares = F.real(F.multiply(away, F.conjugate(away))) if is_complex(wide) else F.multiply(away, away)
    degrees = F.subtract(as_dtype(counts(v, axes, keepdims), real_of(wide)), correction)
    total = F.sum(squares, axis=axes, keepdims=keepdims)
    return F.where(F.greater(degrees, 0), F.divide(total, degrees), float("nan"))


@by_shapes
@names_itself
def nanvar(x: ArrayLike, /, axis: Axis = None, dtype: Any = None, *, correction: float = 0.0,
           keepdims: bool = False) -> Tensor:
    """Variance of what is not NaN; NaN where no more elements are left than the correction."""
    v, axes = _ready(x, axis, dtype)
    if not is_inexact(v.dtype):
        return var(Tensor(v), axis=axis, correction=correction, keepdims=keepdims)
    return Tensor(as_dtype(_variance(v, axes, float(correction), keepdims), real_of(v.dtype)))


@by_shapes
@names_itself
def nanstd(x: ArrayLike, /, axis: Axis = None, dtype: Any = None, *, correction: float = 0.0,
           keepdims: bool = False) -> Tensor:
    """The square root of `nanvar`."""
    v, axes = _ready(x, axis, dtype)
    if not is_inexact(v.dtype):
        return std(Tensor(v), axis=axis, correction=correction, keepdims=keepdims)
    return Tensor(as_dtype(F.sqrt(_variance(v, axes, float(correction), keepdims)), real_of(v.dtype)))


def _extremum(v: Value, axes: tuple[int, ...], largest: bool, keepdims: bool) -> Value:
    reduce = F.max if largest else F.min
    if not is_inexact(v.dtype):
        return reduce(v, axis=axes, keepdims=keepdims)
    if (found := as_whole("extremum_without_nan", (v,), (axes, largest, bool(keepdims)))) is not None:
        return found  # type: ignore[no-any-return]
    y = reduce(without_nan(v, -inf if largest else inf), axis=axes, keepdims=keepdims)
    return F.where(F.greater(counts(v, axes, keepdims), 0), y, float("nan"))


@by_shapes
@names_itself
def nanmax(x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The largest of what is not NaN; NaN where nothing is left."""
    v, axes = _ready(x, axis)
    return Tensor(_extremum(v, axes, True, keepdims))


@by_shapes
@names_itself
def nanmin(x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The smallest of what is not NaN; NaN where nothing is left."""
    v, axes = _ready(x, axis)
    return Tensor(_extremum(v, axes, False, keepdims))


def _position(x: ArrayLike, axis: int | None, largest: bool, keepdims: bool) -> Tensor:
    """Index of the extremum's first occurrence: NaN is equal to nothing."""
    v = as_value(x)
    ndim = v.ndim
    v, a = (flat(v), 0) if axis is None else (v, normalise_axis(axis, ndim))
    hits = F.equal(v, _extremum(v, (a,), largest, True))
    place = F.argmax(as_dtype(hits, int64), axis=a, keepdims=keepdims and axis is not None)
    if is_inexact(v.dtype):
        place = F.where(F.any(hits, axis=(a,), keepdims=keepdims and axis is not None), place, -1)
    return Tensor(F.reshape(place, shape=(1,) * ndim) if keepdims and axis is None else place)


@by_shapes
@names_itself
def nanargmax(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """int64 position of the largest of what is not NaN; -1 where nothing is left (NumPy raises an error there)."""
    return _position(x, axis, True, keepdims)


@by_shapes
@names_itself
def nanargmin(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """int64 position of the smallest of what is not NaN; -1 where nothing is left (NumPy raises an error there)."""
    return _position(x, axis, False, keepdims)


@by_shapes
@names_itself
def nancumsum(x: ArrayLike, /, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Cumulative sum with NaN as 0; of the flattened array without an axis."""
    v, a = along(as_summed(without_nan(as_value(x), 0), dtype), axis)
    return Tensor(F.cumulative_sum(v, axis=a))


@by_shapes
@names_itself
def nancumprod(x: ArrayLike, /, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Cumulative product with NaN as 1; of the flattened array without an axis."""
    v, a = along(as_summed(without_nan(as_value(x), 1), dtype), axis)
    return Tensor(F.cumulative_prod(v, axis=a))
