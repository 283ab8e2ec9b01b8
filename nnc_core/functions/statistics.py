"""Weighted means, covariances and correlations."""

from __future__ import annotations

from functools import reduce
from typing import Any

from nnc_core.base.dtype import DType, accumulator, int64, is_complex, is_inexact, real_of
from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.functions.constants import host_of
from nnc_core.functions.reduction import all_inexact, as_dtype, as_inexact, as_precise, for_deviations, mean
from nnc_core.shape.axes import normalise_axes
from nnc_core.type import admit_numpy, promote
from nnc_core.values.arguments import ArrayLike, Axis, as_value, as_value_beside, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.modes import use_device
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["average", "corrcoef", "cov"]


@by_shapes
@names_itself
def average(x: ArrayLike, /, axis: Axis = None, weights: ArrayLike | None = None, returned: bool = False, *,
            keepdims: bool = False) -> Any:
    """sum(x * weights) / sum(weights) over axes; the mean without weights.

    Weights have the shape of x, or that of its axes alone.  With `returned` (average, sum of the weights).
    """
    if weights is None:
        v = as_value(x)
        centre = mean(Tensor(v), axis=axis, keepdims=keepdims)
        if not returned:
            return centre
        ones = F.full_like(as_inexact(v), 1)
        return centre, Tensor(F.sum(ones, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))
    values = as_values(x, weights)
    dtype = reduce(promote, [u.dtype for u in all_inexact(values)])
    v, w = map(as_precise, values)
    axes = normalise_axes(axis, v.ndim)
    common = promote(v.dtype, w.dtype)
    v, w = (as_dtype(u, accumulator(common)) for u in (v, _matching(w, v, axes, axis)))
    total = F.sum(w, axis=axes, keepdims=keepdims)
    y = as_dtype(F.divide(F.sum(F.multiply(v, w), axis=axes, keepdims=keepdims), total), dtype)
    return (Tensor(y), Tensor(as_dtype(total, dtype))) if returned else Tensor(y)


def _matching(w: Value, v: Value, axes: tuple[int, ...], axis: Axis) -> Value:
    if w.shape == v.shape:
        return w
    if axis is None or w.ndim != len(axes) or any(w.shape[i] != v.shape[a] for i, a in enumerate(axes)):
        raise ShapeError(f"weights {w.spec} go neither with {v.spec} nor with its axes {axes}",
                         hint="name the axes that the weights are for")
    wide = tuple(d if a in axes else 1 for a, d in enumerate(v.shape))
    return F.broadcast_to(F.reshape(w, shape=wide), shape=v.shape)


# ---- covariances
def _variables(x: Value, rowvar: bool) -> Value:
    """(variables, observations)"""
    if x.ndim > 2:
        raise ShapeError(f"{x.spec} has more than two axes: variables and observations")
    if x.ndim < 2:
        return F.reshape(x, shape=(1, x.shape[0] if x.ndim else 1))
    return x if rowvar else F.permute(x, axes=(1, 0))


def _joined(x: ArrayLike, y: ArrayLike | None, rowvar: bool, dtype: Any) -> tuple[Value, DType]:
    """All variables in a dtype that rounds no integers, and the dtype of the result."""
    values = as_values(*([x] if y is None else [x, y]))
    parts = [_variables(v, rowvar) for v in values]
    if len({p.shape[1] for p in parts}) > 1:
        raise ShapeError(f"{values[0].spec} and {values[1].spec} have unlike numbers of observations")
    wanted = reduce(promote, [v.dtype for v in all_inexact(values)]) if dtype is None else admit_numpy(dtype)
    parts = [for_deviations(p, (1,)) for p in parts]
    wide = reduce(promote, [p.dtype for p in parts], wanted)
    parts = [as_dtype(p, wide) for p in parts]
    return (F.concat(*parts, axis=0) if len(parts) > 1 else parts[0]), wanted


