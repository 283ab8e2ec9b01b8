"""Medians, quantiles and percentiles.

A quantile lies at a *virtual index* among the sorted elements, between the two neighbours that its method weighs.
Quantiles that are numbers or host arrays become indices and weights here and now, in float64; those of a tensor, and
those of rows that are of different length without their NaN, are computed on the device.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.dtype import DType, accumulator, float32, float64, int64, is_complex, is_inexact, is_integer
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.functions.constants import constant_beside
from nnc_core.functions.nan_reductions import counts
from nnc_core.functions.pieces import cut, moved, taken
from nnc_core.functions.quantile_methods import CHOOSING, places
from nnc_core.functions.reduction import as_dtype, as_inexact, as_precise
from nnc_core.operator.along import taken_along
from nnc_core.shape.axes import normalise_axes
from nnc_core.values.argument_checks import mismatch_error
from nnc_core.values.arguments import ArrayLike, Axis, as_values, count_of, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.elementwise_programs import of_elements
from nnc_core.values.modes import use_device
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value
from nnc_core.values.whole import as_whole

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

# ---- rows: the axes that are reduced as one last axis
class _Rows(NamedTuple):
    """Rows (kept..., n), and what the results look like."""

    v: Value
    axes: tuple[int, ...]
    ndim: int
    dtype: DType
    """The dtype of the results."""

    @property
    def last(self) -> int:
        return self.v.ndim - 1


def _row(v: Value, axes: tuple[int, ...]) -> Value:
    kept = [a for a in range(v.ndim) if a not in axes]
    turned = moved(v, axes, tuple(range(v.ndim - len(axes), v.ndim)))
    if len(axes) == 1:
        return turned
    shape = turned.shape[: len(kept)]
    return F.reshape(turned, shape=(*shape, count_of(turned.shape[len(kept) :])))


def _rows(x: Value, axis: Axis, chosen: bool) -> _Rows:
    """Integers stay what they are where results are `chosen` among them, and otherwise are rounded once, at the end."""
    if is_complex(x.dtype):
        raise DTypeError(f"{x.dtype} has no order", hint="take quantiles of abs(x), or of its parts")
    axes = normalise_axes(axis, x.ndim)
    row = _row(x, axes)
    if chosen and is_integer(x.dtype) and isinstance(row.shape[-1], int) and row.shape[-1] > 0:
        return _Rows(row, axes, x.ndim, x.dtype)
    wide = as_precise(row)
    return _Rows(as_dtype(wide, accumulator(wide.dtype)), axes, x.ndim, as_inexact(x).dtype)


def _finished(y: Value, rows: _Rows, shape: tuple[Any, ...], keepdims: bool) -> Tensor:
    """(kept..., m) as (quantiles..., kept...)."""
    kept = y.shape[:-1]
    whole = (*kept, *shape)
    y = moved(y if y.shape == whole else F.reshape(y, shape=whole), tuple(range(len(kept), len(kept) + len(shape))),
              tuple(range(len(shape))))
    if keepdims:
        lengths = iter(kept)
        y = F.reshape(y, shape=(*shape, *[1 if a in rows.axes else next(lengths) for a in range(rows.ndim)]))
    return Tensor(as_dtype(y, rows.dtype))


@of_elements
def _between(low: Value, high: Value, weight: Value) -> Value:
    """Exact at both ends, and rising with the weight; neighbours may be infinite."""
    apart, rest = F.subtract(high, low), F.subtract(1.0, weight)
    near_low = F.add(low, F.multiply(apart, weight))
    near_high = F.subtract(high, F.multiply(apart, rest))
    y = F.where(F.less(weight, 0.5), near_low, near_high)
    far = F.add(F.multiply(low, rest), F.multiply(high, weight))
    y = F.where(F.equal(F.abs(apart), inf), far, y)
    return F.where(F.logical_or(F.equal(low, high), F.equal(weight, 0)), low, y)


class _Known(NamedTuple):
    """Places of quantiles among n sorted elements."""

    wanted: tuple[int, ...]
    """The elements that are to be known, the last among them."""
    low: tuple[int, ...]
    high: tuple[int, ...]
    weight: np.ndarray[Any, Any]


@lru_cache(maxsize=256)
def _known(method: str, n: int, quantiles: bytes) -> _Known:
    """Find the places of quantiles, which are float64."""
    low, high, weight = places(method, np.float64(n), np.frombuffer(quantiles))
    low, high = low.astype(np.int64), high.astype(np.int64)
    weight.setflags(write=False)
    return _Known(tuple(np.unique([*low, *high, n - 1]).tolist()), tuple(low.tolist()), tuple(high.tolist()), weight)


def _on_host(rows: Value, q: np.ndarray[Any, Any], method: str, n: int) -> Value:
    """(kept..., m) of rows that are not sorted; NaN where a row has one."""
    wanted, low, high, weight = _known(method, n, q.tobytes())
    chosen = as_whole("order_statistics", (rows,), (wanted, low, high))
    if chosen is not None:
        y, above = chosen
        return _weighed(y, above, weight) if weight.any() else y
    last = rows.ndim - 1
    ordered = cut(F.sort(rows, axis=last), last, 0, n)  # says that the indices are for this length alone
    y = taken(ordered, np.array(low), last)
    if weight.any():
        y = _weighed(y, taken(ordered, np.array(high), last), weight)
    return _unless_nan(y, ordered)


def _weighed(low: Value, high: Value, weight: np.ndarray[Any, Any]) -> Value:
    return _between(low, high, constant_beside(low, weight, low.dtype))


def _on_device(rows: Value, q: Value, method: str, n: Value) -> Value:
    """(kept..., m) of sorted rows, of which the first n (kept..., 1) count; nothing where q is outside of [0, 1]."""
    wide = float64 if "float64" in rows.stack.device.spec.dtypes else float32
    quantiles = Tensor(as_dtype(q, wide))
    found = places(method, Tensor(as_dtype(n, wide)), quantiles)
    shape = (*rows.shape[:-1], q.shape[0])

    def at(index: Tensor) -> Value:
        whole: Value = F.broadcast_to(as_dtype(index._value, int64), shape=shape)
        return taken_along(F, rows, whole, rows.ndim - 1)

    y = _between(at(found.low), at(found.high), as_dtype(found.weight._value, rows.dtype))
    return _if_inside(q, y)


def _if_inside(q: Value, y: Value) -> Value:
    inside = F.logical_and(F.greater_equal(q, 0), F.less_equal(q, 1))
    return F.where(inside, y, float("nan"))


# ---- faces
def _quantiles(q: ArrayLike, scale: float) -> tuple[Any, tuple[Any, ...]]:
    """Flattened, as a host array or a value, and their shape."""
    if isinstance(q, Tensor):
        v = as_inexact(q._value)
        v = F.divide(v, scale) if scale != 1 else v
        return F.reshape(v, shape=(count_of(v.shape),)), v.shape
    host = np.asarray(q)
    if host.dtype.kind not in "iufb":
        raise mismatch_error("q", q, "a number or an array of numbers")
    host = host.astype(np.float64) / scale
    if not ((host >= 0) & (host <= 1)).all():
        raise AttributeValueError(f"quantiles {q} are not all from 0 to {scale:g}")
    return host.reshape(-1), host.shape


def _quantile(x: ArrayLike, q: ArrayLike, scale: float, axis: Axis, method: str, keepdims: bool,
              weights: ArrayLike | None, passes_nan: bool) -> Tensor:
    v, *given = as_values(x, *([] if weights is None else [weights]))
    quantiles, shape = _quantiles(q, scale)
    rows = _rows(v, axis, method in CHOOSING and isinstance(quantiles, np.ndarray))
    passes_nan = passes_nan and is_inexact(rows.v.dtype)
    if given:
        y = _weighted(rows, _weights(v, given[0], axis), quantiles, method, passes_nan)
    else:
        y = _unweighted(rows, quantiles, method, passes_nan)
    return _finished(y, rows, shape, keepdims)


def _nothing(rows: _Rows, m: Any) -> Value:
    with use_device(rows.v.stack):
        return F.full(shape=(*rows.v.shape[:-1], m), value=float("nan"), dtype=rows.v.dtype)


def _unweighted(rows: _Rows, q: Any, method: str, passes_nan: bool) -> Value:
    n = rows.v.shape[-1]
    if n == 0:
        return _nothing(rows, q.shape[0])
    if isinstance(q, np.ndarray) and isinstance(n, int) and not (passes_nan and _may_have_nan(rows.v)):
        return _on_host(rows.v, q, method, n)
    ordered = F.sort(rows.v, axis=rows.last)
    quantiles = constant_beside(ordered, q) if isinstance(q, np.ndarray) else q
    y = _on_device(ordered, quantiles, method, counts(rows.v, (rows.last,), True))
    return y if passes_nan else _unless_nan(y, ordered)


def _may_have_nan(v: Value) -> bool:
    found = as_whole("has_nan", (v,))
    return found is None or bool(found.array)


def _unless_nan(y: Value, ordered: Value) -> Value:
    """NaN is the last in order."""
    n = ordered.shape[-1]
    last = cut(ordered, ordered.ndim - 1, n - 1, n)
    return F.where(F.equal(last, last), y, last)


def _weights(v: Value, weights: Value, axis: Axis) -> Value:
    """As rows that go with those of v."""
    axes = normalise_axes(axis, v.ndim)
    if weights.shape != v.shape:
        if weights.ndim != len(axes) or any(weights.shape[i] != v.shape[a] for i, a in enumerate(axes)):
            raise ShapeError(f"weights {weights.spec} go neither with {v.spec} nor with its axes {axes}")
        wide = tuple(d if a in axes else 1 for a, d in enumerate(v.shape))
        weights = F.broadcast_to(F.reshape(weights, shape=wide), shape=v.shape)
    return _row(weights, axes)


def _weighted(rows: _Rows, weights: Value, q: Any, method: str, passes_nan: bool) -> Value:
    """The first element up to which the weights add up to the quantile."""
    if method != "inverted_cdf":
        raise AttributeValueError(f"method {method!r} takes no weights", hint="method='inverted_cdf'")
    if rows.v.shape[-1] == 0:
        return _nothing(rows, q.shape[0])
    order = F.argsort(rows.v, axis=rows.last)
    ordered = taken_along(F, rows.v, order, rows.last)
    wide = as_precise(rows.v).dtype
    weights = as_dtype(weights, wide)
    if passes_nan:
        weights = F.where(F.equal(rows.v, rows.v), weights, 0)
    total = F.cumulative_sum(taken_along(F, weights, order, rows.last), axis=rows.last)
    n = ordered.shape[-1]
    share = F.divide(total, cut(total, rows.last, n - 1, n))
    share = F.where(F.equal(share, 0), -1, share)  # what weighs nothing is not the first of all
    host = isinstance(q, np.ndarray)
    quantiles = constant_beside(rows.v, q, wide) if host else as_dtype(q, wide)
    y = taken_along(F, ordered, _how_many_less(share, F.minimum(quantiles, 1)), rows.last)
    y = y if passes_nan else _unless_nan(y, ordered)
    return y if host else _if_inside(quantiles, y)


def _how_many_less(rows: Value, q: Value) -> Value:
    """int64 (kept..., m): how many of each row (kept..., n) are smaller."""
    kept, n, m = rows.shape[:-1], rows.shape[-1], q.shape[0]
    less = F.less(F.reshape(rows, shape=(*kept, n, 1)), F.reshape(q, shape=(m,)))
    return F.sum(as_dtype(less, int64), axis=(len(kept),))


@by_shapes
@names_itself
def quantile(x: ArrayLike, q: ArrayLike, /, axis: Axis = None, *, method: str = "linear", keepdims: bool = False,
             weights: ArrayLike | None = None) -> Tensor:
    """The numbers below which the shares `q` (from 0 to 1) of the elements along axes lie.

    The axes of q come first in the result.  `method` is one of NumPy's, "inverted_cdf" takes weights; those that choose
    an element give integers their own dtype, if q is no tensor.  NaN among the elements gives NaN, as does an element
    of a tensor q outside [0, 1], and nothing at all.
    """
    return _quantile(x, q, 1, axis, method, keepdims, weights, passes_nan=False)


@by_shapes
@names_itself
def percentile(x: ArrayLike, q: ArrayLike, /, axis: Axis = None, *, method: str = "linear", keepdims: bool = False,
               weights: ArrayLike | None = None) -> Tensor:
    """`quantile` of q / 100."""
    return _quantile(x, q, 100, axis, method, keepdims, weights, passes_nan=False)


@names_itself
def nanquantile(x: ArrayLike, q: ArrayLike, /, axis: Axis = None, *, method: str = "linear", keepdims: bool = False,
                weights: ArrayLike | None = None) -> Tensor:
    """`quantile` of what is not NaN; NaN where nothing is left."""
    return _quantile(x, q, 1, axis, method, keepdims, weights, passes_nan=True)


@names_itself
def nanpercentile(x: ArrayLike, q: ArrayLike, /, axis: Axis = None, *, method: str = "linear", keepdims: bool = False,
                  weights: ArrayLike | None = None) -> Tensor:
    """`percentile` of what is not NaN; NaN where nothing is left."""
    return _quantile(x, q, 100, axis, method, keepdims, weights, passes_nan=True)


@by_shapes
@names_itself
def median(x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The middle element in order, or half-way between the two in the middle; NaN if there is a NaN, or nothing."""
    return _quantile(x, 0.5, 1, axis, "midpoint", keepdims, None, passes_nan=False)


@names_itself
def nanmedian(x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The median of what is not NaN; NaN where nothing is left."""
    return _quantile(x, 0.5, 1, axis, "midpoint", keepdims, None, passes_nan=True)
