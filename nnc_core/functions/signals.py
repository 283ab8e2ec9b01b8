"""Functions of sampled signals: convolution, correlation, interpolation."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, is_complex, is_float, real_of
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.functions.constants import constant_beside
from nnc_core.functions.pieces import cut
from nnc_core.functions.reduction import as_dtype, as_inexact, as_precise
from nnc_core.type import promote
from nnc_core.values.arguments import ArrayLike, as_value_beside, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.elementwise_programs import of_elements
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value
from nnc_core.values.whole import as_whole

__all__ = ["convolve", "correlate", "interp"]


# ---- sums of products of shifted signals
@by_shapes
@names_itself
def convolve(x1: ArrayLike, x2: ArrayLike, /, mode: str = "full") -> Tensor:
    """y[k] = sum x1[i] x2[k - i] of two vectors.

    "full": wherever they overlap; "same": as long as the longer one, the middle of that; "valid": where they overlap
    completely.
    """
    a, b = _vectors(x1, x2)
    if int(a.shape[0]) < int(b.shape[0]):
        a, b = b, a
    return Tensor(_slid(a, F.flip(b, axes=(0,)), mode))


@by_shapes
@names_itself
def correlate(x1: ArrayLike, x2: ArrayLike, /, mode: str = "valid") -> Tensor:
    """y[k] = sum x1[i + k] x2[i] of two vectors, x2 conjugated; modes as `convolve` has them."""
    a, b = _vectors(x1, x2)
    b = F.conjugate(b)
    if int(a.shape[0]) < int(b.shape[0]):
        return Tensor(F.flip(_slid(b, a, mode), axes=(0,)))
    return Tensor(_slid(a, b, mode))


def _vectors(x1: ArrayLike, x2: ArrayLike) -> list[Value]:
    values = as_values(x1, x2)
    for v in values:
        if v.ndim > 1 or (v.ndim == 1 and v.shape[0] == 0):
            raise ShapeError(f"{v.spec} is no vector of one element or more")
    dtype = promote(values[0].dtype, values[1].dtype)
    values = [v if v.ndim else F.reshape(v, shape=(1,)) for v in values]
    return [v if v.dtype == dtype else F.cast(v, dtype=dtype) for v in values]


def _slid(a: Value, b: Value, mode: str) -> Value:
    """Products with b as it slides along a, which is not shorter."""
    m = int(b.shape[0])
    margins = {"full": (m - 1, m - 1), "same": (m // 2, m - m // 2 - 1), "valid": (0, 0)}
    if mode not in margins:
        raise AttributeValueError(f"mode {mode!r} is none of {', '.join(margins)}")
    padding = margins[mode]
    if mode != "same" and (found := as_whole("slid", (a, b), (mode,))) is not None:
        return found  # type: ignore[no-any-return]
    if is_float(a.dtype):
        image, kernel = F.reshape(a, shape=(1, a.shape[0], 1)), F.reshape(b, shape=(m, 1, 1))
        slid = F.conv(image, kernel, strides=(1,), padding=(padding,), dilation=(1,), groups=1, layout="NWC")
        return F.reshape(slid, shape=(slid.shape[1],))
    a = F.pad(a, low=padding[:1], high=padding[1:], interior=(0,))
    windows = np.arange(int(a.shape[0]) - m + 1)[:, None] + np.arange(m)
    product = F.matmul(F.take(a, constant_beside(a, windows), axis=0), F.reshape(b, shape=(m, 1)))
    return F.reshape(product, shape=product.shape[:1])


# ---- between samples
@by_shapes
@names_itself
def interp(x: ArrayLike, xp: ArrayLike, fp: ArrayLike, /, left: Any = None, right: Any = None,
           period: float | None = None) -> Tensor:
    """At each x the value, on straight lines between neighbours, of a function that is fp at the rising places xp.

    Before the first place it is `left` and after the last one `right`; fp's first and last values if not given.  With
    a period places need not rise, and there is no before and after.
    """
    v, places, values = as_values(x, xp, fp)
    if places.ndim != 1 or places.shape != values.shape:
        raise ShapeError(f"places {places.spec} and values {values.spec} should be vectors of one length")
    if places.shape[0] == 0:
        raise ShapeError("no places to interpolate between")
    v, places, values, wanted = _floating(v, places, values)
    if period is not None:
        v, places, values = _periodic(v, places, values, float(period))
        left = right = None
    return Tensor(as_dtype(_interpolated(v, places, values, left, right), wanted))


def _floating(v: Value, places: Value, values: Value) -> tuple[Value, Value, Value, DType]:
    """Floats of one dtype, in which integers are not rounded, and the dtype of the result; the values may be complex,
    of that many bits."""
    if is_complex(v.dtype) or is_complex(places.dtype):
        raise DTypeError(f"places are real, not {v.dtype} and {places.dtype}")
    wanted = reduce(promote, [y.dtype for y in (v, places, as_inexact(values))])
    v, places, values = (as_precise(y) for y in (v, places, values))
    dtype = promote(promote(v.dtype, places.dtype), real_of(values.dtype))
    return as_dtype(v, dtype), as_dtype(places, dtype), as_dtype(values, promote(dtype, values.dtype)), wanted


def _periodic(v: Value, places: Value, values: Value, period: float) -> tuple[Value, Value, Value]:
    if period == 0:
        raise AttributeValueError("a period of 0")
    period = abs(period)
    v, places = F.remainder(v, period), F.remainder(places, period)
    order = F.argsort(places, axis=0)
    places, values = F.take(places, order, axis=0), F.take(values, order, axis=0)
    n = places.shape[0]
    first, last = (cut(places, 0, *at) for at in ((0, 1), (n - 1, n)))
    places = F.concat(F.subtract(last, period), places, F.add(first, period), axis=0)
    return v, places, F.concat(cut(values, 0, n - 1, n), values, cut(values, 0, 0, 1), axis=0)


def _interpolated(v: Value, places: Value, values: Value, left: Any, right: Any) -> Value:
    x0, x1, y0, y1, first, last, low, high = _neighbours(v, places, values)
    before = low if left is None else _as_values(left, values)
    behind = high if right is None else _as_values(right, values)
    if places.shape[0] == 1:  # no line, whose slope would have no derivative
        return _with_ends(v, F.broadcast_to(low, shape=v.shape), first, last, high, before, behind)
    return _between(v, x0, x1, y0, y1, first, last, high, before, behind)


def _neighbours(v: Value, places: Value, values: Value) -> tuple[Value, ...]:
    """Places and values on both sides of each element, then those of both ends."""
    if (found := as_whole("neighbours", (v, places, values))) is not None:
        return found  # type: ignore[no-any-return]
    n = places.shape[0]
    ends = [F.reshape(cut(y, 0, *at), shape=()) for y in (places, values) for at in ((0, 1), (n - 1, n))]
    after = F.clip(F.searchsorted(places, v, right=True), 0 if n == 1 else 1, n - 1)
    before = after if n == 1 else F.subtract(after, 1)
    return (*[F.take(y, i, axis=0) for y in (places, values) for i in (before, after)], *ends)


@of_elements
def _between(v: Value, x0: Value, x1: Value, y0: Value, y1: Value, first: Value, last: Value, high: Value,
             before: Value, behind: Value) -> Value:
    return _with_ends(v, _on_line(v, x0, x1, y0, y1), first, last, high, before, behind)


def _with_ends(v: Value, between: Value, first: Value, last: Value, high: Value, before: Value, behind: Value) -> Value:
    """Choose what is between places, at the last one, or outside of all of them."""
    between = F.where(F.equal(v, last), high, between)
    between = F.where(F.less(v, first), before, between)
    between = F.where(F.greater(v, last), behind, between)
    return F.where(F.equal(v, v), between, F.cast(v, dtype=between.dtype))


def _on_line(v: Value, x0: Value, x1: Value, y0: Value, y1: Value) -> Value:
    """On the line through two points; where one is infinite, from the side that gives a number."""
    slope = F.divide(F.subtract(y1, y0), F.cast(F.subtract(x1, x0), dtype=y0.dtype))
    y = F.add(y0, F.multiply(slope, F.cast(F.subtract(v, x0), dtype=y0.dtype)))
    other = F.add(y1, F.multiply(slope, F.cast(F.subtract(v, x1), dtype=y0.dtype)))
    y = F.where(F.equal(y, y), y, F.where(F.equal(y0, y1), y0, other))
    return F.where(F.equal(v, x0), y0, y)


def _as_values(x: Any, values: Value) -> Value:
    v = as_value_beside(x, values)
    return v if v.dtype == values.dtype else F.cast(v, dtype=values.dtype)
