"""Reductions: sums, products, extremes and where they are, truth."""

from __future__ import annotations

from typing import Any

from nnc_core.base import dtype as dt
from nnc_core.shape.axes import normalise_axes, normalise_axis
from nnc_core.type import admit_numpy, default_float
from nnc_core.values.arguments import ArrayLike, Axis, as_value, count_of, located
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = [
    "all", "any", "argmax", "argmin", "count_nonzero", "logsumexp", "max", "mean", "min", "prod", "ptp", "std", "sum",
    "var",
]  # fmt: skip


def as_dtype(v: Value, dtype: dt.DType) -> Value:
    """Converted where it has to be."""
    return v if v.dtype == dtype else F.cast(v, dtype=dtype)


def as_inexact(v: Value) -> Value:
    """Integers and booleans in the default float dtype."""
    return v if dt.is_inexact(v.dtype) else as_dtype(v, default_float())


def as_summed(v: Value, dtype: Any = None) -> Value:
    """In the dtype in which it is summed: as wanted, else integers in 64 bits."""
    wanted = admit_numpy(dtype) if dtype is not None else sum_dtype(v.dtype)
    return as_dtype(v, wanted)


def sum_dtype(dtype: Any) -> Any:
    return dtype if dt.is_inexact(dtype) else dt.uint64 if dtype in dt.UNSIGNED else dt.int64


@located
def sum(x: ArrayLike, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Sum over axes; small integers and booleans are summed as int64 (uint64 for unsigned)."""
    v = as_summed(as_value(x), dtype)
    return Tensor(F.sum(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))


@located
def prod(x: ArrayLike, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Product over axes; small integers and booleans are multiplied as int64 (uint64 for unsigned)."""
    v = as_summed(as_value(x), dtype)
    return Tensor(F.prod(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))


@located
def mean(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Mean over axes; of integers in the default float dtype."""
    v = as_inexact(as_value(x))
    return Tensor(F.mean(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))


@located
def var(x: ArrayLike, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The mean square of deviations from the mean, divided by the count less `correction`; NaN where that is zero and
    there are no deviations.  Of complex numbers, of their magnitudes."""
    v = as_inexact(as_value(x))
    return Tensor(F.var(v, axis=normalise_axes(axis, v.ndim), correction=float(correction), keepdims=keepdims))


@located
def std(x: ArrayLike, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The square root of `var`."""
    v = as_inexact(as_value(x))
    return Tensor(F.std(v, axis=normalise_axes(axis, v.ndim), correction=float(correction), keepdims=keepdims))


@located
def logsumexp(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over axes, without overflow; -inf over nothing."""
    v = as_inexact(as_value(x))
    return Tensor(F.logsumexp(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))


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


@located
def ptp(x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The maximum less the minimum; integers wrap."""
    v = as_value(x)
    axes = normalise_axes(axis, v.ndim)
    return Tensor(F.subtract(F.max(v, axis=axes, keepdims=keepdims), F.min(v, axis=axes, keepdims=keepdims)))


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
    return as_dtype(v, dt.boolean)


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


@located
def count_nonzero(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """int64: how many elements along axes are not zero; NaN is not."""
    v = as_dtype(_boolean(as_value(x)), dt.int64)
    return Tensor(F.sum(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))
