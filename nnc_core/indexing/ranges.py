"""Basic keys: integers, slices, ..., None.  In canonical form, read and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.dtype import int64
from nnc_core.base.errors import (
    AttributeValueError,
    ConcretizationError,
    Error,
    NotSupportedError,
    OperandError,
    OutOfRangeError,
)
from nnc_core.functions.selection import places_of
from nnc_core.type import DimLike, Dims, is_static
from nnc_core.values.data_dependent import has_data_dependent
from nnc_core.values.dispatch import F
from nnc_core.values.evaluation import shape_of
from nnc_core.values.modes import use_device
from nnc_core.values.value import Value

FULL = slice(None)


class Ranges(NamedTuple):
    """One range for each axis of x, then what happens to the axes."""

    start: Dims
    stop: Dims
    step: tuple[int, ...]
    flipped: tuple[int, ...]
    shape: Dims  # of the result


def is_full(k: Any) -> bool:
    """True if a key takes its axis as it is."""
    return isinstance(k, slice) and k in (FULL, slice(None, None, 1))


def ranges(x: Value, keys: Sequence[Any], shape_of_x: Dims | None = None) -> Ranges:
    """The ranges of a key in which every axis is mentioned; the shape of x may be given where it is numbers."""
    start: list[DimLike] = []
    stop: list[DimLike] = []
    step: list[int] = []
    flipped: list[int] = []
    shape: list[DimLike] = []
    lengths = iter(shape_of_x or _lengths(x, keys))
    for k in keys:
        if k is None:
            shape.append(1)
            continue
        axis, length = len(start), next(lengths)
        if k is FULL:
            low, high, by = 0, length, 1
            shape.append(length)
        elif isinstance(k, slice):
            low, high, by = _slice(k, length)
            if by < 0:
                flipped.append(axis)
                low, high, by = _reversed(low, high, by)
            shape.append((high - low + by - 1) // by if by > 1 else high - low)
        else:
            low = position(k, length, axis)
            high, by = low + 1, 1
        start.append(low)
        stop.append(high)
        step.append(by)
    return Ranges(tuple(start), tuple(stop), tuple(step), tuple(flipped), tuple(shape))


def read(x: Value, r: Ranges) -> Value:
    cut = F.slice(x, start=r.start, stop=r.stop, step=r.step)
    if r.flipped:
        cut = F.flip(cut, axes=r.flipped)
    return cut if cut.shape == r.shape else F.reshape(cut, shape=r.shape)


def write(x: Value, r: Ranges, piece: Value) -> Value:
    """x with what `read` would give replaced by a piece of that shape."""
    whole = tuple((b - a + k - 1) // k if k > 1 else b - a for a, b, k in zip(r.start, r.stop, r.step, strict=True))
    piece = piece if piece.shape == whole else F.reshape(piece, shape=whole)
    if r.flipped:
        piece = F.flip(piece, axes=r.flipped)
    return F.update_slice(x, piece, start=r.start, step=r.step)


def _lengths(x: Value, keys: Sequence[Any]) -> Dims:
    """A length that depends on data is asked for only where a key needs it."""
    if is_static(x.shape):
        return x.shape
    mentioned = [k for k in keys if k is not None]
    needed = [not is_full(k) for k, d in zip(mentioned, x.shape, strict=True) if not isinstance(d, int)]
    return shape_of(x) if any(needed) else x.shape


# ---- lengths that nobody knows yet
def clipped_at(length: DimLike, k: Any) -> bool:
    """Tell whether a slice has to be clipped to a length that depends on data and is not known."""
    if isinstance(length, int) or not isinstance(k, slice) or is_full(k) or k.step not in (None, 1):
        return False
    bounds = k.start, k.stop
    return has_data_dependent((length,)) and all(b is None or isinstance(b, (int, np.integer)) for b in bounds)


def places_within(x: Value, k: slice, axis: int) -> Value:
    """int64: the positions along an axis that a slice means, however long the axis turns out to be."""
    with use_device(x.stack):
        place = F.arange(size=x.shape[axis], dtype=int64)
    begins = None if k.start is None else _at_least(place, int(k.start))
    ends = None if k.stop is None else F.logical_not(_at_least(place, int(k.stop)))
    given = [mask for mask in (begins, ends) if mask is not None]
    return places_of(given[0] if len(given) == 1 else F.logical_and(*given))


def _at_least(place: Value, bound: int) -> Value:
    """True where a position is not before a bound, which counts from the end if it is negative."""
    if bound >= 0:
        return F.greater_equal(place, bound)
    return F.less(F.flip(place, axes=(0,)), -bound)


def _slice(k: slice, length: DimLike) -> tuple[Any, Any, int]:
    """Start, stop and step within the length; a named dimension takes only what needs no comparison."""
    if isinstance(length, int):
        low, high, by = _indices(k, length)
        return (low, max(low, high), by) if by > 0 else (low, min(low, high), by)
    if k.step not in (None, 1) or any(v is not None and (not isinstance(v, int)) for v in (k.start, k.stop)):
        raise NotSupportedError(f"slice {k} of an axis of unknown length {length}", hint="give the axis a number")
    if k.start is not None and k.stop is not None and k.stop <= k.start and (k.start < 0 or k.stop >= 0):
        return 0, 0, 1  # nothing, however long the axis is
    return _bound(k.start, 0, length), _bound(k.stop, length, length), 1


def _indices(k: slice, length: int) -> tuple[int, int, int]:
    """Start, stop and step as Python has them, a step beyond the length as one that just leaves the axis."""
    try:
        low, high, by = k.indices(length)
    except ConcretizationError as error:
        error.hint = "x[i + nnc.arange(n)] takes n elements from a place that is computed"
        raise
    except Error:  # of a tensor that has no value yet
        raise
    except TypeError:
        raise OperandError(f"the slice {_text(k)} is not made of integers", hint="take them with int(...)") from None
    except ValueError:
        raise AttributeValueError(f"the slice {_text(k)} has step 0", hint="::-1 goes backwards") from None
    return low, high, min(max(by, -max(length, 1)), max(length, 1))


def _text(k: slice) -> str:
    return ":".join(["" if part is None else f"{part!r}" for part in (k.start, k.stop, k.step)])


def _bound(given: int | None, default: DimLike, length: DimLike) -> DimLike:
    return default if given is None else given if given >= 0 else length + given


def _reversed(low: int, high: int, by: int) -> tuple[int, int, int]:
    """The range of a negative step, from its other end."""
    count = len(range(low, high, by))
    last = low + (count - 1) * by
    return (last, low + 1, -by) if count else (0, 0, -by)


def position(k: Any, length: DimLike, axis: int) -> Any:
    """An integer as an index that is not negative."""
    if isinstance(k, (bool, np.bool_)) or not hasattr(k, "__index__"):
        raise OperandError(f"{type(k).__name__} is no index",
                           hint="integers, slices, ..., None, or arrays of integers or booleans")
    index = k.__index__()
    if isinstance(length, int) and not -length <= index < length:
        raise OutOfRangeError(f"index {index} is out of range for axis {axis} of length {length}")
    return index if index >= 0 else index + length
