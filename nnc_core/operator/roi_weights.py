"""Weights of each pixel along an axis in each part of a region, without a loop over the samples.

Samples are evenly spaced and each weighs the two pixels around it, so that a pixel's weight is the sum over the samples
on either side of it of their distances: two arithmetic series, whose ends are found by division.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnc_core.operator.declare import V
from nnc_core.type import DimLike

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def roi_weights(F: Namespace[V], low: V, high: V, parts: int, length: DimLike, *, ratio: int, least: float,
                count_outside: bool) -> V:
    """(regions, parts, length): the mean over the samples of a part, which reads pixels linearly.

    Regions go from `low` to `high`, of size `least` or more; `ratio` samples a part, or (0) one for each pixel begun.
    Samples up to one pixel outside take the border; what is further out counts as zero, or not at all.
    """
    samples = _Samples(F, low, high, parts, ratio, least)
    pixel = F.arange(size=length, dtype=low.dtype)
    here, before, after = samples.until(pixel), samples.until(F.subtract(pixel, 1.0)), samples.until(F.add(pixel, 1.0))
    outside, last = samples.before(-1.0), length - 1
    up = F.where(F.equal(pixel, 0.0), F.subtract(here, outside),
                 F.add(F.subtract(here, before), samples.distance(pixel, before, here)))
    beyond = F.subtract(after, here)
    down = F.where(F.equal(pixel, last), beyond, F.subtract(beyond, samples.distance(pixel, here, after)))
    counted = samples.count if count_outside else F.subtract(samples.until(last + 1.0), outside)
    return F.divide(F.add(up, down), _at_least_one(F, counted))


def _at_least_one(F: Namespace[V], count: Any) -> V:
    return F.maximum(count, 1.0)


class _Samples:
    """Positions of each part's samples: `first`, `first + step`, ..., `count` of them; shapes (regions, parts, 1)."""

    def __init__(self, F: Any, low: Any, high: Any, parts: int, ratio: int, least: float) -> None:
        k = low.shape[0]
        extent = F.subtract(high, low)
        extent = F.maximum(extent, least) if least else extent
        part = F.reshape(F.divide(extent, float(parts)), shape=(k, 1, 1))
        self.F = F
        self.count = (F.maximum(F.ceil(part), 0.0) if ratio == 0
                      else F.full(shape=(1, 1, 1), value=float(ratio), dtype=low.dtype))
        step = F.divide(part, _at_least_one(F, self.count))
        number = F.reshape(F.arange(size=parts, dtype=low.dtype), shape=(parts, 1))
        first = F.add(F.add(F.reshape(low, shape=(k, 1, 1)), F.multiply(number, part)), F.multiply(step, 0.5))
        backwards = F.less(step, 0.0)
        self.first = F.where(backwards, F.add(first, F.multiply(step, F.subtract(self.count, 1.0))), first)
        self.step = F.abs(step)
        self.still = F.equal(step, 0.0)

    def until(self, place: Any) -> Any:
        """The number of samples at a place or before it."""
        F = self.F
        away = F.subtract(place, self.first)
        there = F.add(F.floor(F.divide(away, F.where(self.still, 1.0, self.step))), 1.0)
        counted = F.minimum(F.maximum(there, 0.0), self.count)
        return F.where(self.still, F.where(F.greater_equal(away, 0.0), self.count, 0.0), counted)

    def before(self, place: float) -> Any:
        """The number of samples before a place."""
        F = self.F
        away = F.subtract(place, self.first)
        counted = F.minimum(F.maximum(F.ceil(F.divide(away, F.where(self.still, 1.0, self.step))), 0.0), self.count)
        return F.where(self.still, F.where(F.greater(away, 0.0), self.count, 0.0), counted)

    def distance(self, place: Any, begin: Any, end: Any) -> Any:
        """The sum of (sample - place) over the samples from number `begin` up to `end`."""
        F = self.F
        count = F.subtract(end, begin)
        middle = F.multiply(F.subtract(F.add(begin, end), 1.0), 0.5)
        return F.multiply(count, F.add(F.subtract(self.first, place), F.multiply(self.step, middle)))
