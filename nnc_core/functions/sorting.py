"""Sorting, choosing the largest, searching what is sorted.

One order everywhere: numbers by size, 0.0 and -0.0 alike, NaN above all others (so it is last, or first if the largest
are).  Every sort is stable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.dtype import is_integer
from nnc_core.base.errors import AttributeValueError, DTypeError, OperandError, OutOfRangeError, ShapeError
from nnc_core.functions.cumulative import along
from nnc_core.functions.reduction import as_dtype
from nnc_core.operator.along import taken_along
from nnc_core.shape.axes import normalise_axis
from nnc_core.shape.elementwise import broadcast
from nnc_core.type import whole
from nnc_core.values.arguments import ArrayLike, as_value, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value
from nnc_core.values.whole import as_whole

__all__ = [
    "argpartition", "argsort", "digitize", "lexsort", "partition", "searchsorted", "sort", "top_k",
]  # fmt: skip


class TopK(NamedTuple):
    """The k largest or smallest elements along an axis, and their int64 positions."""

    values: Tensor
    indices: Tensor


@by_shapes
@names_itself
def sort(x: ArrayLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements along an axis from the smallest to the largest, NaN last; or the other way round."""
    v = as_value(x)
    return Tensor(F.sort(v, axis=normalise_axis(axis, v.ndim), descending=descending))


@by_shapes
@names_itself
def argsort(x: ArrayLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """int64 positions of the elements along an axis, from the smallest to the largest, or the other way round."""
    v = as_value(x)
    return Tensor(F.argsort(v, axis=normalise_axis(axis, v.ndim), descending=descending))


@by_shapes
@names_itself
def lexsort(keys: ArrayLike | Sequence[ArrayLike], /, axis: int = -1) -> Tensor:
    """int64 positions along an axis of the keys, ordered by the last key, where that is equal by the one before it,
    and so on.  Keys are rows of an array, or a sequence of arrays of one shape."""
    v = _stacked(keys) if isinstance(keys, (tuple, list)) else as_value(keys)
    if v.ndim < 2:
        raise ShapeError(f"{v.spec} are no keys", hint="give a sequence of arrays, or an array with a row for each")
    return Tensor(F.lexsort(v, axis=normalise_axis(axis, v.ndim - 1)))


def _stacked(keys: Sequence[ArrayLike]) -> Value:
    if not keys:
        raise OperandError("no keys to sort by")
    values = as_values(*keys)
    shape = broadcast(*[v.shape for v in values])
    rows = [F.reshape(v if v.shape == shape else F.broadcast_to(v, shape=shape), shape=(1, *shape)) for v in values]
    return F.concat(*rows, axis=0)


# ---- partitions: a sorted array is one, for every k
def _places(kth: int | Sequence[int], length: Any) -> tuple[int, ...]:
    places = kth if isinstance(kth, (tuple, list)) else (kth,)
    for k in places:
        if isinstance(length, int) and not -length <= whole(k, "kth") < length:
            raise OutOfRangeError(f"kth {k} is out of range for an axis of length {length}",
                                  hint=f"{-length} <= kth < {length}")
    return tuple(map(int, places))


@by_shapes
@names_itself
def partition(x: ArrayLike, kth: int | Sequence[int], /, axis: int | None = -1) -> Tensor:
    """The elements along an axis so that the k-th stands where it would in order, none before it is larger and none
    behind it is smaller; of the flattened x without an axis.

    Those before and behind are in any order: in order where no device has a quicker way, and under
    `config.deterministic`."""
    v, a = along(as_value(x), axis)
    found = as_whole("partitioned", (v,), (a, _places(kth, v.shape[a])))
    return Tensor(F.sort(v, axis=a) if found is None else found)


@by_shapes
@names_itself
def argpartition(x: ArrayLike, kth: int | Sequence[int], /, axis: int | None = -1) -> Tensor:
    """int64 positions of the elements as `partition` has them."""
    v, a = along(as_value(x), axis)
    found = as_whole("arg_partitioned", (v,), (a, _places(kth, v.shape[a])))
    return Tensor(F.argsort(v, axis=a) if found is None else found)


@by_shapes
@names_itself
def top_k(x: ArrayLike, k: int, /, *, axis: int = -1, largest: bool = True, sorted: bool = True) -> TopK:
    """The k largest (or smallest) elements along an axis and where they are, in order, of equal ones the first first.

    NaN is the largest.  The gradient goes to the elements that were chosen.
    """
    v = as_value(x)
    a = normalise_axis(axis, v.ndim)
    indices = F.arg_top_k(v, axis=a, k=whole(k, "k"), largest=largest)
    return TopK(Tensor(taken_along(F, v, indices, a)), Tensor(indices))


# ---- searching
def _is_right(side: str) -> bool:
    if side not in ("left", "right"):
        raise AttributeValueError(f"side {side!r} is neither 'left' nor 'right'")
    return side == "right"


@by_shapes
@names_itself
def searchsorted(x1: ArrayLike, x2: ArrayLike, /, *, side: str = "left", sorter: ArrayLike | None = None) -> Tensor:
    """int64: where each of x2 would have to stand in x1, a sorted vector: before its equals ("left") or behind them.

    With `sorter` x1[sorter] is the sorted vector.  That it is sorted is not checked.
    """
    right = _is_right(side)
    if sorter is None:
        return Tensor(F.searchsorted(*as_values(x1, x2), right=right))
    v, values, order = as_values(x1, x2, sorter)
    if not is_integer(order.dtype):
        raise DTypeError(f"the sorter is {order.dtype}, not integers", hint="argsort gives one")
    return Tensor(F.searchsorted(F.take(v, order, axis=0), values, right=right))


@by_shapes
@names_itself
def digitize(x: ArrayLike, bins: ArrayLike, /, right: bool = False) -> Tensor:
    """int64: the number of the bin that each element lies in; bins[i - 1] <= x < bins[i], or bins[i - 1] < x <= bins[i]
    if `right`; for falling bins bins[i - 1] > x >= bins[i], or bins[i - 1] >= x > bins[i].  NaN lies behind all.

    Bins that neither rise nor fall are an error, where they are host data; those of a tensor are not checked.
    """
    if not isinstance(bins, Tensor):
        _check_monotonic(np.asarray(bins))
    v, edges = as_values(x, bins)
    n = edges.shape[0] if edges.ndim == 1 else 0
    if n == 0 or n == 1:
        return Tensor(F.searchsorted(edges, v, right=not right))
    if (found := as_whole("digitized", (v, edges), (right,))) is not None:
        return Tensor(found)
    is_rising = F.reshape(F.less_equal(F.slice(edges, start=(0,), stop=(1,), step=(1,)),
                                       F.slice(edges, start=(n - 1,), stop=(n,), step=(1,))), shape=())
    before = F.searchsorted(F.where(is_rising, edges, F.flip(edges, axes=(0,))), v, right=not right)
    behind = F.subtract(F.sum(F.full_like(as_dtype(edges, before.dtype), 1), axis=(0,)), before)
    return Tensor(F.where(is_rising, before, behind))


def _check_monotonic(bins: np.ndarray[Any, Any]) -> None:
    if bins.ndim != 1:
        raise ShapeError(f"bins have {bins.ndim} axes, not one")
    steps = bins[1:] >= bins[:-1], bins[1:] <= bins[:-1]
    if not (steps[0].all() or steps[1].all()):
        raise AttributeValueError("bins neither rise nor fall", hint="sort them")
