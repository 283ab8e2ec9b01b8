"""Functions that repeat, insert and delete elements.

Which elements is known when the function is called: it decides about shapes.  Only `repeat` also takes counts that are
not known yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.base.dtype import is_integer
from nnc_core.base.errors import AttributeValueError, OperandError, OutOfRangeError, ShapeError
from nnc_core.functions.movement import with_dims
from nnc_core.functions.pieces import cut, flat, known, moved, sequence, taken, with_length
from nnc_core.operator import OPERATORS
from nnc_core.shape.axes import normalise_axis
from nnc_core.type import DimLike
from nnc_core.values.arguments import ArrayLike, as_value, as_values, count_of, names_itself
from nnc_core.values.data_dependent import size_for
from nnc_core.values.dispatch import F
from nnc_core.values.operands import value_of
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value
from nnc_core.values.whole import as_whole

__all__ = ["delete", "insert", "repeat", "resize_flat", "tile"]

_REPEAT = OPERATORS["repeat_index"]


FEW = 8
"""Slices that are taken out by joining what is between them."""


# ---- again and again
@by_shapes
@names_itself
def repeat(x: ArrayLike, repeats: ArrayLike, /, *, axis: int | None = None) -> Tensor:
    """Each slice along an axis so often, one after the other: a count for all, or one for each.

    Without an axis each element of the flattened x.  With counts that are a tensor the length of the result depends on
    data.
    """
    v = as_value(x)
    v, a = (flat(v), 0) if axis is None else (v, normalise_axis(axis, v.ndim))
    if isinstance(repeats, Tensor):
        return Tensor(_repeated_by_tensor(v, value_of(repeats), a))
    counts = known(repeats, "a count")
    if counts.dtype.kind == "b" or (counts.size and counts.min() < 0):
        raise AttributeValueError(f"repeats {repeats} are no counts", hint="integers that are not negative")
    if counts.size == 1:
        return Tensor(_repeated(v, int(counts.item()), a))
    if counts.ndim != 1 or len(counts) != v.shape[a]:
        raise ShapeError(f"repeats of shape {counts.shape} for axis {a} of {v.spec}")
    return Tensor(taken(v, np.repeat(np.arange(len(counts)), counts), a))


def _repeated(v: Value, count: int, axis: int) -> Value:
    longer = v.shape[axis] * count
    if count == 1:
        return v
    if (found := as_whole("repeated", (v,), (count, axis))) is not None:
        return found  # type: ignore[no-any-return]
    apart = F.reshape(v, shape=(*v.shape[: axis + 1], 1, *v.shape[axis + 1 :]))
    spread = F.broadcast_to(apart, shape=(*v.shape[: axis + 1], count, *v.shape[axis + 1 :]))
    return F.reshape(spread, shape=with_length(v.shape, axis, longer))


def _repeated_by_tensor(v: Value, counts: Value, axis: int) -> Value:
    if not is_integer(counts.dtype):
        raise OperandError(f"repeats are {counts.spec}, not integers", hint="cast with astype")
    if counts.shape in ((), (1,)):
        counts = F.broadcast_to(counts, shape=(v.shape[axis],))
    if counts.shape != (v.shape[axis],):
        raise ShapeError(f"repeats {counts.spec} for axis {axis} of {v.spec}")
    return F.take(v, F.repeat_index(counts, size=size_for(counts, _REPEAT)), axis=axis)


@by_shapes
@names_itself
def tile(x: ArrayLike, repetitions: DimLike | Sequence[DimLike], /) -> Tensor:
    """x side by side with itself, so often along each axis; counts are for the last axes, missing ones 1."""
    v = as_value(x)
    counts = sequence(repetitions)
    if any(isinstance(n, int) and n < 0 for n in counts):
        raise AttributeValueError(f"repetitions {counts} are negative")
    v = with_dims(v, len(counts))
    counts = (*(1,) * (v.ndim - len(counts)), *counts)
    apart = F.reshape(v, shape=tuple([n for d in v.shape for n in (1, d)]))
    spread = F.broadcast_to(apart, shape=tuple([n for pair in zip(counts, v.shape, strict=True) for n in pair]))
    return Tensor(F.reshape(spread, shape=tuple([d * n for n, d in zip(counts, v.shape, strict=True)])))


@names_itself
def resize_flat(x: ArrayLike, new_shape: int | Sequence[int], /) -> Tensor:
    """NumPy's `resize`: the elements in C order, from the first again when they end, in an array of another shape.

    `resize` is for images.
    """
    v = flat(as_value(x))
    shape = tuple(int(d) for d in sequence(new_shape))
    wanted, there = count_of(shape), int(v.shape[0])
    if any(d < 0 for d in shape):
        raise AttributeValueError(f"shape {shape} has a negative dimension")
    if not there:
        return Tensor(F.pad(v, low=(0,), high=(int(wanted),), interior=(0,))).reshape(shape)
    rounds = -(-int(wanted) // there)
    spread = F.broadcast_to(F.reshape(v, shape=(1, there)), shape=(rounds, there))
    return Tensor(F.reshape(cut(flat(spread), 0, 0, wanted), shape=shape))


# ---- more and fewer
@by_shapes
@names_itself
def insert(x: ArrayLike, obj: Any, values: ArrayLike, /, axis: int | None = None) -> Tensor:
    """x with values before the given indices of an axis (an integer, several, a slice, a mask), in the flattened x
    without one; they become x's dtype."""
    v, new = as_values(x, values)
    v, a = (flat(v), 0) if axis is None else (v, normalise_axis(axis, v.ndim))
    new = new if new.dtype == v.dtype else F.cast(new, dtype=v.dtype)
    length = int(v.shape[a])
    places = _places(obj, length)
    if places.size == 1:
        new = with_dims(new, v.ndim)
        new = moved(new, [0], [a]) if places.ndim == 0 else new
        count = int(new.shape[a])
    else:
        count = len(places)
    new = F.broadcast_to(new, shape=with_length(v.shape, a, count))
    _check(places, length, length)
    if places.size == 1:
        at = int(places.item()) % (length + 1) if places.item() >= 0 else int(places.item()) + length
        return Tensor(F.concat(cut(v, a, 0, at), new, cut(v, a, at, length), axis=a))
    order = np.insert(np.arange(length), places, length + np.arange(count))
    return Tensor(taken(F.concat(v, new, axis=a), order, a))


