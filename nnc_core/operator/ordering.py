"""Sorting and searching.  One order everywhere: numbers by size, 0.0 and -0.0 alike, NaN above all others.

Sorting is stable: what is equal stays in the order in which it came, also when the largest come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.dtype import accumulator, is_float
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen.scalar import Scalar
from nnc_core.operator.along import taken_along
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.flops import sorting_along
from nnc_core.operator.loops import Index, open_nest
from nnc_core.shape import ordering as rule

if TYPE_CHECKING:
    from nnc_core.operator import Namespace

ROW = 1024
"""The longest rows that are sorted by counting, in a loop nest: for each element, how many lie before it."""


def argsort(x: Any, axis: int, descending: bool) -> Any:
    """NumPy's, with the largest first if wanted, and equal elements as they came then too."""
    x = np.asarray(x, accumulator(x.dtype))
    if not descending:
        return np.argsort(x, axis, kind="stable").astype(np.int64, copy=False)
    turned = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    return (x.shape[axis] - 1 - turned).astype(np.int64, copy=False)


def _less(a: Scalar, b: Scalar) -> Scalar:
    """a < b, where NaN is larger than everything else."""
    smaller = a < b
    return smaller | (b.not_equal(b) & a.equal(a)) if is_float(a.dtype) else smaller


def _argsort_nest(command: Command) -> LoopNest:
    """Each element goes where there are as many places before as elements that precede it."""
    axis, descending = command.attributes
    assert isinstance(axis, int)
    shape = command.output.shape
    if shape[axis] > ROW:
        raise NotSupportedError(f"rows of {shape[axis]} elements are more than loop nests sort, {ROW}")
    nest = open_nest(command)
    at = nest.outer(*shape)
    with nest.stage(shape[axis]) as (k,):
        mine, other = nest.load(0, *at), nest.load(0, *at[:axis], k, *at[axis + 1 :])
        first, second = (mine, other) if descending else (other, mine)
        equal = ~(_less(mine, other) | _less(other, mine))
        earlier = nest.position(k) < nest.position(at[axis])
        rank = nest.fold("sum", (_less(first, second) | (equal & earlier)).cast(dt.int64))
    nest.store(0, nest.position(at[axis]), *at[:axis], Index(gather=rank), *at[axis + 1 :])
    return nest.build()


def _searchsorted(x: Any, values: Any, right: bool) -> Any:
    wide = accumulator(values.dtype)
    x, values = x.astype(wide, copy=False), values.astype(wide, copy=False)
    return np.asarray(np.searchsorted(x, values, "right" if right else "left"), np.int64)


def _searchsorted_nest(command: Command) -> LoopNest:
    """A binary search, its steps written one after the other: how many of x lie before the value."""
    (right,) = command.attributes
    length = command.inputs[0].shape[0]
    nest = open_nest(command)
    at = nest.outer(*command.output.shape)
    value, found = nest.load(1, *at), nest.constant(0, dt.int64)
    for bit in reversed(range(length.bit_length())):
        further = found + (1 << bit)
        element = nest.load(0, Index(gather=further - 1, inside=False))
        before = ~_less(value, element) if right else _less(element, value)
        found = (before & (further <= length)).select(further, found)
    nest.store(0, found, *at)
    return nest.build()


def _row(F: Namespace[V], keys: V, number: int) -> V:
    shape = keys.shape
    start = (number, *(0,) * (len(shape) - 1))
    row = F.slice(keys, start=start, stop=(number + 1, *shape[1:]), step=(1,) * len(shape))
    return F.reshape(row, shape=shape[1:])


class Ordering(Base[V], Generic[V]):
    @op(infer=rule.argsort, reference=argsort, nest=_argsort_nest, exact=True, differentiable=False,
        flops=sorting_along)
    def argsort(self, x: V, *, axis: int, descending: bool = False) -> V:
        """int64 positions of the elements along an axis, in order."""
        ...

    @op(composite=True, infer=rule.sort, exact=True)
    def sort(self, x: V, *, axis: int, descending: bool = False) -> V:
        """The elements along an axis in order."""
        F: Any = self
        return taken_along(F, x, F.argsort(x, axis=axis, descending=descending), axis)  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.arg_top_k, exact=True, differentiable=False)
    def arg_top_k(self, x: V, *, axis: int, k: int, largest: bool = True) -> V:
        """int64 positions of the k largest or smallest elements along an axis, the first of them first."""
        F: Any = self
        order = F.argsort(x, axis=axis, descending=largest)
        ndim = len(x.shape)
        stop = tuple(k if i == axis else n for i, n in enumerate(x.shape))
        return F.slice(order, start=(0,) * ndim, stop=stop, step=(1,) * ndim)  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.lexsort, exact=True, differentiable=False)
    def lexsort(self, keys: V, *, axis: int) -> V:
        """int64 positions along an axis of the keys, ordered by the last key, where that is equal by the one before
        it, and so on."""
        F: Any = self
        order = F.argsort(_row(F, keys, 0), axis=axis)
        for number in range(1, int(keys.shape[0])):
            key = taken_along(F, _row(F, keys, number), order, axis)
            order = taken_along(F, order, F.argsort(key, axis=axis), axis)
        return order  # type: ignore[no-any-return]

    @op(infer=rule.searchsorted, reference=_searchsorted, nest=_searchsorted_nest, promote=(0, 1), exact=True,
        differentiable=False)
    def searchsorted(self, x: V, values: V, *, right: bool = False) -> V:
        """int64: how many elements of x, which is sorted, are smaller than each value; with `right`, not larger."""
        ...
