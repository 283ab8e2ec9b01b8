"""Resizing to or from lengths that have no number yet: what tables say otherwise is computed where the elements are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nnc_core.base import dtype as dt
from nnc_core.base.errors import SymbolicDimensionError
from nnc_core.functions.constants import beside
from nnc_core.functions.resample_tables import Rule
from nnc_core.type import DimLike
from nnc_core.values.dispatch import F
from nnc_core.values.value import Value

REACH = {"linear": 1, "cubic": 2}
"""How many elements to each side of a place a filter reads."""


def resampled_by_name(v: Value, axis: int, length: DimLike, size: DimLike, rule: Rule) -> Value:
    """An axis resized by a rule; SymbolicDimensionError for one that needs numbers."""
    if rule.antialias or rule.method == "area" or rule.coordinates == "tf_crop_and_resize" or (
            rule.scale is not None and rule.coordinates in ("align_corners", "half_pixel_symmetric")):
        raise SymbolicDimensionError(
            f"resizing {length} elements to {size} by {_words(rule)} needs their numbers",
            hint="give shapes in numbers, or another method: linear, cubic or nearest without antialias")
    with beside(v):
        return _resampled(v, axis, length, size, rule)


def _resampled(v: Value, axis: int, length: DimLike, size: DimLike, rule: Rule) -> Value:
    numerator, denominator = _positions(v, length, size, rule)
    if rule.method == "nearest":
        return F.take(v, _inside(_rounded(numerator, denominator, rule), length), axis=axis)
    wide = dt.accumulator(v.dtype)
    place = F.divide(_precise(v, numerator), _precise(v, denominator))
    total: Any = None
    for index, weight in _taps(place, length, rule):
        scale = F.reshape(F.cast(weight, dtype=wide), shape=(size, *(1,) * (v.ndim - axis - 1)))
        taken = F.cast(F.take(v, _inside(index, length), axis=axis), dtype=wide)
        term = F.where(F.equal(scale, 0), 0, F.multiply(taken, scale))  # what weighs nothing is not read
        total = term if total is None else F.add(total, term)
    return F.cast(total, dtype=v.dtype)


def _words(rule: Rule) -> str:
    return f"{rule.method!r}{' with antialias' * rule.antialias} at {rule.coordinates!r} coordinates"


def _number(size: DimLike) -> Any:
    """A length as an int64 number."""
    if isinstance(size, int):
        return F.full(shape=(), value=size, dtype=dt.int64)
    return F.sum(F.full(shape=(size,), value=1, dtype=dt.int64), axis=(0,))


def _precise(v: Value, x: Value) -> Value:
    wide = dt.float64 if dt.float64 in v.stack.type.dtypes else dt.float32
    return x if x.dtype == wide else F.cast(x, dtype=wide)


def _positions(v: Value, length: DimLike, size: DimLike, rule: Rule) -> tuple[Any, Any]:
    """Places of the result's elements among those of v, as `resample_tables` has them: numerators over a denominator,
    whole numbers unless a scale is given."""
    i = F.arange(size=size, dtype=dt.int64)
    old, new = _number(length), _number(size)
    if rule.scale is not None:
        return _by_scale(_precise(v, i), rule.coordinates, rule.scale), _precise(v, F.add(F.multiply(new, 0), 1))
    if rule.coordinates == "asymmetric":
        return F.multiply(i, old), new
    if rule.coordinates == "align_corners":
        return F.multiply(i, F.subtract(old, 1)), F.maximum(F.subtract(new, 1), 1)
    centres = F.subtract(F.multiply(F.add(F.multiply(i, 2), 1), old), new)
    if rule.coordinates == "pytorch_half_pixel":
        centres = F.where(F.equal(new, 1), -1, centres)
    return centres, F.multiply(new, 2)


def _by_scale(i: Value, coordinates: str, scale: float) -> Value:
    if coordinates == "asymmetric":
        return F.divide(i, scale)
    return F.subtract(F.divide(F.add(i, 0.5), scale), 0.5)


def _rounded(n: Value, d: Value, rule: Rule) -> Value:
    """n / d as an integer, exactly where both are."""
    sign = 1 if rule.rounding in ("floor", "round_prefer_ceil") else -1
    twice = F.multiply(n, 2 * sign)
    twice = twice if rule.rounding in ("floor", "ceil") else F.add(twice, d)
    return F.cast(F.multiply(F.floor_divide(twice, F.multiply(d, 2)), sign), dtype=dt.int64)


def _inside(index: Value, length: DimLike) -> Value:
    return F.minimum(F.maximum(index, 0), F.subtract(_number(length), 1))


def _taps(place: Value, length: DimLike, rule: Rule) -> Iterator[tuple[Value, Value]]:
    """The elements around each place, and their weights."""
    count = 2 * REACH[rule.method]
    floor = F.floor(place)
    first = F.cast(F.subtract(floor, REACH[rule.method] - 1), dtype=dt.int64)
    within = F.subtract(place, floor)
    weights = [_weight(F.abs(F.subtract(within, t - REACH[rule.method] + 1)), rule) for t in range(count)]
    indices = [F.add(first, t) for t in range(count)]
    if rule.exclude_outside:
        last = F.subtract(_number(length), 1)
        weights = [F.where(F.logical_and(F.greater_equal(n, 0), F.less_equal(n, last)), w, 0.0)
                   for n, w in zip(indices, weights, strict=True)]
        total = weights[0]
        for w in weights[1:]:
            total = F.add(total, w)
        weights = [F.divide(w, F.where(F.equal(total, 0), 1.0, total)) for w in weights]
    yield from zip(indices, weights, strict=True)


def _weight(distance: Value, rule: Rule) -> Value:
    """The filter at a distance: a triangle, or Keys' cubic."""
    if rule.method == "linear":
        return F.maximum(F.subtract(1.0, distance), 0.0)
    a, squared = rule.coefficient, F.multiply(distance, distance)
    near = F.add(F.multiply(F.subtract(F.multiply(distance, a + 2), a + 3), squared), 1.0)
    inner = F.add(F.multiply(F.subtract(distance, 5.0), distance), 8.0)
    far = F.subtract(F.multiply(F.multiply(inner, distance), a), 4 * a)
    return F.where(F.less_equal(distance, 1.0), near, F.where(F.less(distance, 2.0), far, 0.0))
