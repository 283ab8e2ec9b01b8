"""Functions that give elements another shape or order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.base.errors import AttributeValueError, AxisError, ShapeError
from nnc_core.functions.creation import shape_given
from nnc_core.functions.pieces import cut, flat, moved, sequence
from nnc_core.shape.axes import normalise_axes, normalise_axis
from nnc_core.shape.elementwise import broadcast
from nnc_core.type import DimLike, Dims, whole
from nnc_core.values.arguments import ArrayLike, Axis, as_value, as_values, count_of, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.operands import copied
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "expand_dims",
    "flip", "fliplr", "flipud", "matrix_transpose", "moveaxis", "permute_dims", "ravel", "reshape", "roll", "rot90",
    "squeeze", "swapaxes",
]  # fmt: skip


@names_itself
def reshape(x: ArrayLike, /, shape: DimLike | Sequence[DimLike], *, copy: bool | None = None) -> Tensor:
    """The elements in C order under another shape; one dimension may be -1, what is left for it.

    Raises ShapeError where the number of elements is another.

    With copy=True in memory of its own.  Otherwise `copy` makes no difference: a tensor never sees what is written to
    another.
    """
    v = as_value(x)
    wanted: list[Any] = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    if wanted.count(-1) > 1:
        raise AttributeValueError(f"shape {tuple(wanted)} has more than one -1")
    if -1 in wanted:
        known = count_of(tuple(d for d in wanted if d != -1))
        total = count_of(v.shape)
        if isinstance(total, int) and isinstance(known, int) and (known == 0 or total % known):
            raise ShapeError(f"{v.spec} cannot be reshaped to {tuple(wanted)}")
        wanted[wanted.index(-1)] = total // known
    found = F.reshape(v, shape=tuple(int(d) if isinstance(d, np.integer) else d for d in wanted))
    return Tensor(copied(found) if copy else found)


@names_itself
def flatten(x: ArrayLike, /, start: int = 0, stop: int = -1) -> Tensor:
    """The axes from `start` to `stop`, both included, made one."""
    v = as_value(x)
    if v.ndim == 0:
        return Tensor(F.reshape(v, shape=(1,)))
    first, last = normalise_axis(start, v.ndim), normalise_axis(stop, v.ndim)
    if first > last:
        raise AxisError(f"{v.spec} has no axis {stop} from {start} on to flatten up to")
    joined = count_of(v.shape[first : last + 1])
    return Tensor(F.reshape(v, shape=(*v.shape[:first], joined, *v.shape[last + 1 :])))


@names_itself
def ravel(x: ArrayLike, /) -> Tensor:
    """The elements in C order, in one dimension."""
    return Tensor(flat(as_value(x)))


# ---- axes
@names_itself
def permute_dims(x: ArrayLike, /, axes: Sequence[int]) -> Tensor:
    """Axis i of the result is axis axes[i] of x: (2, 3, 4) by (2, 0, 1) gives (4, 2, 3).

    Raises AttributeValueError unless the axes are a permutation.
    """
    v = as_value(x)
    return Tensor(F.permute(v, axes=tuple(normalise_axis(a, v.ndim) for a in axes)))


@names_itself
def matrix_transpose(x: ArrayLike, /) -> Tensor:
    """The last two axes swapped."""
    v = as_value(x)
    if v.ndim < 2:
        raise ShapeError(f"{v.spec} is no matrix")
    return Tensor(F.permute(v, axes=(*range(v.ndim - 2), v.ndim - 1, v.ndim - 2)))


@by_shapes
@names_itself
def moveaxis(x: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor:
    """Axes brought to other places; those that are not named keep their order."""
    v = as_value(x)
    given, wanted = (_each_once(axes, v.ndim) for axes in (source, destination))
    if len(given) != len(wanted):
        raise AttributeValueError(f"{len(given)} axes {source} for {len(wanted)} places {destination}")
    return Tensor(moved(v, given, wanted))


def _each_once(axes: int | Sequence[int], ndim: int) -> list[int]:
    found = [normalise_axis(a, ndim) for a in sequence(axes)]
    if len(set(found)) < len(found):
        raise AttributeValueError(f"axis {axes} names an axis twice")
    return found


@by_shapes
@names_itself
def swapaxes(x: ArrayLike, axis1: int, axis2: int, /) -> Tensor:
    """Two axes in each other's place."""
    v = as_value(x)
    a, b = normalise_axis(axis1, v.ndim), normalise_axis(axis2, v.ndim)
    axes = list(range(v.ndim))
    axes[a], axes[b] = b, a
    return Tensor(F.permute(v, axes=tuple(axes)))


@by_shapes
@names_itself
def expand_dims(x: ArrayLike, /, axis: int | Sequence[int] = 0) -> Tensor:
    """New axes of length one, at these places of the result: (2, 3) with axis 0 gives (1, 2, 3), with -1 (2, 3, 1)."""
    v = as_value(x)
    places = sequence(axis)
    axes = normalise_axes(places, v.ndim + len(places))
    lengths = iter(v.shape)
    return Tensor(F.reshape(v, shape=tuple([1 if a in axes else next(lengths) for a in range(v.ndim + len(axes))])))


