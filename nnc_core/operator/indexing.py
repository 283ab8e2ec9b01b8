"""Gathers by arrays of indices, and what is made of indices."""

from __future__ import annotations

from typing import Any, Generic

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.dtype import DType
from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.base.loopnest import LoopNest
from nnc_core.base.moved_axes import moved
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.flops import moving, per_output
from nnc_core.operator.loops import Index, open_nest
from nnc_core.shape import indexing as rule
from nnc_core.type import DimLike, IndexRange, index_range


def check_indices(operator: str, indices: Any, length: int) -> None:
    """OutOfRangeError unless -length <= index < length for all."""
    index_range.along(0, length).check(indices, operator)


def positions(indices: Any, batch: int) -> tuple[Any, ...]:
    """NumPy's key for an array whose first axes are `batch` shared ones and the indexed one."""
    near = np.asarray(indices).astype(np.intp, copy=False)
    rows = [np.arange(n).reshape((n,) + (1,) * (near.ndim - 1 - k)) for k, n in enumerate(near.shape[:batch])]
    return (*rows, near)


def indices_first(updates: Any, indices: Any, axis: int, batch: int) -> Any:
    """The result of `take`, or the updates of `scatter`, with the axes of the indices right behind the shared ones."""
    count = indices.ndim - batch
    return moved(updates, axis, batch, count)


def _take(x: Any, indices: Any, axis: int, batch: int) -> Any:
    x, indices = np.asarray(x), np.asarray(indices)
    check_indices("take", indices, x.shape[axis])
    if not batch:
        return np.take(x, indices.astype(np.intp, copy=False), axis)
    taken = moved(x, axis, batch)[positions(indices, batch)]
    count = indices.ndim - batch
    return np.ascontiguousarray(moved(taken, batch, axis, count))


def _take_nest(command: Command) -> LoopNest:
    """Negative indices count from the end; one that is out of range reads nothing and gives zero, and is noted."""
    axis, batch = command.attributes
    assert isinstance(axis, int) and isinstance(batch, int)
    x, indices = command.inputs
    nest = open_nest(command)
    at = nest.outer(*command.output.shape)
    k = axis + len(indices.shape) - batch
    given = nest.load(1, *at[:batch], *at[axis:k])
    index = given.cast(dt.int64)
    wrapped = index if indices.dtype.kind == "u" else (index < 0).select(index + x.shape[axis], index)
    found = Index(gather=wrapped, inside=False)
    if nest.noting:
        nest.note(~nest.valid(0, *[found if n == axis else 0 for n in range(len(x.shape))]), given)
    nest.store(0, nest.load(0, *at[:axis], found, *at[k:]), *at)
    return nest.build()


def _index_offset(indices: Any, length: int, stride: int, size: int, signed: bool) -> Any:
    _offsets(length, signed).check(indices, "index_offset")
    near = np.asarray(indices).astype(np.int64)
    return np.where(near < 0, near + length, near) * np.int64(stride)


def _offsets(length: int, signed: bool) -> IndexRange:
    found = index_range.along(0, length)
    return found if signed else found._replace(low=0)


def _index_offset_nest(command: Command) -> LoopNest:
    """Indices of which one is out of range add up to less than -size, whatever the others are."""
    length, stride, size, signed = command.attributes
    assert isinstance(length, int)
    nest = open_nest(command)
    at = nest.outer(*command.output.shape)
    given = nest.load(0, *at)
    index = given.cast(dt.int64)
    wraps = signed and command.inputs[0].dtype.kind != "u"
    near = (index < 0).select(index + length, index) if wraps else index
    inside = (near >= 0) & (near < length)
    if nest.noting:
        nest.note(~inside, given)
    nest.store(0, inside.select(near * stride, nest.constant(-2 * size - 1, dt.int64)), *at)
    return nest.build()


def _one_hot(indices: Any, depth: int, dtype: DType) -> Any:
    return (np.asarray(indices)[..., None] == np.arange(depth)).astype(dtype)


