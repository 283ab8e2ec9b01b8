"""Reductions: sums, products, extremes and where they are, truth."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from nnc_core.base import dtype as dt
from nnc_core.base.errors import DTypeError, OperandError
from nnc_core.functions.taken import begun, count_taken, start_of, taken, with_mask
from nnc_core.shape.axes import normalise_axes, normalise_axis
from nnc_core.type import admit_numpy, default_float, not_computed, promote
from nnc_core.values.arguments import ArrayLike, Axis, as_value, count_of, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value
from nnc_core.values.whole import as_whole

__all__ = [
    "all", "any", "argmax", "argmin", "count_nonzero", "logsumexp", "max", "mean", "min", "prod", "ptp", "std", "sum",
    "var",
]  # fmt: skip


def as_dtype(v: Value, dtype: dt.DType) -> Value:
    """Converted where it has to be; what is only stored is cast by the user, to what is to be computed in."""
    if dt.is_storage(v.dtype) and v.dtype != dtype:
        raise not_computed(v.dtype)
    return v if v.dtype == dtype else F.cast(v, dtype=dtype)


def as_inexact(v: Value) -> Value:
    """Integers and booleans in the default float dtype."""
    return v if dt.is_inexact(v.dtype) else as_dtype(v, default_float())


def all_inexact(values: Sequence[Value]) -> list[Value]:
    """Integers and booleans in the dtype of the floats among the values, or in the default one."""
    wanted = float_of(values)
    return [v if dt.is_inexact(v.dtype) else as_dtype(v, wanted) for v in values]


def float_of(values: Sequence[Value]) -> dt.DType:
    """The real dtype that the floats among the values have in common; the default one without any."""
    floats = [dt.real_of(v.dtype) for v in values if dt.is_inexact(v.dtype)]
    return reduce(promote, floats) if floats else default_float()


def as_precise(v: Value) -> Value:
    """Integers and booleans in float64, which keeps what the default dtype would round away; in the default dtype on
    a device that has no float64."""
    if dt.is_inexact(v.dtype):
        return v
    return as_dtype(v, dt.float64 if dt.float64 in v.stack.type.dtypes else default_float())


def for_differences(v: Value) -> Value:
    """Numbers whose differences are not rounded: integers in float64, or as they are on a device without it."""
    if dt.is_inexact(v.dtype) or dt.float64 in v.stack.type.dtypes:
        return as_precise(v)
    return as_dtype(v, dt.int64)


def comparable(a: Value, b: Value) -> tuple[Value, Value]:
    """Two values in one dtype in which they are what they were: integers beside floats are not rounded to float32."""
    mixed = dt.is_inexact(a.dtype) != dt.is_inexact(b.dtype)
    a, b = (as_precise(a), as_precise(b)) if mixed else (a, b)
    dtype = promote(a.dtype, b.dtype)
    return as_dtype(a, dtype), as_dtype(b, dtype)


def as_summed(v: Value, dtype: Any = None) -> Value:
    """In the dtype in which it is summed: as wanted, else integers in 64 bits."""
    wanted = admit_numpy(dtype) if dtype is not None else sum_dtype(v.dtype)
    return as_dtype(v, wanted)


def in_dtype(v: Value, dtype: Any) -> Value:
    """In the dtype in which a function is asked to compute a mean, if it is; DTypeError for one of whole numbers."""
    if dtype is None:
        return v
    wanted = admit_numpy(dtype)
    if not dt.is_inexact(wanted):
        raise DTypeError(f"means are no numbers of {wanted}", hint="a float dtype, and astype afterwards")
    return as_dtype(v, wanted)


def sum_dtype(dtype: Any) -> Any:
    return dtype if dt.is_inexact(dtype) else dt.uint64 if dtype in dt.UNSIGNED else dt.int64


@by_shapes
@names_itself
def sum(x: ArrayLike, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike = True) -> Tensor:
    """Sum over axes, or of all elements: of those where a mask is true, and of a number `initial`.

    The axes are left out of the result, or have length one with keepdims.  Small integers and booleans are summed as
    int64 (uint64 for unsigned); `dtype` says another.  Raises AxisError for axes that x has not.
    """
    v, mask = with_mask(x, where)
    v = taken(as_summed(v, dtype), mask, 0)
    return Tensor(begun(F.sum(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims), initial, F.add, v.dtype))


@by_shapes
@names_itself
def prod(x: ArrayLike, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False,
         initial: ArrayLike | None = None, where: ArrayLike = True) -> Tensor:
    """Product over axes, or of all elements: of those where a mask is true, and of a number `initial`.

    The axes are left out of the result, or have length one with keepdims.  Small integers and booleans are multiplied
    as int64 (uint64 for unsigned); `dtype` says another.  Raises AxisError for axes that x has not.
    """
    v, mask = with_mask(x, where)
    v = taken(as_summed(v, dtype), mask, 1)
    return Tensor(begun(F.prod(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims), initial, F.multiply, v.dtype))


def mean_of_integers(v: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """In float64; on a device without it the exact sum, rounded once before it is divided."""
    if dt.float64 in v.stack.type.dtypes:
        return F.mean(as_dtype(v, dt.float64), axis=axes, keepdims=keepdims)
    total = F.sum(as_summed(v), axis=axes, keepdims=keepdims)
    count: Any = count_of(tuple([v.shape[a] for a in axes]))
    return F.divide(as_dtype(total, default_float()), count)


def for_deviations(v: Value, axes: tuple[int, ...]) -> Value:
    """Integers as floats with the same deviations: as float64, or less their minimum on a device without it."""
    if dt.is_inexact(v.dtype) or dt.float64 in v.stack.type.dtypes or 0 in v.shape:
        return as_precise(v)
    wide = as_summed(v)
    return as_dtype(F.subtract(wide, F.min(wide, axis=axes, keepdims=True)), default_float())


def mean_of_taken(v: Value, mask: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """The mean of the elements where the mask is true, NaN where there are none, as precise as that of all."""
    exact = not dt.is_inexact(v.dtype)
    wide = for_differences(v) if exact else as_dtype(v, dt.accumulator(v.dtype))
    total = F.sum(taken(wide, mask, 0), axis=axes, keepdims=keepdims)
    total = as_inexact(total)
    count = as_dtype(count_taken(v, mask, axes, keepdims), dt.real_of(total.dtype))
    return as_dtype(F.divide(total, count), default_float() if exact else v.dtype)


@by_shapes
@names_itself
def mean(x: ArrayLike, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False,
         where: ArrayLike = True) -> Tensor:
    """Mean over axes, or of all elements, of those where a mask is true; NaN where there are none.

    Of integers in the default float dtype, or in the dtype that is given, which has to be one of floats.
    """
    v, mask = with_mask(x, where)
    v = in_dtype(v, dtype)
    axes = normalise_axes(axis, v.ndim)
    if mask is not None:
        return Tensor(mean_of_taken(v, mask, axes, keepdims))
    if dt.is_inexact(v.dtype):
        return Tensor(F.mean(v, axis=axes, keepdims=keepdims))
    return Tensor(as_dtype(mean_of_integers(v, axes, keepdims), default_float()))


def var_of_taken(v: Value, mask: Value, axes: tuple[int, ...], correction: float, keepdims: bool) -> Value:
    """The variance of the elements where the mask is true, in the dtype in which sums are formed."""
    x = for_deviations(v, axes)
    x = as_dtype(x, dt.accumulator(x.dtype))
    count = as_dtype(count_taken(v, mask, axes, True), dt.real_of(x.dtype))
    mean = F.divide(F.sum(taken(x, mask, 0), axis=axes, keepdims=True), count)
    away = taken(F.subtract(x, mean), mask, 0)
    squares = F.real(F.multiply(away, F.conjugate(away))) if dt.is_complex(x.dtype) else F.multiply(away, away)
    total = F.sum(squares, axis=axes, keepdims=keepdims)
    degrees = F.maximum(F.subtract(F.reshape(count, shape=total.shape), float(correction)), 0)
    return F.divide(total, degrees)


def _real_result(v: Value, y: Value) -> Tensor:
    """A real result in the precision of the array that it is of; of integers in the default float dtype."""
    return Tensor(as_dtype(y, dt.real_of(v.dtype) if dt.is_inexact(v.dtype) else default_float()))


@by_shapes
@names_itself
def var(x: ArrayLike, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False,
        where: ArrayLike = True) -> Tensor:
    """The mean square of deviations from the mean, of the elements where a mask is true; divided by the count less
    `correction`, NaN where that is zero and there are no deviations.  Of complex numbers, of their magnitudes."""
    v, mask = with_mask(x, where)
    axes = normalise_axes(axis, v.ndim)
    if mask is not None:
        return _real_result(v, var_of_taken(v, mask, axes, correction, keepdims))
    return _real_result(v, F.var(for_deviations(v, axes), axis=axes, correction=float(correction), keepdims=keepdims))


@by_shapes
@names_itself
def std(x: ArrayLike, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False,
        where: ArrayLike = True) -> Tensor:
    """The standard deviation over axes: the square root of `var`, with the same arguments."""
    v, mask = with_mask(x, where)
    axes = normalise_axes(axis, v.ndim)
    if mask is not None:
        return _real_result(v, F.sqrt(var_of_taken(v, mask, axes, correction, keepdims)))
    return _real_result(v, F.std(for_deviations(v, axes), axis=axes, correction=float(correction), keepdims=keepdims))


@by_shapes
@names_itself
def logsumexp(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over axes, without overflow; -inf over nothing."""
    v = as_value(x)
    y = F.logsumexp(as_precise(v), axis=normalise_axes(axis, v.ndim), keepdims=keepdims)
    return Tensor(y if dt.is_inexact(v.dtype) else as_dtype(y, default_float()))


