"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import accumulator
from nnc_core.base.loopnest import LoopNest
from nnc_core.operator.along import shifted
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.loops import Index, open_nest
from nnc_core.shape import reduction as rule
from nnc_core.type import Dims

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def _places(ndim: int, axis: tuple[int, ...], kept: list[Index], folded: list[Index],
            keepdims: bool) -> tuple[Any, Any]:
    """Indices into the input and into the output."""
    outer, inner = iter(kept), iter(folded)
    source = [next(inner) if i in axis else next(outer) for i in range(ndim)]
    target = [0 if i in axis else source[i] for i in range(ndim) if keepdims or i not in axis]
    return source, target


def _reduce_nest(kind: str) -> Callable[[Command], LoopNest]:
    def build(command: Command) -> LoopNest:
        axis, keepdims = _axes(command)
        x = command.inputs[0]
        nest = open_nest(command)
        kept = nest.outer(*[n for i, n in enumerate(x.shape) if i not in axis])
        with nest.stage(*[x.shape[i] for i in axis]) as folded:
            source, target = _places(len(x.shape), axis, kept, folded, keepdims)
            value = nest.load(0, *source)
            result = nest.fold(kind, value.cast(accumulator(x.dtype)) if kind in ("sum", "product") else value)
        nest.store(0, result, *target)
        return nest.build()

    return build


def _axes(command: Command) -> tuple[tuple[int, ...], bool]:
    axis, keepdims = command.attributes
    return (axis,) if isinstance(axis, int) else axis, bool(keepdims)


def _folded(function: np.ufunc) -> Callable[..., Any]:
    """float16 and bfloat16 are folded in float32; integers wrap."""

    def fold(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
        wide: Any = np.asarray(x, accumulator(x.dtype))
        return np.asarray(function.reduce(wide, axis, keepdims=keepdims, dtype=wide.dtype)).astype(x.dtype)

    return fold


def spread(F: Namespace[V], g: V, x: V, axis: tuple[int, ...]) -> V:
    """A reduced value repeated along the axes it was reduced over."""
    kept = tuple(1 if i in axis else d for i, d in enumerate(x.shape))
    return F.broadcast_to(F.reshape(g, shape=kept), shape=x.shape)


def _others(F: Namespace[V], x: V, axis: tuple[int, ...]) -> V:
    """For each element the product of the others that are folded with it: without division, so that zeros do no harm,
    to any order of differentiation."""
    order = (*[i for i in range(len(x.shape)) if i not in axis], *axis)
    moved = F.permute(x, axes=order)
    last, count = len(order) - len(axis), 1
    for n in moved.shape[last:]:
        count = n * count
    row = F.reshape(moved, shape=(*moved.shape[:last], count))
    before = shifted(F, F.cumulative_prod(row, axis=last), last, 1, 1)
    after = shifted(F, F.cumulative_prod(row, axis=last, reverse=True), last, -1, 1)
    back = tuple(int(i) for i in np.argsort(order))
    return F.permute(F.reshape(F.multiply(before, after), shape=moved.shape), axes=back)


def shares(F: Namespace[V], y: V, x: V, axis: tuple[int, ...]) -> V:
    """The derivative of an extremum by each element: those that attain it share it."""
    attained = F.cast(F.equal(x, spread(F, y, x, axis)), dtype=x.dtype)
    return F.divide(attained, F.sum(attained, axis=axis, keepdims=True))


def _extremum_vjp(F: Namespace[V], g: V, y: V, x: V, axis: tuple[int, ...], keepdims: bool) -> tuple[V | None, ...]:
    return (F.multiply(spread(F, g, x, axis), shares(F, y, x, axis)),)


def _extremum_jvp(F: Namespace[V], t: Any, y: V, x: V, axis: tuple[int, ...], keepdims: bool) -> V:
    return F.sum(F.multiply(t[0], shares(F, y, x, axis)), axis=axis, keepdims=keepdims)


def _position(function: Any) -> Any:
    return lambda x, axis, keepdims: np.asarray(function(x, axis=axis, keepdims=keepdims), np.int64)


class Reduction(Base[V], Generic[V]):
    """`axis` is sorted, unique and non-negative."""

    @op(infer=rule.reduction, reference=_folded(np.add), nest=_reduce_nest("sum"), linear="jointly",
        vjp=lambda F, g, y, x, axis, keepdims: (spread(F, g, x, axis),))
    def sum(self, x: V, *, axis: tuple[int, ...], keepdims: bool = False) -> V: ...

    @op(infer=rule.reduction, reference=_folded(np.multiply), nest=_reduce_nest("product"),
        vjp=lambda F, g, y, x, axis, keepdims: (
            F.multiply(spread(F, g, x, axis), F.conjugate(_others(F, x, axis))),),
        jvp=lambda F, t, y, x, axis, keepdims: F.sum(
            F.multiply(t[0], _others(F, x, axis)), axis=axis, keepdims=keepdims))
    def prod(self, x: V, *, axis: tuple[int, ...], keepdims: bool = False) -> V: ...

    @op(infer=rule.extremum, reference=lambda x, axis, keepdims: np.maximum.reduce(x, axis, keepdims=keepdims),
        nest=_reduce_nest("maximum"), exact=True, vjp=_extremum_vjp, jvp=_extremum_jvp)
    def max(self, x: V, *, axis: tuple[int, ...], keepdims: bool = False) -> V:
        """NaN wins; elements that share the maximum share its gradient."""
        ...

    @op(infer=rule.extremum, reference=lambda x, axis, keepdims: np.minimum.reduce(x, axis, keepdims=keepdims),
        nest=_reduce_nest("minimum"), exact=True, vjp=_extremum_vjp, jvp=_extremum_jvp)
    def min(self, x: V, *, axis: tuple[int, ...], keepdims: bool = False) -> V:
        """NaN wins; elements that share the minimum share its gradient."""
        ...

    @op(infer=rule.position, reference=_position(np.argmax), nest=_reduce_nest("argmax"), exact=True,
        differentiable=False)
    def argmax(self, x: V, *, axis: int, keepdims: bool = False) -> V:
        """int64 position of the first maximum, or of the first NaN."""
        ...

    @op(infer=rule.position, reference=_position(np.argmin), nest=_reduce_nest("argmin"), exact=True,
        differentiable=False)
    def argmin(self, x: V, *, axis: int, keepdims: bool = False) -> V:
        """int64 position of the first minimum, or of the first NaN."""
        ...

    @op(infer=rule.quantifier, reference=lambda x, axis, keepdims: np.logical_and.reduce(x, axis, keepdims=keepdims),
        nest=_reduce_nest("all"), exact=True, differentiable=False)
    def all(self, x: V, *, axis: tuple[int, ...], keepdims: bool = False) -> V: ...

    @op(infer=rule.quantifier, reference=lambda x, axis, keepdims: np.logical_or.reduce(x, axis, keepdims=keepdims),
        nest=_reduce_nest("any"), exact=True, differentiable=False)
    def any(self, x: V, *, axis: tuple[int, ...], keepdims: bool = False) -> V: ...

    def sum_to(self, g: V, shape: Dims) -> V:
        """Undo a broadcast from `shape`: every elementwise gradient ends with it."""
        if g.shape == shape:
            return g
        F: Any = self
        lead = len(g.shape) - len(shape)
        repeated = [i + lead for i, d in enumerate(shape) if d == 1 and g.shape[i + lead] != 1]
        return F.reshape(F.sum(g, axis=(*range(lead), *repeated)), shape=shape)  # type: ignore[no-any-return]