def _weight(v: Value, weights: ArrayLike | None, name: str) -> Value | None:
    if weights is None:
        return None
    w = as_value_beside(weights, v)
    if w.ndim != 1 or w.shape[0] != v.shape[1]:
        raise ShapeError(f"{name} {w.spec} is no vector of {v.shape[1]} weights")
    if name == "fweights" and is_inexact(w.dtype):
        raise AttributeValueError(f"fweights are counts, not {w.dtype}", hint="give weights as aweights")
    host = host_of(w)
    if host is not None and (host < 0).any():
        raise AttributeValueError(f"{name} has negative weights, the first of them {host[host < 0][0]}",
                                  hint="weights say how often an observation counts")
    return as_dtype(w, real_of(v.dtype))


def _product(*factors: Value | None) -> Value | None:
    given = [f for f in factors if f is not None]
    return None if not given else given[0] if len(given) == 1 else F.multiply(*given)


def _degrees(v: Value, weights: Value | None, aweights: Value | None, ddof: float) -> Value:
    """The divisor of the squares, never below 0."""
    real = real_of(v.dtype)
    if weights is None:
        weights = F.full_like(F.sum(as_dtype(F.equal(v, v), real), axis=(0,)), 1)
    total = F.sum(weights, axis=(0,))
    lost: Any = ddof
    if aweights is not None and ddof:
        lost = F.multiply(F.divide(F.sum(F.multiply(weights, aweights), axis=(0,)), total), float(ddof))
    return F.maximum(F.subtract(total, lost), 0)


def _covariance(x: ArrayLike, y: ArrayLike | None, rowvar: bool, ddof: float, fweights: ArrayLike | None,
                aweights: ArrayLike | None, dtype: Any) -> Value:
    """(variables, variables)"""
    whole, wanted = _joined(x, y, rowvar, dtype)
    v = as_dtype(whole, accumulator(whole.dtype))
    by_count, by_worth = _weight(v, fweights, "fweights"), _weight(v, aweights, "aweights")
    weights = _product(by_count, by_worth)
    if weights is None:
        centre = F.mean(v, axis=(1,), keepdims=True)
    else:
        weighted = F.multiply(v, as_dtype(weights, v.dtype))
        centre = F.divide(F.sum(weighted, axis=(1,), keepdims=True), as_dtype(F.sum(weights, axis=(0,)), v.dtype))
    away = F.subtract(v, centre)
    scaled = away if weights is None else F.multiply(away, as_dtype(weights, v.dtype))
    products = F.matmul(scaled, F.conjugate(away), transpose_b=True)
    y = F.divide(products, as_dtype(_degrees(v, weights, by_worth, ddof), v.dtype))
    return as_dtype(y, wanted)


def _squeezed(c: Value) -> Tensor:
    """The variance of a single variable is a number."""
    return Tensor(F.reshape(c, shape=()) if c.shape == (1, 1) else c)


@by_shapes
@names_itself
def cov(x: ArrayLike, /, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False,
        ddof: float | None = None, fweights: ArrayLike | None = None, aweights: ArrayLike | None = None, *,
        dtype: Any = None) -> Tensor:
    """The covariances of variables, which are the rows of x (the columns if not `rowvar`) and of y.

    Divided by the number of observations less `ddof`, which is 1, or 0 with `bias`.  `fweights` say how often each
    observation was made, `aweights` what it is worth.
    """
    if ddof is not None and not float(ddof).is_integer():
        raise AttributeValueError(f"ddof {ddof} is no whole number")
    lost = (0 if bias else 1) if ddof is None else ddof
    return _squeezed(_covariance(x, y, rowvar, lost, fweights, aweights, dtype))


@by_shapes
@names_itself
def corrcoef(x: ArrayLike, /, y: ArrayLike | None = None, rowvar: bool = True, *, dtype: Any = None) -> Tensor:
    """The correlations of variables, from -1 to 1: covariances divided by both standard deviations."""
    c = _covariance(x, y, rowvar, 1, None, None, dtype)
    m = c.shape[0]
    with use_device(c.stack):
        number = F.arange(size=m, dtype=int64)
    same = F.equal(F.reshape(number, shape=(m, 1)), number)
    variances = F.sum(F.where(same, c, 0), axis=(1,))
    variances = F.real(variances) if is_complex(c.dtype) else variances
    deviation = as_dtype(F.sqrt(variances), c.dtype)
    r = F.divide(F.divide(c, F.reshape(deviation, shape=(m, 1))), deviation)
    return _squeezed(r if is_complex(r.dtype) else F.clip(r, -1, 1))