def _extreme(name: str, x: ArrayLike, axis: Axis, keepdims: bool, initial: ArrayLike | None,
             where: ArrayLike) -> Tensor:
    v, mask = with_mask(x, where)
    axes = normalise_axes(axis, v.ndim)
    if v.dtype == dt.boolean and mask is None and initial is None:
        return Tensor(as_dtype(getattr(F, name)(as_dtype(v, dt.uint8), axis=axes, keepdims=keepdims), dt.boolean))
    if initial is None:
        if mask is not None:
            raise OperandError("a mask may take nothing, whose extremum is not known",
                               hint="initial= is what there is besides: -math.inf for a maximum")
        return Tensor(getattr(F, name)(v, axis=axes, keepdims=keepdims))
    start = start_of(initial)
    if 0 in [v.shape[a] for a in axes]:
        nothing = F.any(_boolean(v), axis=axes, keepdims=keepdims)
        found = F.where(nothing, as_dtype(nothing, v.dtype), start)
    else:
        found = getattr(F, name)(taken(v, mask, start), axis=axes, keepdims=keepdims)
    return Tensor(begun(found, initial, getattr(F, f"{name}imum"), v.dtype))


@by_shapes
@names_itself
def max(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, initial: ArrayLike | None = None,
        where: ArrayLike = True) -> Tensor:
    """Maximum over axes, or of all elements; NaN wins, and true over false.

    Of the elements where a mask is true and of a number `initial`, which a mask needs, and so do empty axes: ShapeError
    without one.
    """
    return _extreme("max", x, axis, keepdims, initial, where)


