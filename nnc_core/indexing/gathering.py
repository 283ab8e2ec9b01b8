"""Keys with arrays in them: integers that are broadcast together, masks, and both mixed with basic keys.

Such a key is taken apart: the axes of each mask are merged into one, which the places of its true elements index;
basic keys are applied; then the axes that arrays index are merged into one as well, and one array of positions
gathers from it or scatters to it.  A write goes back the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.dtype import is_integer
from nnc_core.base.errors import NotSupportedError, OperandError, OutOfRangeError, ShapeError
from nnc_core.functions.selection import places_of
from nnc_core.indexing import ranges as basic
from nnc_core.shape.elementwise import broadcast
from nnc_core.type import DimLike, Dims
from nnc_core.values.dispatch import F
from nnc_core.values.evaluation import learn_sizes
from nnc_core.values.from_host import host_value
from nnc_core.values.modes import current_trace
from nnc_core.values.operands import holds_tensors, listed_value, value_of
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

HostIndex = np.ndarray[Any, Any]
Index = Value | HostIndex
"""Integers: on the device, or known here and now, so that they can be checked and combined beforehand."""


def is_array(k: Any) -> bool:
    """True for what is no basic key: an array, a list, or a number that is not known yet."""
    if isinstance(k, Tensor):
        known = k._value.array is not None and current_trace.get() is None
        return k.ndim > 0 or not is_integer(k.dtype) or not known
    return isinstance(k, list) or (isinstance(k, np.ndarray) and (k.ndim > 0 or not is_integer(k.dtype)))


def as_array(k: Any) -> Any:
    """Lists as host arrays, those with tensors in them as tensors; an empty one holds integers."""
    if not isinstance(k, list):
        return k
    if holds_tensors(k):
        return Tensor(listed_value(k, None))
    host = np.asarray(k)
    return host.astype(np.int64) if host.size == 0 else host


def is_mask(k: Any) -> bool:
    return isinstance(k, (Tensor, np.ndarray)) and k.dtype.kind == "b"


def device_value(k: Any, like: Value) -> Value:
    return value_of(k) if isinstance(k, Tensor) else host_value(np.asarray(k), stack=like.stack)


class Gather(NamedTuple):
    """A key with arrays, taken apart."""

    merged: Dims
    """The shape of x with the axes of each mask merged."""
    basic: basic.Ranges
    axes: tuple[int, ...]
    """Of what the basic keys give: those that the arrays index."""
    first: bool
    """The arrays are not beside each other: the dimensions that they give come first, as in NumPy."""
    indices: tuple[Index, ...]


def taken_apart(x: Value, keys: Sequence[Any]) -> Gather:
    """`keys` mention every axis; lists are arrays already."""
    merged, flat = _merge_masks(x, [k for k in keys if k is not Ellipsis])
    x = x if merged == x.shape else F.reshape(x, shape=merged)
    lengths = iter(merged)
    lengths_of = [None if k is None else next(lengths) for k in flat]
    axis_of = list(np.cumsum([k is not None for k in flat]) - 1)
    at = [i for i, k in enumerate(flat) if not (k is None or isinstance(k, slice))]
    indices = tuple([_index(flat[i], lengths_of[i], int(axis_of[i])) for i in at])
    cut = basic.ranges(x, [basic.FULL if i in at else k for i, k in enumerate(flat)])
    spots = [i for i, k in enumerate(keys) if not (k is None or k is Ellipsis or isinstance(k, slice))]
    together = spots == list(range(spots[0], spots[0] + len(spots)))
    return Gather(merged, cut, tuple(at), not together, indices)


def _merge_masks(x: Value, keys: Sequence[Any]) -> tuple[Dims, list[Any]]:
    """The shape of x with the axes of each mask merged into one, and the keys with places instead of masks."""
    merged: list[DimLike] = []
    flat: list[Any] = []
    axis = 0
    for k in keys:
        flat.append(k)
        if is_mask(k):
            mask = device_value(k, x)
            part = x.shape[axis : axis + mask.ndim]
            if mask.shape != part:
                raise ShapeError(f"a mask {mask.spec} does not fit {x.spec} from axis {axis} on")
            count: DimLike = 1
            for d in part:
                count = d * count
            merged.append(count)
            flat[-1] = np.flatnonzero(k) if isinstance(k, np.ndarray) else places_of(mask)
            axis += mask.ndim
        elif k is not None:
            merged.append(x.shape[axis])
            axis += 1
    return tuple(merged), flat


def _index(k: Any, length: Any, axis: int) -> Index:
    """Integers; those that are known here are checked and not negative."""
    if isinstance(k, Value):
        return k
    if isinstance(k, Tensor):
        k = value_of(k)
    elif not isinstance(k, np.ndarray):
        return np.asarray(basic.position(k, length, axis)) if isinstance(length, int) else _unchecked(k, length)
    if not is_integer(k.dtype):
        raise OperandError(f"an index array is {k.dtype}, not of integers or booleans", hint="cast it with astype")
    return _checked(k, length, axis) if isinstance(k, np.ndarray) else k


def _unchecked(k: Any, length: Any) -> Index:
    raise NotSupportedError(f"index {k} of an axis of unknown length {length} beside index arrays",
                            hint="index in two steps: x[i][rows]")


def _checked(k: HostIndex, length: Any, axis: int) -> HostIndex:
    wide = k.astype(np.int64)
    if isinstance(length, int):
        wrong = wide[(wide < -length) | (wide >= length)]
        if wrong.size:
            raise OutOfRangeError(f"index {wrong.flat[0]} is out of range for axis {axis} of length {length}")
        wide = np.where(wide < 0, wide + length, wide)
    return wide


# ---- there and back
def read(x: Value, g: Gather) -> Value:
    y, axis, index = _positions(_cut(x, g), g)
    return F.take(y, index, axis=axis)


def write(x: Value, g: Gather, value: Value, mode: str) -> Value:
    """x with what `read` would give changed by the value, in one of the modes of a scatter."""
    whole = x if x.shape == g.merged else F.reshape(x, shape=g.merged)
    piece = _cut(x, g)
    y, axis, index = _positions(piece, g)

    def updates_now() -> Value:
        return spread(value, (*y.shape[:axis], *index.shape, *y.shape[axis + 1 :]))

    try:
        updates = updates_now()
    except ShapeError:
        if not learn_sizes((y, index, value), "setitem"):
            raise
        updates = updates_now()
    done = F.scatter(y, index, updates, axis=axis, mode=mode)
    done = _back(done, piece, g)
    if not _is_whole(g):
        done = basic.write(whole, g.basic, done)
    return done if done.shape == x.shape else F.reshape(done, shape=x.shape)


def spread(value: Value, shape: Dims) -> Value:
    """A value for a place of that shape, as NumPy assigns: leading axes of length one may be too many."""
    extra = value.ndim - len(shape)
    if extra > 0 and all(d == 1 for d in value.shape[:extra]):
        value = F.reshape(value, shape=value.shape[extra:])
    if value.shape == shape:
        return value
    try:
        return F.broadcast_to(value, shape=shape)
    except ShapeError:
        raise ShapeError(f"{value.spec} does not fit the {'x'.join(map(str, shape)) or 'one'} chosen elements",
                         hint="give one number, or as many values as there are elements") from None


def _is_whole(g: Gather) -> bool:
    r = g.basic
    return r.shape == g.merged and r.start == (0,) * len(g.merged) and not r.flipped


def _cut(x: Value, g: Gather) -> Value:
    x = x if x.shape == g.merged else F.reshape(x, shape=g.merged)
    return x if _is_whole(g) else basic.read(x, g.basic)


def _order(g: Gather, ndim: int) -> tuple[int, ...]:
    return (*g.axes, *(a for a in range(ndim) if a not in g.axes))


def _positions(y: Value, g: Gather) -> tuple[Value, int, Value]:
    """y with the indexed axes merged into one, that axis, and the positions along it."""
    if len(g.axes) == 1:
        return y, g.axes[0], _on_device(g.indices[0], y)
    lengths = tuple([y.shape[a] for a in g.axes])
    index = _on_device(_linear(g.indices, lengths, y), y)
    if g.first:
        y = F.permute(y, axes=_order(g, y.ndim))
    axis = 0 if g.first else g.axes[0]
    rest = y.shape[axis + len(g.axes) :]
    return F.reshape(y, shape=(*y.shape[:axis], prod(lengths), *rest)), axis, index


def _back(y: Value, piece: Value, g: Gather) -> Value:
    """Undo what `_positions` did to a piece."""
    if len(g.axes) == 1:
        return y
    if not g.first:
        return F.reshape(y, shape=piece.shape)
    order = _order(g, piece.ndim)
    y = F.reshape(y, shape=tuple([piece.shape[a] for a in order]))
    return F.permute(y, axes=tuple([order.index(a) for a in range(piece.ndim)]))


def _on_device(index: Index, like: Value) -> Value:
    return index if isinstance(index, Value) else host_value(index, stack=like.stack)


def _linear(indices: Sequence[Index], lengths: Dims, like: Value) -> Index:
    """Positions in C order; where an index is out of range, a position that is out of range too."""
    numbers = [n for n in lengths if isinstance(n, int)]
    if len(numbers) < len(lengths):
        raise NotSupportedError(f"several index arrays for axes of unknown lengths {lengths}",
                                hint="index in two steps: x[rows][:, columns]")
    strides = [prod(numbers[k + 1 :]) for k in range(len(numbers))]
    known = [i for i in indices if isinstance(i, np.ndarray)]
    if len(known) == len(indices):
        shape: Any = broadcast(*[i.shape for i in known])
        total = sum(i * s for i, s in zip(known, strides, strict=True))
        return np.broadcast_to(np.asarray(total, np.int64), shape)
    offsets = [_on_device(i * s, like) if isinstance(i, np.ndarray) else
               F.index_offset(i, length=n, stride=s, size=prod(numbers))
               for i, n, s in zip(indices, numbers, strides, strict=True)]
    return reduce(F.add, offsets)
