"""Gathers and scatters by arrays of indices."""

from __future__ import annotations

from typing import Any, Generic

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.dtype import DType
from nnc_core.base.loopnest import LoopNest
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.loops import Index, NestBuilder
from nnc_core.shape import indexing as rule


def _take(x: Any, indices: Any, axis: int) -> Any:
    return np.take(x, indices, axis)


def _take_nest(command: Command) -> LoopNest:
    """Negative indices count from the end; one that is out of range reads nothing and gives zero."""
    (axis,) = command.attributes
    assert isinstance(axis, int)
    x, indices = command.inputs
    nest = NestBuilder(command)
    at = nest.outer(*command.output.shape)
    k = axis + len(indices.shape)
    index = nest.load(1, *at[axis:k]).cast(dt.int64)
    wrapped = index.compare("less", 0).select(index + x.shape[axis], index)
    nest.store(0, nest.load(0, *at[:axis], Index(gather=wrapped, inside=False), *at[k:]), *at)
    return nest.build()


def _scatter(x: Any, indices: Any, updates: Any, axis: int, mode: str) -> Any:
    """Repeated indices: `set` keeps the last, `add` adds all."""
    out = np.array(x)
    where: Any = (*[slice(None)] * axis, np.asarray(indices))
    if mode == "set":
        out[where] = updates
    else:
        np.add.at(out, where, updates)
    return out


def _scatter_vjp(F: Any, g: Any, y: Any, x: Any, indices: Any, updates: Any, axis: int, mode: str) -> Any:
    taken = F.take(g, indices, axis=axis)
    if mode == "add":
        return g, None, taken
    kept = F.scatter(g, indices, F.zeros_like(updates), axis=axis, mode="set")
    return kept, None, F.multiply(taken, _last_writer(F, x, indices, updates, axis))


def _last_writer(F: Any, x: Any, indices: Any, updates: Any, axis: int) -> Any:
    """1 for each update that is still there at the end, 0 for one that a later update of the same index replaced."""
    count = 1
    for n in indices.shape:
        count = count * n
    tickets = F.reshape(F.arange(size=count, dtype=dt.int64), shape=indices.shape)
    winners = F.scatter(F.full(shape=(x.shape[axis],), value=-1, dtype=dt.int64), indices, tickets, axis=0, mode="set")
    alive = F.cast(F.equal(F.take(winners, indices, axis=0), tickets), dtype=updates.dtype)
    tail = len(updates.shape) - axis - len(indices.shape)
    return F.reshape(alive, shape=(*indices.shape, *(1,) * tail))


def _one_hot(indices: Any, depth: int, dtype: DType) -> Any:
    return (np.asarray(indices)[..., None] == np.arange(depth)).astype(dtype)


def _one_hot_nest(command: Command) -> LoopNest:
    nest = NestBuilder(command)
    *at, k = nest.outer(*command.output.shape)
    hit = nest.load(0, *at).cast(dt.int64).compare("equal", nest.position(k))
    dtype = command.output.dtype
    nest.store(0, hit.cast(dtype), *at, k)
    return nest.build()


class Indexing(Base[V], Generic[V]):
    """Indices are integers; negative ones count from the end."""

    @op(infer=rule.take, reference=_take, nest=_take_nest, exact=True,
        vjp=lambda F, g, y, x, i, axis: (F.scatter(F.zeros_like(x), i, g, axis=axis, mode="add"), None),
        jvp=lambda F, t, y, x, i, axis: F.take(t[0], i, axis=axis))
    def take(self, x: V, indices: V, *, axis: int) -> V:
        """Slices of x along an axis; that axis is replaced by the dimensions of `indices`."""
        ...

    @op(infer=rule.scatter, reference=_scatter, inplace=(0,), vjp=_scatter_vjp,
        jvp=lambda F, t, y, x, i, u, axis, mode: F.scatter(
            F.zeros_like(x) if t[0] is None else t[0], i, F.zeros_like(u) if t[2] is None else t[2],
            axis=axis, mode=mode))
    def scatter(self, x: V, indices: V, updates: V, *, axis: int, mode: str) -> V:
        """x with the slices that `take` would read replaced ("set": the last of equal indices) or added to ("add")."""
        ...

    @op(infer=rule.one_hot, reference=_one_hot, nest=_one_hot_nest, exact=True, differentiable=False)
    def one_hot(self, indices: V, *, depth: int, dtype: DType) -> V:
        """1 at the index along a new last axis, 0 elsewhere; an index out of range gives zeros."""
        ...