@by_shapes
@names_itself
def min(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, initial: ArrayLike | None = None,
        where: ArrayLike = True) -> Tensor:
    """Minimum over axes, or of all elements; NaN wins, and false over true.

    Of the elements where a mask is true and of a number `initial`, which a mask needs, and so do empty axes: ShapeError
    without one.
    """
    return _extreme("min", x, axis, keepdims, initial, where)


@by_shapes
@names_itself
def ptp(x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The maximum less the minimum; integers wrap."""
    v = as_value(x)
    axes = normalise_axes(axis, v.ndim)
    return Tensor(F.subtract(F.max(v, axis=axes, keepdims=keepdims), F.min(v, axis=axes, keepdims=keepdims)))


def _position(name: str, x: ArrayLike, axis: int | None, keepdims: bool) -> Tensor:
    v, method = as_value(x), getattr(F, name)
    if v.dtype == dt.boolean:
        v = F.cast(v, dtype=dt.uint8)
    if axis is not None:
        return Tensor(method(v, axis=normalise_axis(axis, v.ndim), keepdims=keepdims))
    flat = method(F.reshape(v, shape=(count_of(v.shape),)), axis=0, keepdims=False)
    return Tensor(F.reshape(flat, shape=(1,) * v.ndim) if keepdims else flat)


@by_shapes
@names_itself
def argmax(x: ArrayLike, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """int64 position of the first maximum, or of the first NaN; in the flattened array without an axis.  Of booleans
    the first that is true, 0 where none is.

    Raises ShapeError for an empty axis.
    """
    return _position("argmax", x, axis, keepdims)


@by_shapes
@names_itself
def argmin(x: ArrayLike, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """int64 position of the first minimum, or of the first NaN; in the flattened array without an axis.  Of booleans
    the first that is false, 0 where none is.

    Raises ShapeError for an empty axis.
    """
    return _position("argmin", x, axis, keepdims)


def _boolean(v: Value) -> Value:
    return as_dtype(v, dt.boolean)


@by_shapes
@names_itself
def all(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, where: ArrayLike = True) -> Tensor:
    """Test whether all elements along axes where a mask is true are true (not zero)."""
    v, mask = with_mask(x, where)
    v = taken(_boolean(v), mask, True)
    return Tensor(F.all(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))


@by_shapes
@names_itself
def any(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, where: ArrayLike = True) -> Tensor:
    """Test whether any element along axes where a mask is true is true (not zero)."""
    v, mask = with_mask(x, where)
    v = taken(_boolean(v), mask, False)
    return Tensor(F.any(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))


@by_shapes
@names_itself
def count_nonzero(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """int64: how many elements along axes are not zero; NaN is not."""
    v = as_value(x)
    axes = normalise_axes(axis, v.ndim)
    found = as_whole("count_nonzero", (v,), (axes, bool(keepdims)))
    if found is None:
        found = F.sum(as_dtype(_boolean(v), dt.int64), axis=axes, keepdims=keepdims)
    return Tensor(found)
