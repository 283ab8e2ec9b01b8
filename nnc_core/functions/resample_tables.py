"""The elements that a resized axis is made of, and their weights: tables for operator `resample`, made on the host."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, inf
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.errors import AttributeValueError, ShapeError

Array = np.ndarray[Any, Any]
METHODS = ("nearest", "nearest_floor", "linear", "cubic", "area")
BY_RANK = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}
"""Methods under names that say how many dimensions there are."""
COORDINATES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric",
               "tf_crop_and_resize")
ROUNDINGS = ("round_prefer_ceil", "round_prefer_floor", "floor", "ceil")


class Table(NamedTuple):
    """One row for each element of the result: int32 indices (-1: none), float64 weights; and which rows may read an
    element (see `operator.resampling`)."""

    indices: Array
    weights: Array
    reach: tuple[int, int, int, int]


class Rule(NamedTuple):
    """A way to resize an axis; names are ONNX's.

    With a `scale` the result's elements lie 1 / scale apart, otherwise length / size.  `exclude_outside` leaves out
    what lies beyond the border, whose elements are repeated otherwise.  The `region` of "tf_crop_and_resize" runs from
    0, the centre of the first element, to 1, that of the last.
    """

    method: str = "linear"
    coordinates: str = "half_pixel"
    antialias: bool = False
    coefficient: float = -0.75
    rounding: str = "round_prefer_ceil"
    exclude_outside: bool = False
    scale: float | None = None
    region: tuple[float, float] = (0.0, 1.0)

    @property
    def repeats(self) -> bool:
        """True if a whole number of times as many elements is each element so many times."""
        return self.method == "nearest" and (self.coordinates, self.rounding) in (
            ("half_pixel", "round_prefer_ceil"), ("half_pixel", "round_prefer_floor"), ("asymmetric", "floor"))

    @property
    def keeps(self) -> bool:
        """True if as many elements are the elements themselves."""
        return self.scale in (None, 1.0) and self.coordinates != "tf_crop_and_resize"


def checked(rule: Rule) -> Rule:
    """The rule with the shorthand "nearest_floor" written out; AttributeValueError where parts do not go together."""
    rule = rule._replace(method=BY_RANK.get(rule.method, rule.method))
    for name, value, known in (("method", rule.method, METHODS), ("coordinates", rule.coordinates, COORDINATES),
                               ("rounding", rule.rounding, ROUNDINGS)):
        if value not in known:
            raise AttributeValueError(f"{name} {value!r} is none of {', '.join(map(repr, known))}")
    aligned = rule.coordinates == "align_corners"
    if rule.antialias and (rule.method not in ("linear", "cubic") or aligned):
        raise AttributeValueError(f"antialias goes with method 'linear' or 'cubic' and without align_corners, not with "
                                  f"{rule.method!r}{' and align_corners' * aligned}")
    if aligned and rule.method in ("area", "nearest_floor"):
        raise AttributeValueError(f"align_corners does not go with method {rule.method!r}")
    if rule.method == "area" and (rule.coordinates != "half_pixel" or rule.scale is not None):
        raise AttributeValueError("method 'area' goes with coordinates 'half_pixel' and with a size, not with a scale")
    if rule.scale is not None and not 0 < rule.scale < inf:
        raise AttributeValueError(f"scale {rule.scale!r} should be greater than 0, and finite")
    if rule.method == "nearest_floor":
        return rule._replace(method="nearest", coordinates="asymmetric", rounding="floor")
    return rule


@lru_cache(maxsize=256)
def table_for(length: int, size: int, rule: Rule) -> Table:
    """`length` elements resized to `size`; rows whose places `outside` names are empty."""
    if length < 1 or size < 1:
        raise ShapeError(f"cannot resize {length} elements to {size}", hint="sizes should be at least 1")
    if rule.method == "area":
        indices, weights = _averaged(length, size)
    elif rule.method == "nearest":
        indices = nearest(length, size, rule)[:, None]
        weights = np.ones(indices.shape)
    else:
        numerators, denominator = _positions(length, size, rule)
        indices, weights = _filtered(numerators / denominator, length, length / size, rule)
    beyond = outside(length, size, rule)
    if beyond is not None:
        weights = np.where(beyond[:, None], 0, weights)
    return _finished(indices, weights, length)


def nearest(length: int, size: int, rule: Rule) -> Array:
    """The element that each of `size` takes, exactly where no scale is given."""
    n, d = _positions(length, size, rule)
    shift, sign = {"floor": (0, 1), "ceil": (0, -1), "round_prefer_ceil": (d, 1), "round_prefer_floor": (d, -1)}[
        rule.rounding]
    found: Array = sign * ((sign * 2 * n + shift) // (2 * d))
    return np.clip(found, 0, length - 1).astype(np.int64)


def outside(length: int, size: int, rule: Rule) -> Array | None:
    """Marks (size) of which places of "tf_crop_and_resize" lie beyond the centres of the first and the last element."""
    if rule.coordinates != "tf_crop_and_resize":
        return None
    places, _ = _positions(length, size, rule)
    return np.asarray((places < 0) | (places > length - 1))


def _positions(length: int, size: int, rule: Rule) -> tuple[Array, Any]:
    """Places of the result's elements among those of x: numerators, and the denominator that they share; integers
    unless a scale or a region is given."""
    i = np.arange(size, dtype=np.int64)
    if rule.coordinates == "tf_crop_and_resize":
        return _in_region(length, size, rule), 1.0
    if rule.coordinates == "pytorch_half_pixel" and _wanted(length, size, rule) == 1:
        return np.full(size, -1), 2
    if rule.scale is not None:
        return _by_scale(length, size, rule, rule.scale), 1.0
    if rule.coordinates == "asymmetric":
        return i * length, size
    if rule.coordinates == "align_corners":
        return i * (length - 1), max(size - 1, 1)
    return (2 * i + 1) * length - size, 2 * size


def _wanted(length: int, size: int, rule: Rule) -> float:
    """The number of the result's elements before it is rounded."""
    return size if rule.scale is None else rule.scale * length


