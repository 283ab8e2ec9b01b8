"""Conversions that NumPy makes otherwise: floats to integers, which saturate, and to halves, in pieces that stay in the
cache."""

from __future__ import annotations

from functools import lru_cache
from math import isnan
from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType
from nnc_core.codegen.numpy_scalars import cast
from nnc_cpu.memory import Array

PIECE = 1 << 16
FEW = 16
"""Elements that Python looks at more quickly than NumPy does."""
_FLOATS = frozenset((dt.float16, dt.float32, dt.float64))
_LEAST: Any = np.minimum.reduce
_LARGEST: Any = np.maximum.reduce


def convert(source: Array, target: Array) -> None:
    """Write the elements of an array, as a cast gives them, into one of its shape."""
    if not (source.size and source.flags.c_contiguous and target.flags.c_contiguous):
        np.copyto(target, cast(source, target.dtype))
        return
    piece = _to_integers if dt.is_float(source.dtype) and dt.is_integer(target.dtype) else _to_any
    x, y = source.reshape(-1), target.reshape(-1)
    room = np.empty(min(PIECE, len(x)), dt.accumulator(source.dtype))
    for begin in range(0, len(x), PIECE):
        part = x[begin : begin + PIECE]
        piece(part, y[begin : begin + PIECE], room[: len(part)])


def converted(source: Array, dtype: DType) -> Array:
    if dt.is_integer(dtype) and source.dtype in _FLOATS:
        if source.size <= FEW:
            return _few_to_integers(source, dtype)
    elif source.size <= PIECE:
        return np.asarray(cast(source, dtype), order="C")
    target = np.empty(source.shape, dtype)
    convert(source, target)
    return target


def _few_to_integers(few: Array, dtype: DType) -> Array:
    """Saturated in Python's numbers, where not all have a place in the integers; NaN, which nothing is below or above,
    makes their sum NaN."""
    numbers = few.ravel().tolist()
    lowest, highest = _ends(dtype)
    if not numbers or (min(numbers) > lowest and max(numbers) < highest and not isnan(sum(numbers))):
        return few.astype(dtype, "C")
    whole = [0 if x != x else lowest if x <= lowest else highest if x >= highest else int(x) for x in numbers]
    return np.array(whole, dtype).reshape(few.shape)


@lru_cache(maxsize=64)
def _ends(dtype: DType) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _to_any(x: Array, y: Array, room: Array) -> None:
    np.copyto(y, cast(x, y.dtype))


def _to_integers(x: Array, y: Array, room: Array) -> None:
    """Let NumPy convert what has a place in the integers; its conversion is undefined elsewhere."""
    if x.dtype != room.dtype:
        np.copyto(room, x)
        x = room
    lowest, highest = _within(x.dtype, y.dtype)
    if y.dtype.itemsize < x.dtype.itemsize:  # x holds all of these integers
        np.clip(x, lowest, highest, out=room)  # one pass, where two functions with a number each are slow
        if np.isnan(_LARGEST(room)):
            room[np.isnan(room)] = 0
        x = room
    elif not (_LEAST(x) >= lowest and _LARGEST(x) <= highest):  # NaN is nowhere
        x = cast(x, y.dtype)
    np.copyto(y, x, casting="unsafe")


@lru_cache(maxsize=64)
def _within(source: DType, target: DType) -> tuple[Any, Any]:
    """The least and the largest of the integers that a float holds."""
    limits = np.iinfo(target)
    highest = source.type(limits.max)
    if int(highest) > limits.max:
        highest = np.nextafter(highest, source.type(0))
    return source.type(limits.min), highest