@by_shapes
@names_itself
def squeeze(x: ArrayLike, /, axis: Axis = None) -> Tensor:
    """Axes of length one removed: those named, or all.  Raises ShapeError where a named one has another length."""
    v = as_value(x)
    axes = tuple([a for a, d in enumerate(v.shape) if d == 1]) if axis is None else normalise_axes(axis, v.ndim)
    for a in axes:
        if v.shape[a] != 1:
            raise ShapeError(f"axis {a} of {v.spec} has length {v.shape[a]}, not 1")
    return Tensor(F.reshape(v, shape=tuple(d for i, d in enumerate(v.shape) if i not in axes)))


@names_itself
def atleast_1d(*arrays: ArrayLike) -> Tensor | tuple[Tensor, ...]:
    """Numbers as arrays of one element; several arrays give a tuple."""
    return _each([with_dims(v, 1) for v in as_values(*arrays)])


@names_itself
def atleast_2d(*arrays: ArrayLike) -> Tensor | tuple[Tensor, ...]:
    """Vectors as rows; several arrays give a tuple."""
    return _each([with_dims(v, 2) for v in as_values(*arrays)])


@names_itself
def atleast_3d(*arrays: ArrayLike) -> Tensor | tuple[Tensor, ...]:
    """Vectors (n,) as (1, n, 1), matrices (m, n) as (m, n, 1); several arrays give a tuple."""
    return _each([in_three_dims(v) for v in as_values(*arrays)])


def with_dims(v: Value, ndim: int) -> Value:
    """New axes in front, up to `ndim`."""
    return v if v.ndim >= ndim else F.reshape(v, shape=(*(1,) * (ndim - v.ndim), *v.shape))


def in_three_dims(v: Value) -> Value:
    if v.ndim >= 3:
        return v
    return F.reshape(v, shape=(*(1,) * (v.ndim < 2), *(v.shape or (1,)), 1))


def _each(values: Sequence[Value]) -> Tensor | tuple[Tensor, ...]:
    tensors = tuple(map(Tensor, values))
    return tensors[0] if len(tensors) == 1 else tensors


# ---- broadcasting
@names_itself
def broadcast_shapes(*shapes: DimLike | Sequence[DimLike]) -> Dims:
    """The shape that arrays of these shapes have together."""
    return broadcast((), *[sequence(s) for s in shapes])


@names_itself
def broadcast_to(x: ArrayLike, /, shape: DimLike | Sequence[DimLike]) -> Tensor:
    """x repeated along new axes and those of length one."""
    return Tensor(F.broadcast_to(as_value(x), shape=shape_given(shape)))


@by_shapes
@names_itself
def broadcast_arrays(*arrays: ArrayLike) -> list[Tensor]:
    """All brought to their common shape."""
    values = as_values(*arrays)
    shape = broadcast((), *[v.shape for v in values])
    return [Tensor(v if v.shape == shape else F.broadcast_to(v, shape=shape)) for v in values]


# ---- order
@by_shapes
@names_itself
def flip(x: ArrayLike, /, *, axis: Axis = None) -> Tensor:
    """The order of elements reversed along axes, along all without any named."""
    v = as_value(x)
    return Tensor(F.flip(v, axes=normalise_axes(axis, v.ndim)))


@by_shapes
@names_itself
def flipud(x: ArrayLike, /) -> Tensor:
    """The rows in reverse order."""
    return flip(x, axis=0)


@by_shapes
@names_itself
def fliplr(x: ArrayLike, /) -> Tensor:
    """The columns in reverse order."""
    return flip(x, axis=1)


@by_shapes
@names_itself
def rot90(x: ArrayLike, /, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """Turned k times by 90 degrees, from the first of two axes towards the second."""
    v = as_value(x)
    both = _each_once(axes, v.ndim)
    if len(both) != 2:
        raise AttributeValueError(f"axes {axes}: a turn has two of them", hint="axes=(0, 1)")
    a, b = both
    if k % 2 == 0:
        return Tensor(F.flip(v, axes=tuple(sorted((a, b)))) if k % 4 else v)
    order = [b if i == a else a if i == b else i for i in range(v.ndim)]
    return Tensor(F.flip(F.permute(v, axes=tuple(order)), axes=(a if k % 4 == 1 else b,)))


@by_shapes
@names_itself
def roll(x: ArrayLike, /, shift: int | Sequence[int], *, axis: int | Sequence[int] | None = None) -> Tensor:
    """Elements shifted along axes; what leaves at one end enters at the other.  The flattened x without an axis.

    [1, 2, 3, 4] shifted by 1 is [4, 1, 2, 3].
    """
    v = as_value(x)
    if axis is None:
        return Tensor(F.reshape(_rolled(flat(v), sum(_shifts(shift)), 0), shape=v.shape))
    shifts, axes = _shifts(shift), [normalise_axis(a, v.ndim) for a in sequence(axis)]
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ShapeError(f"{len(shifts)} shifts {shift} for {len(axes)} axes {axis}")
    if len(shifts) == 1:
        shifts *= len(axes)
    for by, a in zip(shifts, axes if len(axes) == len(shifts) else axes * len(shifts), strict=True):
        v = _rolled(v, by, a)
    return Tensor(v)


def _shifts(shift: Any) -> list[int]:
    """The number of places to shift by, along one axis or several."""
    given = np.atleast_1d(shift.numpy()) if isinstance(shift, Tensor) else sequence(shift)
    return [whole(by, "a shift") for by in given]


def _rolled(v: Value, by: int, axis: int) -> Value:
    length = v.shape[axis]
    by = by % length if isinstance(length, int) and length else by
    if by == 0 or length == 0:
        return v
    at = length - by if by > 0 else -by
    return F.concat(cut(v, axis, at, length), cut(v, axis, 0, at), axis=axis)