def _one_hot_nest(command: Command) -> LoopNest:
    nest = open_nest(command)
    *at, k = nest.outer(*command.output.shape)
    hit = nest.load(0, *at).cast(dt.int64).equal(nest.position(k))
    dtype = command.output.dtype
    nest.store(0, hit.cast(dtype), *at, k)
    return nest.build()


def _earlier(indices: Any) -> Any:
    """Group by sorting: equal elements are neighbours then, in the order in which they came."""
    order = np.argsort(indices, axis=-1, kind="stable")
    ordered = np.take_along_axis(indices, order, -1)
    before = np.full(indices.shape, -1, np.int64)
    before[..., 1:] = np.where(ordered[..., 1:] == ordered[..., :-1], order[..., :-1], -1)
    out = np.empty(indices.shape, np.int64)
    np.put_along_axis(out, order, before, -1)
    return out


def _earlier_nest(command: Command) -> LoopNest:
    """The largest position that is equal and lies before."""
    nest = open_nest(command)
    *at, i = nest.outer(*command.output.shape)
    with nest.stage(command.output.shape[-1]) as (j,):
        equal = nest.load(0, *at, i).equal(nest.load(0, *at, j))
        before = nest.position(j) < nest.position(i)
        found = nest.fold("maximum", (equal & before).select(nest.position(j), nest.constant(-1, dt.int64)))
    nest.store(0, found, *at, i)
    return nest.build()


def _repeat_index(counts: Any, size: DimLike) -> Any:
    counts = np.asarray(counts).astype(np.int64)
    if counts.size and counts.min() < 0:
        raise AttributeValueError(f"count {counts.min()} is negative", operator="repeat_index")
    if isinstance(size, int) and counts.sum() != size:
        raise ShapeError(f"the counts add up to {counts.sum()}, not to {size}", operator="repeat_index")
    return np.repeat(np.arange(len(counts), dtype=np.int64), counts)


class Indexing(Base[V], Generic[V]):
    """Indices are integers; negative ones count from the end."""

    @op(infer=rule.take, reference=_take, nest=_take_nest, exact=True, storage=True, notes=True,
        indices=lambda shapes, axis, batch: index_range.along(1, shapes[0][axis]),
        vjp=lambda F, g, y, x, i, axis, batch: (
            F.scatter(F.zeros_like(x), i, g, axis=axis, mode="add", batch=batch), None),
        jvp=lambda F, t, y, x, i, axis, batch: F.take(t[0], i, axis=axis, batch=batch),
        flops=moving)
    def take(self, x: V, indices: V, *, axis: int, batch: int = 0) -> V:
        """Slices of x along an axis; that axis is replaced by the dimensions of `indices`.

        x and the indices share their first `batch` dimensions: each row of x has indices of its own.
        """
        ...

    @op(infer=rule.index_offset, reference=_index_offset, nest=_index_offset_nest, exact=True, notes=True,
        differentiable=False,
        indices=lambda shapes, length, stride, size, signed: _offsets(length, signed))
    def index_offset(self, indices: V, *, length: int, stride: int, size: int, signed: bool = True) -> V:
        """int64: indices of an axis of that length, `stride` elements apart, as offsets in an array of `size` elements.

        Negative indices count from the end if `signed`.  The sum of such offsets is out of range, and less than -size,
        where one of the indices is.
        """
        ...

    @op(infer=rule.one_hot, reference=_one_hot, nest=_one_hot_nest, exact=True, differentiable=False,
        indices=lambda shapes, depth, dtype: index_range.of_classes(0, depth, "index"))
    def one_hot(self, indices: V, *, depth: DimLike, dtype: DType) -> V:
        """1 at the index along a new last axis, 0 elsewhere; an index out of range gives zeros."""
        ...

    @op(infer=rule.earlier, reference=_earlier, nest=_earlier_nest, exact=True, differentiable=False)
    def earlier(self, indices: V) -> V:
        """int64: where along the last axis the nearest earlier element lies that is equal to this one, else -1."""
        ...

    @op(infer=rule.repeat_index, reference=_repeat_index, host=True, data_dependent=True, exact=True,
        differentiable=False, flops=per_output(1))
    def repeat_index(self, counts: V, *, size: DimLike) -> V:
        """int64[size]: each position in `counts` as often as the count there says."""
        ...
