"""Reading and replacing items, with NumPy's keys: integers, slices, ..., None, and one array of integers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.dtype import is_integer
from nnc_core.base.errors import Error, NotSupportedError, OperandError, OutOfRangeError, ShapeError
from nnc_core.dynamic.dispatch import F, host_value
from nnc_core.dynamic.tensor import Tensor, operand, value_of
from nnc_core.dynamic.value import Value
from nnc_core.symbol import show_line, user_line
from nnc_core.type import DimLike


class _Ranges(NamedTuple):
    """A basic key in canonical form: one range for each axis of x, then what happens to the axes."""

    start: tuple[DimLike, ...]
    stop: tuple[DimLike, ...]
    step: tuple[int, ...]
    flipped: tuple[int, ...]
    shape: tuple[DimLike, ...]  # of the result


def get_item(x: Value, key: Any) -> Value:
    """x[key]"""
    try:
        return _read(x, key)
    except Error as error:
        raise error.locate(operator="getitem", line=show_line(user_line()))  # noqa: B904 - the same, with its place


def set_item(x: Value, key: Any, value: Any, mode: str = "set") -> Value:
    """x with x[key] replaced by value (a number, a tensor, a host array), or added to: a new value."""
    try:
        return _written(x, key, operand(value, x.stack), mode)
    except Error as error:
        raise error.locate(operator="setitem", line=show_line(user_line()))  # noqa: B904 - the same, with its place


def _read(x: Value, key: Any) -> Value:
    keys = _as_tuple(key)
    if any(_is_array(k) for k in keys):
        return _take(x, keys)
    ranges = _ranges(x, keys)
    cut = F.slice(x, start=ranges.start, stop=ranges.stop, step=ranges.step)
    if ranges.flipped:
        cut = F.flip(cut, axes=ranges.flipped)
    return cut if cut.shape == ranges.shape else F.reshape(cut, shape=ranges.shape)


def _written(x: Value, key: Any, value: Any, mode: str) -> Value:
    if _is_mask(key):
        return _masked(x, _as_value(key, x), _numeric(value, x), mode)
    keys = _as_tuple(key)
    if any(_is_array(k) for k in keys):
        return _scatter(x, keys, value, mode)
    ranges = _ranges(x, keys)
    whole = _cut_shape(ranges)
    piece = F.broadcast_to(_numeric(value, x), shape=ranges.shape)
    piece = piece if piece.shape == whole else F.reshape(piece, shape=whole)
    if ranges.flipped:
        piece = F.flip(piece, axes=ranges.flipped)
    if mode == "add":
        piece = F.add(piece, F.slice(x, start=ranges.start, stop=ranges.stop, step=ranges.step))
    return F.update_slice(x, piece, start=ranges.start, step=ranges.step)


def _masked(x: Value, mask: Value, value: Value, mode: str) -> Value:
    """The mask is for the first axes of x."""
    if mask.shape != x.shape[: mask.ndim]:
        raise ShapeError(f"a mask {mask.spec} does not fit {x.spec}")
    if value.shape not in ((), x.shape):
        raise NotSupportedError(f"{value.spec} for the elements of {x.spec} that a mask chooses",
                                hint="give one number, or an array of the whole shape")
    whole = F.reshape(mask, shape=(*mask.shape, *(1,) * (x.ndim - mask.ndim)))
    return F.where(whole, value if mode == "set" else F.add(x, value), x)


def _numeric(value: Any, like: Value) -> Value:
    """A value of x's dtype, as NumPy assigns."""
    if isinstance(value, Value):
        return value if value.dtype == like.dtype else F.cast(value, dtype=like.dtype)
    return F._number(value, like.dtype, like)


