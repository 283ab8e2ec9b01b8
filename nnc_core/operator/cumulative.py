"""Scans along one axis: what has been folded up to each element, that one included.

With `reverse` they begin at the end.  Their derivatives never divide: products are right with zeros among the factors,
and exponentials cannot overflow, to any order of differentiation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import accumulator
from nnc_core.base.loopnest import LoopNest
from nnc_core.base.moved_axes import moved
from nnc_core.operator.along import added_along, shifted, taken_along
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.loops import open_nest
from nnc_core.shape import cumulative as rule

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def _forward(x: Any, axis: int, reverse: bool) -> Any:
    """The elements in the order in which they are folded; the same undoes it."""
    return np.flip(x, axis) if reverse else x


def _accumulated(function: np.ufunc) -> Callable[..., Any]:
    """float16 and bfloat16 are folded in float32; integers wrap."""

    def accumulate(x: Any, axis: int, reverse: bool) -> Any:
        wide = np.asarray(x, accumulator(x.dtype))
        out = function.accumulate(_forward(wide, axis, reverse), axis, dtype=wide.dtype)
        return _forward(out, axis, reverse).astype(x.dtype)

    return accumulate


def _position(function: np.ufunc, beats: np.ufunc) -> Callable[..., Any]:
    """A new extremum, or the first NaN, is remembered until the next."""

    def positions(x: Any, axis: int, reverse: bool) -> Any:
        wide = moved(_forward(np.asarray(x, accumulator(x.dtype)), axis, reverse), axis, 0)
        best, new = function.accumulate(wide, 0)[:-1], wide[1:]
        places = np.zeros(wide.shape, np.int64)
        numbers = np.arange(1, len(wide)).reshape(-1, *(1,) * (wide.ndim - 1))
        places[1:] = np.where(beats(new, best) | ((new != new) & (best == best)), numbers, 0)
        places = np.maximum.accumulate(places, 0)
        places = len(wide) - 1 - places if reverse else places
        return np.ascontiguousarray(_forward(moved(places, 0, axis), axis, reverse))

    return positions


def _recurrence(factor: Any, value: Any, axis: int, reverse: bool) -> Any:
    wide = accumulator(value.dtype)
    rows, factors = (moved(_forward(x.astype(wide), axis, reverse), axis, 0) for x in (value, factor))
    last = np.zeros(rows.shape[1:], wide)
    for i in range(len(rows)):
        rows[i] += last * factors[i]
        last = rows[i]
    return _forward(moved(rows, 0, axis), axis, reverse).astype(value.dtype)


def _nest(kind: str) -> Callable[[Command], LoopNest]:
    def build(command: Command) -> LoopNest:
        axis, reverse = command.attributes
        assert isinstance(axis, int)
        inputs = command.inputs
        length = inputs[0].shape[axis]
        nest = open_nest(command)
        kept = nest.outer(*[n for i, n in enumerate(inputs[0].shape) if i != axis])
        with nest.stage(length) as (k,):
            here = length - 1 - k if reverse else k
            at = [*kept[:axis], here, *kept[axis:]]
            values = [nest.load(i, *at).cast(accumulator(x.dtype)) for i, x in enumerate(inputs)]
            total = nest.fold(kind, *reversed(values))
            if reverse and kind in ("argmax", "argmin"):
                total = (length - 1) - total
            nest.store(0, total, *at)
        return nest.build()

    return build


# ---- derivatives
def _before(F: Namespace[V], x: V, axis: int, reverse: bool, fill: float) -> V:
    """The neighbour that was folded just before."""
    return shifted(F, x, axis, -1 if reverse else 1, fill)


def _backwards(F: Namespace[V], factor: V, g: V, axis: int, reverse: bool) -> V:
    """The recurrence that cotangents follow: each goes on to the element before, times the factor between."""
    return F.recurrence(_before(F, factor, axis, not reverse, 0), g, axis=axis, reverse=not reverse)


def _prod_vjp(F: Namespace[V], g: V, y: V, x: V, axis: int, reverse: bool) -> tuple[V | None, ...]:
    sums = _backwards(F, F.conjugate(x), g, axis, reverse)
    return (F.multiply(F.conjugate(_before(F, y, axis, reverse, 1)), sums),)


def _prod_jvp(F: Namespace[V], t: Any, y: V, x: V, axis: int, reverse: bool) -> V:
    return F.recurrence(x, F.multiply(t[0], _before(F, y, axis, reverse, 1)), axis=axis, reverse=reverse)


def _recurrence_vjp(F: Namespace[V], g: V, y: V, factor: V, value: V, axis: int, reverse: bool) -> tuple[V | None, ...]:
    by_value = _backwards(F, F.conjugate(factor), g, axis, reverse)
    return F.multiply(by_value, F.conjugate(_before(F, y, axis, reverse, 0))), by_value


def _recurrence_jvp(F: Namespace[V], t: Any, y: V, factor: V, value: V, axis: int, reverse: bool) -> V:
    parts = [F.multiply(t[0], _before(F, y, axis, reverse, 0))] if t[0] is not None else []
    parts += [t[1]] if t[1] is not None else []
    return F.recurrence(factor, parts[0] if len(parts) == 1 else F.add(*parts), axis=axis, reverse=reverse)


def _ratio(F: Namespace[V], a: V, b: V) -> V:
    """exp(a - b) for a <= b; 0 where b is infinite."""
    finite = F.less(F.abs(b), float("inf"))
    return F.where(finite, F.exp(F.subtract(a, F.where(finite, b, 0))), 0)


def _log_vjp(F: Namespace[V], g: V, y: V, x: V, axis: int, reverse: bool) -> tuple[V | None, ...]:
    shrinking = _ratio(F, _before(F, y, axis, reverse, -float("inf")), y)
    return (F.multiply(_backwards(F, shrinking, g, axis, reverse), _ratio(F, x, y)),)


def _log_jvp(F: Namespace[V], t: Any, y: V, x: V, axis: int, reverse: bool) -> V:
    shrinking = _ratio(F, _before(F, y, axis, reverse, -float("inf")), y)
    return F.recurrence(shrinking, F.multiply(t[0], _ratio(F, x, y)), axis=axis, reverse=reverse)


def _extremum_rules(position: str) -> dict[str, Any]:
    """The element that was taken gets the gradient: of equal ones the one folded first."""

    def vjp(F: Namespace[V], g: V, y: V, x: V, axis: int, reverse: bool) -> tuple[V | None, ...]:
        places = getattr(F, position)(x, axis=axis, reverse=reverse)
        return (added_along(F, F.zeros_like(x), places, g, axis),)

    def jvp(F: Namespace[V], t: Any, y: V, x: V, axis: int, reverse: bool) -> Any:
        return taken_along(F, t[0], getattr(F, position)(x, axis=axis, reverse=reverse), axis)

    return {"vjp": vjp, "jvp": jvp}


class Cumulative(Base[V], Generic[V]):
    @op(infer=rule.cumulative, reference=_accumulated(np.add), nest=_nest("sum"), inplace=(0,), linear="jointly",
        vjp=lambda F, g, y, x, axis, reverse: (F.cumulative_sum(g, axis=axis, reverse=not reverse),))
    def cumulative_sum(self, x: V, *, axis: int, reverse: bool = False) -> V: ...

    @op(infer=rule.cumulative, reference=_accumulated(np.multiply), nest=_nest("product"), inplace=(0,),
        vjp=_prod_vjp, jvp=_prod_jvp)
    def cumulative_prod(self, x: V, *, axis: int, reverse: bool = False) -> V: ...

    @op(infer=rule.extremum, reference=_accumulated(np.maximum), nest=_nest("maximum"), inplace=(0,), exact=True,
        **_extremum_rules("argcummax"))
    def cummax(self, x: V, *, axis: int, reverse: bool = False) -> V:
        """NaN wins; of equal elements the one folded first has the gradient."""
        ...

    @op(infer=rule.extremum, reference=_accumulated(np.minimum), nest=_nest("minimum"), inplace=(0,), exact=True,
        **_extremum_rules("argcummin"))
    def cummin(self, x: V, *, axis: int, reverse: bool = False) -> V:
        """NaN wins; of equal elements the one folded first has the gradient."""
        ...

    @op(infer=rule.position, reference=_position(np.maximum, np.greater), nest=_nest("argmax"), exact=True,
        differentiable=False)
    def argcummax(self, x: V, *, axis: int, reverse: bool = False) -> V:
        """int64 position of what `cummax` gives: of equal elements, or NaN, the one folded first."""
        ...

    @op(infer=rule.position, reference=_position(np.minimum, np.less), nest=_nest("argmin"), exact=True,
        differentiable=False)
    def argcummin(self, x: V, *, axis: int, reverse: bool = False) -> V:
        """int64 position of what `cummin` gives: of equal elements, or NaN, the one folded first."""
        ...

    @op(infer=rule.logarithmic, reference=_accumulated(np.logaddexp), nest=_nest("logsumexp"), inplace=(0,),
        vjp=_log_vjp, jvp=_log_jvp)
    def logcumsumexp(self, x: V, *, axis: int, reverse: bool = False) -> V:
        """log(cumulative_sum(exp(x))), without overflow."""
        ...

    @op(infer=rule.recurrence, reference=_recurrence, nest=_nest("recurrence"), promote=ALL_INPUTS, inplace=(0, 1),
        vjp=_recurrence_vjp, jvp=_recurrence_jvp)
    def recurrence(self, factor: V, value: V, *, axis: int, reverse: bool = False) -> V:
        """y[i] = factor[i] * y[i - 1] + value[i], with y[-1] = 0."""
        ...
