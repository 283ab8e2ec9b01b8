"""The elements that a resized axis is made of, and their weights: tables for operator `resample`, made on the host."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.errors import AttributeValueError, ShapeError

Array = np.ndarray[Any, Any]
METHODS = ("nearest", "nearest_floor", "linear", "cubic", "area")


class Table(NamedTuple):
    """One row for each element of the result: int32 indices (-1: none), float64 weights; and which rows may read an
    element (see `operator.resampling`)."""

    indices: Array
    weights: Array
    reach: tuple[int, int, int, int]


class Rule(NamedTuple):
    """A way to resize: centres of pixels correspond, or with `align_corners` those of the first and last pixels do."""

    method: str = "linear"
    align_corners: bool = False
    antialias: bool = False
    coefficient: float = -0.75


def checked(rule: Rule) -> Rule:
    """The rule itself; AttributeValueError where its parts do not go together."""
    if rule.method not in METHODS:
        raise AttributeValueError(f"method {rule.method!r} is none of {', '.join(map(repr, METHODS))}")
    if rule.antialias and (rule.method not in ("linear", "cubic") or rule.align_corners):
        raise AttributeValueError(f"antialias goes with method 'linear' or 'cubic' and without align_corners, not with "
                                  f"{rule.method!r}{' and align_corners' * rule.align_corners}")
    if rule.align_corners and rule.method in ("area", "nearest_floor"):
        raise AttributeValueError(f"align_corners does not go with method {rule.method!r}")
    return rule


@lru_cache(maxsize=256)
def table_for(length: int, size: int, rule: Rule) -> Table:
    """`length` elements resized to `size`."""
    if length < 1 or size < 1:
        raise ShapeError(f"cannot resize {length} elements to {size}", hint="sizes should be at least 1")
    if rule.antialias:
        indices, weights = _filtered(length, size, rule)
    elif rule.method == "area":
        indices, weights = _averaged(length, size)
    elif rule.method == "linear":
        indices, weights = _linear(_positions(length, size, rule.align_corners), length)
    elif rule.method == "cubic":
        indices, weights = _cubic(_positions(length, size, rule.align_corners), length, rule.coefficient)
    else:
        indices = nearest(length, size, rule)[:, None]
        weights = np.ones(indices.shape)
    return _finished(indices, weights, length)


def nearest(length: int, size: int, rule: Rule) -> Array:
    """The element that each of `size` takes, exactly; halves go up."""
    i = np.arange(size, dtype=np.int64)
    if rule.method == "nearest_floor":
        return i * length // size
    if not rule.align_corners:
        return (2 * i + 1) * length // (2 * size)
    steps = max(size - 1, 1)
    return (2 * i * (length - 1) + steps) // (2 * steps)


def _positions(length: int, size: int, align_corners: bool) -> Array:
    """Positions of the result's elements among those of x; with corners aligned a single one lies on the first."""
    i = np.arange(size, dtype=np.float64)
    if align_corners:
        return i * ((length - 1) / max(size - 1, 1))
    return (i + 0.5) * (length / size) - 0.5


def _linear(positions: Array, length: int) -> tuple[Array, Array]:
    inside = np.clip(positions, 0, length - 1)
    first = np.floor(inside).astype(np.int64)
    share = inside - first
    return np.stack([first, np.minimum(first + 1, length - 1)], 1), np.stack([1 - share, share], 1)


def _cubic(positions: Array, length: int, a: float) -> tuple[Array, Array]:
    """Keys' convolution; what lies outside repeats the border."""
    first = np.floor(positions).astype(np.int64)
    places = first[:, None] + np.arange(-1, 3)
    weights = keys(np.abs(positions[:, None] - places), a)
    return np.clip(places, 0, length - 1), weights


def keys(distance: Array, a: float) -> Array:
    """The piecewise cubic with coefficient a: -0.75 as in most image libraries, -0.5 is exact for quadratics."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((distance - 5) * distance + 8) * distance * a - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


def window_bounds(length: int, size: int) -> tuple[Array, Array]:
    """Begin and end of `size` windows that cover an axis as evenly as may be."""
    i = np.arange(size, dtype=np.int64)
    return i * length // size, -(-(i + 1) * length // size)


def _averaged(length: int, size: int) -> tuple[Array, Array]:
    begin, end = window_bounds(length, size)
    places = begin[:, None] + np.arange(int((end - begin).max()))
    inside = places < end[:, None]
    return np.where(inside, places, -1), np.where(inside, 1 / (end - begin)[:, None], 0)


def _filtered(length: int, size: int, rule: Rule) -> tuple[Array, Array]:
    """The filter widened where the result is smaller, so that every element counts; weights sum to 1 at the border."""
    scale = length / size
    wide = max(scale, 1.0)
    support = (1.0 if rule.method == "linear" else 2.0) * wide
    centre = (np.arange(size) + 0.5) * scale
    begin = np.maximum(np.floor(centre - support + 0.5), 0).astype(np.int64)
    end = np.minimum(np.floor(centre + support + 0.5), length).astype(np.int64)
    places = begin[:, None] + np.arange(int((end - begin).max()))
    distance = np.abs(places + 0.5 - centre[:, None]) / wide
    weights = np.maximum(1 - distance, 0) if rule.method == "linear" else keys(distance, rule.coefficient)
    weights = np.where(places < end[:, None], weights, 0)
    return np.where(places < end[:, None], places, -1), weights / weights.sum(1, keepdims=True)


def _finished(indices: Array, weights: Array, length: int) -> Table:
    """Equal indices of a row become one; what weighs nothing is not read, so that no infinity becomes NaN."""
    weights = weights.copy()
    for t in range(1, indices.shape[1] if indices.shape[1] <= 4 else 0):
        for s in range(t):
            same = indices[:, s] == indices[:, t]
            weights[:, s] += np.where(same, weights[:, t], 0)
            weights[:, t] = np.where(same, 0, weights[:, t])
    indices = np.where(weights == 0, -1, indices).astype(np.int32)
    for array in (indices, weights):
        array.setflags(write=False)
    return Table(indices, weights, reach_of(indices, length))


def reach_of(indices: Array, length: int) -> tuple[int, int, int, int]:
    """The rows that read each of `length` elements lie around a straight line: its slope, begin and width; the one of
    edges that correspond, of corners, or all rows, whichever is narrowest."""
    rows, named = np.nonzero(indices >= 0)[0], indices[indices >= 0].astype(np.int64)
    found = [(0, 1, 0, len(indices))]
    for slope, run in ((len(indices), length), (len(indices) - 1, max(length - 1, 1))):
        away = rows - named * slope // run
        low, high = int(away.min(initial=len(indices))), int(away.max(initial=-len(indices)))
        found.append((slope, run, low * run, max(high - low + 1, 0)))
    return min(found, key=lambda reach: reach[3])


def windows_of(sizes: Sequence[int], counts: Sequence[int]) -> Array:
    """int64[windows, elements]: where in the flattened axes the elements of evenly spread windows are, in C order;
    shorter windows repeat their first elements."""
    flat = np.zeros((1, 1), np.int64)
    for length, count in zip(sizes, counts, strict=True):
        begin, end = window_bounds(length, count)
        places = begin[:, None] + np.arange(int((end - begin).max()))
        places = np.where(places < end[:, None], places, begin[:, None])
        both = flat[:, None, :, None] * length + places[None, :, None, :]
        flat = both.reshape(both.shape[0] * both.shape[1], both.shape[2] * both.shape[3])
    return flat