def _as_tuple(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _is_array(k: Any) -> bool:
    return isinstance(k, (list, np.ndarray)) or (isinstance(k, Tensor) and (k.ndim > 0 or not is_integer(k.dtype)))


def _is_mask(key: Any) -> bool:
    return isinstance(key, (Tensor, np.ndarray)) and key.dtype.kind == "b"


def _as_value(k: Any, like: Value) -> Value:
    return value_of(k) if isinstance(k, Tensor) else host_value(np.asarray(k), stack=like.stack)


def _expanded(keys: tuple[Any, ...], ndim: int) -> list[Any]:
    """The ellipsis written out, and full slices for the axes that are not mentioned."""
    used = sum(k is not None and k is not Ellipsis for k in keys)
    if used > ndim:
        raise OutOfRangeError(f"{used} indices for {ndim} dimensions")
    places = [i for i, k in enumerate(keys) if k is Ellipsis]
    if len(places) > 1:
        raise OperandError("an index has at most one ...")
    at = places[0] if places else len(keys)
    return [*keys[:at], *[slice(None)] * (ndim - used), *keys[at + 1 :]]


def _ranges(x: Value, keys: tuple[Any, ...]) -> _Ranges:
    start: list[DimLike] = []
    stop: list[DimLike] = []
    step: list[int] = []
    flipped: list[int] = []
    shape: list[DimLike] = []
    for k in _expanded(keys, x.ndim):
        if k is None:
            shape.append(1)
            continue
        axis = len(start)
        length = x.shape[axis]
        if isinstance(k, slice):
            low, high, by = _slice(k, length)
            if by < 0:
                flipped.append(axis)
                low, high, by = _reversed(low, high, by)
            shape.append((high - low + by - 1) // by if by > 1 else high - low)
        else:
            low = _position(k, length, axis)
            high, by = low + 1, 1
        start.append(low)
        stop.append(high)
        step.append(by)
    return _Ranges(tuple(start), tuple(stop), tuple(step), tuple(flipped), tuple(shape))


def _cut_shape(r: _Ranges) -> tuple[DimLike, ...]:
    return tuple((b - a + k - 1) // k if k > 1 else b - a for a, b, k in zip(r.start, r.stop, r.step, strict=True))


def _slice(k: slice, length: DimLike) -> tuple[Any, Any, int]:
    """Start, stop and step within the length; a named dimension takes only what needs no comparison."""
    if isinstance(length, int):
        low, high, by = k.indices(length)
        return (low, max(low, high), by) if by > 0 else (low, min(low, high), by)
    if k.step not in (None, 1) or any(v is not None and (not isinstance(v, int)) for v in (k.start, k.stop)):
        raise NotSupportedError(f"slice {k} of an axis of unknown length {length}", hint="give the axis a number")
    return _bound(k.start, 0, length), _bound(k.stop, length, length), 1


def _bound(given: int | None, default: DimLike, length: DimLike) -> DimLike:
    return default if given is None else given if given >= 0 else length + given


def _reversed(low: int, high: int, by: int) -> tuple[int, int, int]:
    """The range of a negative step, from its other end."""
    count = len(range(low, high, by))
    last = low + (count - 1) * by
    return (last, low + 1, -by) if count else (0, 0, -by)


def _position(k: Any, length: DimLike, axis: int) -> Any:
    if isinstance(k, (bool, np.bool_)) or not hasattr(k, "__index__"):
        raise OperandError(f"{type(k).__name__} is no index",
                           hint="integers, slices, ..., None, or an array of integers")
    index = k.__index__()
    if isinstance(length, int) and not -length <= index < length:
        raise OutOfRangeError(f"index {index} is out of range for axis {axis} of length {length}")
    return index if index >= 0 else index + length


def _array_axis(x: Value, keys: tuple[Any, ...]) -> tuple[int, Value, tuple[Any, ...]]:
    """The axis that the one array indexes, the array, and the key without it."""
    full = _expanded(keys, x.ndim)
    arrays = [i for i, k in enumerate(full) if _is_array(k)]
    index = _as_value(full[arrays[0]], x)
    if len(arrays) > 1 or not is_integer(index.dtype):
        raise NotSupportedError(f"an index of {len(arrays)} arrays, the first {index.spec}",
                                hint="index with one array of integers; nnc.where chooses by a mask")
    rest = (*full[: arrays[0]], slice(None), *full[arrays[0] + 1 :])
    if any(not isinstance(k, slice) or k != slice(None) for k in rest):
        raise NotSupportedError("an array index mixed with others", hint="index in two steps: x[1:][:, i]")
    return arrays[0], index, rest


def _take(x: Value, keys: tuple[Any, ...]) -> Value:
    axis, index, _ = _array_axis(x, keys)
    return F.take(x, index, axis=axis)


def _scatter(x: Value, keys: tuple[Any, ...], value: Any, mode: str) -> Value:
    axis, index, _ = _array_axis(x, keys)
    shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    return F.scatter(x, index, F.broadcast_to(_numeric(value, x), shape=shape), axis=axis, mode=mode)


class At:
    """`x.at`: functional updates of items."""

    __slots__ = ("_x",)

    def __init__(self, x: Tensor) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> AtKey:
        return AtKey(self._x, key)


class AtKey:
    """`x.at[key]`"""

    __slots__ = ("_key", "_x")

    def __init__(self, x: Tensor, key: Any) -> None:
        self._x, self._key = x, key

    def set(self, value: Any) -> Tensor:
        """x with x[key] = value."""
        return Tensor(set_item(value_of(self._x), self._key, value))

    def add(self, value: Any) -> Tensor:
        """x with value added at x[key]; equal indices all count."""
        return Tensor(set_item(value_of(self._x), self._key, value, "add"))