def _by_scale(length: int, size: int, rule: Rule, scale: float) -> Array:
    i, wanted = np.arange(size, dtype=np.float64), scale * length
    if rule.coordinates == "align_corners":
        return i * ((length - 1) / (wanted - 1)) if wanted != 1 else 0 * i
    if rule.coordinates == "asymmetric":
        return i / scale
    shift = length / 2 * (1 - size / wanted) if rule.coordinates == "half_pixel_symmetric" else 0
    return (i + 0.5) / scale - 0.5 + shift


def _in_region(length: int, size: int, rule: Rule) -> Array:
    """From a region's begin to its end, or in its middle."""
    begin, end = rule.region
    last, wanted = length - 1, _wanted(length, size, rule)
    i = np.arange(size, dtype=np.float64)
    steps = i * (end - begin) * last / (wanted - 1) if wanted != 1 else 0 * i + (end - begin) * last / 2
    return steps + begin * last


def _filtered(positions: Array, length: int, step: float, rule: Rule) -> tuple[Array, Array]:
    """A filter around each position; with antialias it is widened where the result is smaller, so that every element
    counts, and weights sum to 1."""
    step = step if rule.scale is None else 1 / rule.scale
    wide = max(step, 1.0) if rule.antialias else 1.0
    support = (1.0 if rule.method == "linear" else 2.0) * wide
    begin = np.floor(positions - support).astype(np.int64) + 1
    end = begin + ceil(2 * support)
    if rule.exclude_outside:
        begin, end = np.clip(begin, 0, length), np.clip(end, 0, length)
    places = begin[:, None] + np.arange(max(int((end - begin).max()), 1))
    distance = np.abs(places - positions[:, None]) / wide
    weights = np.maximum(1 - distance, 0) if rule.method == "linear" else keys(distance, rule.coefficient)
    weights = np.where(places < end[:, None], weights, 0)
    if rule.antialias or rule.exclude_outside:
        total = weights.sum(1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
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
