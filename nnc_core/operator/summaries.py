"""Composites of reductions: moments, norms, logarithms of sums of exponentials.

float16 and bfloat16 are computed in float32 from end to end, so that no sum in between overflows.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, Generic

from nnc_core.base.dtype import accumulator, is_complex
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.reduction import shares, spread
from nnc_core.shape import reduction as rule
from nnc_core.type import DimLike

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def _widely(body: Callable[..., Any]) -> Callable[..., Any]:
    """The formula for float16 and bfloat16: that for float32, rounded once."""

    def formula(F: Namespace[V], x: V, *attributes: Any) -> Any:
        wide = accumulator(x.dtype)
        if wide == x.dtype:
            return body(F, x, *attributes)
        return F.cast(body(F, F.cast(x, dtype=wide), *attributes), dtype=x.dtype)

    return formula


def _count(x: Any, axis: tuple[int, ...]) -> DimLike:
    """The number of elements that are folded into one."""
    count: DimLike = 1
    for a in axis:
        count = x.shape[a] * count
    return count


@_widely
def _mean(F: Any, x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    return F.divide(F.sum(x, axis=axis, keepdims=keepdims), _count(x, axis))


# ---- variance
def _per_degree(F: Any, total: Any, x: Any, axis: tuple[int, ...], correction: float) -> Any:
    """Divided by the number of elements less the correction, never below zero: NaN or infinite where it is zero."""
    count = _count(x, axis)
    if isinstance(count, int):
        return F.divide(total, float(max(count - correction, 0)))
    degrees = F.subtract(F.add(F.zeros_like(total), count), correction)
    return F.divide(total, F.maximum(degrees, 0))


def _deviations(F: Namespace[V], x: V, axis: tuple[int, ...]) -> V:
    return F.subtract(x, F.mean(x, axis=axis, keepdims=True))


def _squares(F: Namespace[V], x: V) -> V:
    return F.real(F.multiply(x, F.conjugate(x))) if is_complex(x.dtype) else F.multiply(x, x)


@_widely
def _var(F: Namespace[V], x: V, axis: tuple[int, ...], correction: float, keepdims: bool) -> Any:
    squares = _squares(F, _deviations(F, x, axis))
    return _per_degree(F, F.sum(squares, axis=axis, keepdims=keepdims), x, axis, correction)


@_widely
def _std(F: Namespace[V], x: V, axis: tuple[int, ...], correction: float, keepdims: bool) -> V:
    return F.sqrt(F.var(x, axis=axis, correction=correction, keepdims=keepdims))


def _var_vjp(F: Namespace[V], g: V, y: V, x: V, axis: tuple[int, ...], correction: float,
             keepdims: bool) -> tuple[V | None, ...]:
    part = spread(F, F.multiply(2.0, _per_degree(F, g, x, axis, correction)), x, axis)
    deviations = _deviations(F, x, axis)
    return (F.multiply(deviations, F.cast(part, dtype=x.dtype) if is_complex(x.dtype) else part),)


def _var_jvp(F: Namespace[V], t: Any, y: V, x: V, axis: tuple[int, ...], correction: float, keepdims: bool) -> Any:
    growth = F.multiply(F.conjugate(_deviations(F, x, axis)), t[0])
    growth = F.real(growth) if is_complex(x.dtype) else growth
    total = F.sum(F.multiply(2.0, growth), axis=axis, keepdims=keepdims)
    return _per_degree(F, total, x, axis, correction)


# ---- logarithm of a sum of exponentials
def _finite(F: Namespace[V], x: V) -> V:
    """0 in the place of infinities."""
    return F.where(F.equal(F.abs(x), inf), 0, x)


@_widely
def _logsumexp(F: Namespace[V], x: V, axis: tuple[int, ...], keepdims: bool) -> V:
    if any(x.shape[a] == 0 for a in axis):
        return F.log(F.sum(x, axis=axis, keepdims=keepdims))
    highest = _finite(F, F.max(x, axis=axis, keepdims=True))
    total = F.log(F.sum(F.exp(F.subtract(x, highest)), axis=axis, keepdims=keepdims))
    return F.add(total, F.reshape(highest, shape=total.shape))


def _weights(F: Namespace[V], y: V, x: V, axis: tuple[int, ...]) -> V:
    return F.exp(F.subtract(x, spread(F, _finite(F, y), x, axis)))


# ---- norms
@_widely
def _vector_norm(F: Namespace[V], x: V, axis: tuple[int, ...], ord: float, keepdims: bool) -> V:
    over: Any = {"axis": axis, "keepdims": keepdims}
    if ord == inf and 0 in [x.shape[a] for a in axis]:
        return F.sum(F.abs(x), **over)  # nothing has no maximum; its norm is 0
    if ord in (inf, -inf):
        return F.max(F.abs(x), **over) if ord > 0 else F.min(F.abs(x), **over)
    if ord == 0:
        return F.sum(F.cast(F.not_equal(x, 0), dtype=x.dtype), **over)
    if ord == 1:
        return F.sum(F.abs(x), **over)
    if ord == 2:
        return F.sqrt(F.sum(F.multiply(x, x), **over))
    return F.power(F.sum(F.power(F.abs(x), ord), **over), 1 / ord)


def _norm_slope(F: Namespace[V], y: V, x: V, axis: tuple[int, ...], ord: float) -> V:
    """The derivative of the norm by each element; 0 for elements that are 0, where it has no derivative."""
    if ord == 0:
        return F.zeros_like(x)
    direction = F.sign(x)
    if ord in (inf, -inf):
        return F.multiply(direction, shares(F, y, F.abs(x), axis))
    if ord == 1:
        return direction
    norm = spread(F, F.where(F.equal(y, 0), 1, y), x, axis)
    if ord == 2:
        return F.divide(x, norm)
    nothing = F.equal(x, 0)
    ratio = F.divide(F.where(nothing, 1, F.abs(x)), norm)
    return F.where(nothing, 0, F.multiply(direction, F.power(ratio, ord - 1)))


def _norm_vjp(F: Namespace[V], g: V, y: V, x: V, axis: tuple[int, ...], ord: float,
              keepdims: bool) -> tuple[V | None, ...]:
    return (F.multiply(spread(F, g, x, axis), _norm_slope(F, y, x, axis, ord)),)


def _norm_jvp(F: Namespace[V], t: Any, y: V, x: V, axis: tuple[int, ...], ord: float, keepdims: bool) -> V:
    return F.sum(F.multiply(t[0], _norm_slope(F, y, x, axis, ord)), axis=axis, keepdims=keepdims)


class Summaries(Base[V], Generic[V]):
    """`axis` is sorted, unique and non-negative."""

    @op(composite=True, infer=rule.mean)
    def mean(self, x: V, *, axis: tuple[int, ...], keepdims: bool = False) -> V:
        """The mean of floats; NaN over nothing."""
        return _mean(self, x, axis, keepdims)  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.variance, vjp=_var_vjp, jvp=_var_jvp)
    def var(self, x: V, *, axis: tuple[int, ...], correction: float = 0.0, keepdims: bool = False) -> V:
        """The mean square of deviations from the mean, in two passes; divided by the count less `correction`."""
        return _var(self, x, axis, correction, keepdims)  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.variance)
    def std(self, x: V, *, axis: tuple[int, ...], correction: float = 0.0, keepdims: bool = False) -> V:
        """The square root of `var`."""
        return _std(self, x, axis, correction, keepdims)  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.real_mean,
        vjp=lambda F, g, y, x, axis, keepdims: (F.multiply(spread(F, g, x, axis), _weights(F, y, x, axis)),),
        jvp=lambda F, t, y, x, axis, keepdims: F.sum(
            F.multiply(t[0], _weights(F, y, x, axis)), axis=axis, keepdims=keepdims))
    def logsumexp(self, x: V, *, axis: tuple[int, ...], keepdims: bool = False) -> V:
        """log(sum(exp(x))), without overflow; -inf over nothing."""
        return _logsumexp(self, x, axis, keepdims)  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.vector_norm, vjp=_norm_vjp, jvp=_norm_jvp)
    def vector_norm(self, x: V, *, axis: tuple[int, ...], ord: float = 2.0, keepdims: bool = False) -> V:
        """sum(|x| ** ord) ** (1 / ord) of real numbers; `ord` 0 counts what is not zero, inf and -inf are the largest
        and the smallest magnitude.  The derivative is 0 where there is none."""
        return _vector_norm(self, x, axis, ord, keepdims)  # type: ignore[no-any-return]
