"""Formulas over any namespace that rules along one axis share: neighbours, and elements at indices of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnc_core.operator.declare import V

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def shifted(F: Namespace[V], x: V, axis: int, by: int, fill: float) -> V:
    """The elements that lie `by` places before each along an axis; `fill` where there is none."""
    ndim, length = len(x.shape), x.shape[axis]
    none, ones = (0,) * ndim, (1,) * ndim
    low, high = (tuple(n if i == axis else 0 for i in range(ndim)) for n in (max(by, 0), max(-by, 0)))
    padded = F.pad(x, low=low, high=high, interior=none, value=fill)
    stop = tuple(length + high[axis] if i == axis else n for i, n in enumerate(x.shape))
    return F.slice(padded, start=high, stop=stop, step=ones)


def _last(axis: int, ndim: int) -> tuple[int, ...]:
    """The axes in the order in which this one is the last; the same undoes it."""
    swapped = list(range(ndim))
    swapped[axis], swapped[-1] = swapped[-1], swapped[axis]
    return tuple(swapped)


def taken_along(F: Namespace[V], x: V, indices: V, axis: int) -> V:
    """The elements of each row of x, along an axis, that the same row of `indices` names (NumPy's take_along_axis)."""
    ndim = len(x.shape)
    if axis == ndim - 1:
        return F.take(x, indices, axis=axis, batch=axis)
    order = _last(axis, ndim)
    taken = F.take(F.permute(x, axes=order), F.permute(indices, axes=order), axis=ndim - 1, batch=ndim - 1)
    return F.permute(taken, axes=order)


def added_along(F: Namespace[V], x: V, indices: V, updates: V, axis: int) -> V:
    """x with the elements that `taken_along` would read, and the updates added to them."""
    order = _last(axis, len(x.shape))
    moved = [F.permute(v, axes=order) for v in (x, indices, updates)]
    last = len(x.shape) - 1
    return F.permute(F.scatter(*moved, axis=last, mode="add", batch=last), axes=order)


def part_along(F: Namespace[V], x: V, axis: int, start: int, stop: int) -> V:
    """A range along one axis, which is not negative."""
    starts, stops = [0] * x.ndim, [*x.shape]
    starts[axis], stops[axis] = start, stop
    return F.slice(x, start=tuple(starts), stop=tuple(stops), step=(1,) * x.ndim)