@by_shapes
@names_itself
def delete(x: ArrayLike, obj: Any, /, axis: int | None = None) -> Tensor:
    """x without the given indices of an axis (an integer, several, a slice, a mask); of the flattened x without one."""
    v = as_value(x)
    v, a = (flat(v), 0) if axis is None else (v, normalise_axis(axis, v.ndim))
    length = int(v.shape[a])
    places = _places(obj, length)
    _check(places, length, length - 1)
    gone = np.unique(np.where(places < 0, places + length, places))
    if 0 < gone.size <= FEW:
        return Tensor(F.concat(*_between(v, a, gone.tolist()), axis=a))
    return Tensor(taken(v, np.delete(np.arange(length), places), a))


def _between(v: Value, axis: int, gone: list[int]) -> list[Value]:
    """The pieces before, between and behind some places, one at least."""
    begins, ends = [0, *(at + 1 for at in gone)], [*gone, int(v.shape[axis])]
    pieces = [cut(v, axis, begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end]
    return pieces or [cut(v, axis, 0, 0)]


def _places(obj: Any, length: int) -> np.ndarray[Any, Any]:
    """Indices; the true ones of a mask."""
    if isinstance(obj, slice):
        return np.arange(length)[obj]
    places = known(obj, "an index")
    if places.dtype.kind == "b":
        if places.shape != (length,):
            raise ShapeError(f"a mask of shape {places.shape} for an axis of length {length}")
        return np.flatnonzero(places)
    if places.ndim > 1:
        raise ShapeError(f"indices of shape {places.shape}", hint="an integer, or one dimension of them")
    return places.astype(np.int64)


def _check(places: np.ndarray[Any, Any], length: int, last: int) -> None:
    wrong = places[(places < -length) | (places > last)]
    if wrong.size:
        raise OutOfRangeError(f"index {wrong.flat[0]} is out of range for an axis of length {length}")
