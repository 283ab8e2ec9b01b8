"""Linear resampling along an axis: every element of the result is a weighted sum of a few elements, named by tables.

Resizing by any rule and adaptive averages are this operator with different tables; `spread` is its transpose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import accumulator, int64
from nnc_core.base.loopnest import LoopNest
from nnc_core.base.moved_axes import moved
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.loops import Index, open_nest
from nnc_core.shape import resampling as rule
from nnc_core.shape.resampling import Reach
from nnc_core.type import DimLike

if TYPE_CHECKING:
    from nnc_core.operator import Namespace

Array = np.ndarray[Any, Any]


def _weighted(x: Array, indices: Array, weights: Array, axis: int) -> Array:
    """One pass for each column of the tables; index -1 is a row of zeros at the end."""
    wide = moved(x, axis, 0).astype(accumulator(x.dtype))
    rows = np.concatenate([wide, np.zeros((1, *wide.shape[1:]), wide.dtype)])
    out = np.zeros((len(indices), *wide.shape[1:]), wide.dtype)
    scale = weights.reshape(*weights.shape, *(1,) * (x.ndim - 1))
    for t in range(indices.shape[1]):
        out += scale[:, t] * rows[indices[:, t]]
    return moved(out, 0, axis).astype(x.dtype)


def _resample(x: Array, indices: Array, weights: Array, axis: int, reach: Reach) -> Array:
    return _weighted(x, indices, weights, axis)


def _spread(g: Array, indices: Array, weights: Array, axis: int, size: int, reach: Reach) -> Array:
    numerator, denominator, offset, count = reach
    rows = np.arange(len(indices))[:, None] - (indices.astype(np.int64) * numerator + offset) // denominator
    within = np.where((rows >= 0) & (rows < count), indices, -1)
    return _weighted(g, *_transposed(within, weights, size), axis)


def _transposed(indices: Array, weights: Array, size: int) -> tuple[Array, Array]:
    """The tables that lead back: for each of `size` elements the rows that read it."""
    row, column = np.nonzero(indices >= 0)
    named = indices[row, column]
    order = np.argsort(named, kind="stable")
    row, column, named = row[order], column[order], named[order]
    counts = np.bincount(named, minlength=size)
    place = np.arange(len(named)) - np.repeat(np.cumsum(counts) - counts, counts)
    width = int(counts.max(initial=0))
    back, scale = np.full((size, width), -1, np.int64), np.zeros((size, width), weights.dtype)
    back[named, place], scale[named, place] = row, weights[row, column]
    return back, scale


def _resample_nest(command: Command) -> LoopNest:
    axis: Any = command.attributes[0]
    x, indices, _ = command.inputs
    wide = accumulator(x.dtype)
    nest = open_nest(command)
    at = nest.outer(*command.output.shape)
    with nest.stage(indices.shape[1]) as (t,):
        named = nest.load(1, at[axis], t).cast(int64)
        value = nest.load(0, *at[:axis], Index(gather=named, inside=False), *at[axis + 1 :]).cast(wide)
        total = nest.fold("dot", value, nest.load(2, at[axis], t))
    nest.store(0, total, *at)
    return nest.build()


def _spread_nest(command: Command) -> LoopNest:
    """Only rows within reach are looked at."""
    axis, _, reach = command.attributes
    numerator, denominator, offset, count = reach
    g, indices, _ = command.inputs
    wide = accumulator(g.dtype)
    nest = open_nest(command)
    at: Any = nest.outer(*command.output.shape)
    with nest.stage(count, indices.shape[1]) as (k, t):
        here = nest.position(at[axis])
        first = (here * numerator + offset).apply("floor_divide", denominator)
        row = (Index(gather=first) + k).guarded()
        hit = nest.load(1, row, t, fill=-1).cast(int64).equal(here)
        value = nest.load(0, *at[:axis], row, *at[axis + 1 :]).cast(wide) * nest.load(2, row, t)
        total = nest.fold("sum", hit.select(value, 0))
    nest.store(0, total, *at)
    return nest.build()


def _by_weights(F: Namespace[V], read: V, written: V, indices: V, weights: V, axis: int) -> V:
    """Element (o, t): the sum over all lines of what row o reads there, times what it writes."""
    there = F.greater_equal(indices, 0)
    read, written = F.cast(read, dtype=weights.dtype), F.cast(written, dtype=weights.dtype)
    taken = F.take(read, F.where(there, indices, 0), axis=axis)
    beside = F.reshape(written, shape=(*written.shape[: axis + 1], 1, *written.shape[axis + 1 :]))
    others = tuple(i for i in range(read.ndim + 1) if i not in (axis, axis + 1))
    return F.where(there, F.sum(F.multiply(taken, beside), axis=others), 0)


class Resampling(Base[V], Generic[V]):
    """`indices` and `weights` have a row for each element of `resample`'s result along the axis: which elements it is
    the sum of, and times what; -1 adds nothing.

    The rows that read element j are among the `count` from (j * numerator + offset) // denominator on, where
    `reach` = (numerator, denominator, offset, count): `spread` looks at no others.
    """

    @op(infer=rule.resample, reference=_resample, nest=_resample_nest, linear="each",
        vjp=(lambda F, g, y, x, i, w, axis, reach: F.spread(g, i, w, axis=axis, size=x.shape[axis], reach=reach), None,
             lambda F, g, y, x, i, w, axis, reach: _by_weights(F, x, g, i, w, axis)))
    def resample(self, x: V, indices: V, weights: V, *, axis: int, reach: Reach) -> V:
        """Weighted sums of elements along an axis; the weights are of the dtype in which sums are formed."""
        ...

    @op(infer=rule.spread, reference=_spread, nest=_spread_nest, linear="each",
        vjp=(lambda F, h, y, g, i, w, axis, size, reach: F.resample(h, i, w, axis=axis, reach=reach), None,
             lambda F, h, y, g, i, w, axis, size, reach: _by_weights(F, h, g, i, w, axis)))
    def spread(self, g: V, indices: V, weights: V, *, axis: int, size: DimLike, reach: Reach) -> V:
        """The transpose of `resample`, whose input has `size` elements along the axis."""
        ...
