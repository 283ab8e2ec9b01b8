"""Resizing to or from lengths that have no number yet: what tables say otherwise is computed where the elements are."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

from nnc_core.base import dtype as dt
from nnc_core.functions.constants import beside
from nnc_core.functions.resample_tables import Rule
from nnc_core.type import DimLike
from nnc_core.values.dispatch import F
from nnc_core.values.value import Value

REACH = {"linear": 1, "cubic": 2}
"""How many elements to each side of a place a filter reads."""


def resampled_by_name(v: Value, axis: int, length: DimLike, size: DimLike, rule: Rule) -> Value:
    """An axis resized by a rule."""
    with beside(v):
        if rule.antialias or rule.method == "area":
            return _spread(v, axis, length, size, rule)
        return _resampled(v, axis, length, size, rule)


def outside_by_name(v: Value, length: DimLike, size: DimLike, rule: Rule) -> Value:
    """Marks (size) of the places that lie beyond the centres of the first and the last element."""
    with beside(v):
        place = _placed(v, length, size, rule)
        return F.logical_or(F.less(place, 0.0), F.greater(place, _precise(v, F.subtract(_number(length), 1))))


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
    if rule.scale is not None or rule.coordinates == "tf_crop_and_resize":
        return _placed(v, length, size, rule), _precise(v, F.add(F.multiply(new, 0), 1))
    if rule.coordinates == "asymmetric":
        return F.multiply(i, old), new
    if rule.coordinates == "align_corners":
        return F.multiply(i, F.subtract(old, 1)), F.maximum(F.subtract(new, 1), 1)
    centres = F.subtract(F.multiply(F.add(F.multiply(i, 2), 1), old), new)
    if rule.coordinates == "pytorch_half_pixel":
        centres = F.where(F.equal(new, 1), -1, centres)
    return centres, F.multiply(new, 2)


def _placed(v: Value, length: DimLike, size: DimLike, rule: Rule) -> Value:
    """The same by a scale or in a region: as floats."""
    i, old, new = (_precise(v, n) for n in (F.arange(size=size, dtype=dt.int64), _number(length), _number(size)))
    wanted = new if rule.scale is None else F.multiply(old, rule.scale)
    last, single = F.subtract(old, 1.0), F.equal(wanted, 1.0)
    steps = F.subtract(F.where(single, 2.0, wanted), 1.0)
    if rule.coordinates == "tf_crop_and_resize":
        begin, end = rule.region
        along = F.divide(F.multiply(F.multiply(i, end - begin), last), steps)
        return F.add(F.where(single, F.multiply(last, (end - begin) / 2), along), F.multiply(last, begin))
    if rule.coordinates == "align_corners":
        return F.where(single, 0.0, F.multiply(i, F.divide(last, steps)))
    assert rule.scale is not None
    if rule.coordinates == "asymmetric":
        return F.divide(i, rule.scale)
    centres = F.subtract(F.divide(F.add(i, 0.5), rule.scale), 0.5)
    if rule.coordinates == "pytorch_half_pixel":
        return F.where(single, -0.5, centres)
    if rule.coordinates == "half_pixel_symmetric":
        return F.add(centres, F.multiply(F.divide(old, 2.0), F.subtract(1.0, F.divide(new, wanted))))
    return centres


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


# ---- by as many elements as a name says
def _spread(v: Value, axis: int, length: DimLike, size: DimLike, rule: Rule) -> Value:
    """Each element of the result from all elements of the axis, most of which weigh nothing."""
    wide = dt.accumulator(v.dtype)
    at, weights = _areas(v, length, size) if rule.method == "area" else _widened(v, length, size, rule)
    count, after = at.shape[0], v.ndim - axis - 1
    taken = F.cast(F.take(v, at, axis=axis), dtype=wide)
    beside = F.reshape(taken, shape=(*v.shape[:axis], 1, count, *v.shape[axis + 1 :]))
    scale = F.reshape(F.cast(weights, dtype=wide), shape=(size, count, *(1,) * after))
    terms = F.where(F.equal(scale, 0), 0, F.multiply(beside, scale))  # what weighs nothing is not read
    return F.cast(F.sum(terms, axis=(axis + 1,)), dtype=v.dtype)


def _areas(v: Value, length: DimLike, size: DimLike) -> tuple[Value, Value]:
    """All elements, and their weights (size, length) in windows that cover the axis as evenly as may be."""
    old, new, at = _number(length), _number(size), F.arange(size=length, dtype=dt.int64)
    i = F.reshape(F.arange(size=size, dtype=dt.int64), shape=(size, 1))
    begin = F.floor_divide(F.multiply(i, old), new)
    end = F.negative(F.floor_divide(F.negative(F.multiply(F.add(i, 1), old)), new))
    inside = F.logical_and(F.greater_equal(at, begin), F.less(at, end))
    return at, F.where(inside, F.divide(1.0, _precise(v, F.subtract(end, begin))), 0.0)


def _widened(v: Value, length: DimLike, size: DimLike, rule: Rule) -> tuple[Value, Value]:
    """The elements, those of the border again for what lies beyond it, and their weights by a filter that is widened
    where the result is smaller."""
    numerator, denominator = _positions(v, length, size, rule)
    place = F.divide(_precise(v, numerator), _precise(v, denominator))
    old, new = (_precise(v, _number(n)) for n in (length, size))
    step = F.divide(old, new) if rule.scale is None else F.full(shape=(), value=1 / rule.scale, dtype=old.dtype)
    wide = F.maximum(step, 1.0)
    beyond: Any = 0
    if not rule.exclude_outside:
        beyond = 2 * REACH[rule.method] * (length // size + 1 if rule.scale is None else ceil(1 / rule.scale)) + 4
        away = F.add(F.multiply(wide, REACH[rule.method]), 1.0)  # from here on all is border
        place = F.minimum(F.maximum(place, F.negative(away)), F.add(F.subtract(old, 1.0), away))
    at = F.subtract(F.arange(size=length + 2 * beyond, dtype=dt.int64), _number(beyond))
    distance = F.divide(F.abs(F.subtract(_precise(v, at), F.reshape(place, shape=(size, 1)))), wide)
    weights = _weight(distance, rule)
    total = F.reshape(F.sum(weights, axis=(1,)), shape=(size, 1))
    return _inside(at, length), F.divide(weights, F.where(F.equal(total, 0), 1.0, total))
