"""Aligned regions by maxima, as ONNX has them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import accumulator
from nnc_core.functions.constants import beside, constant_beside
from nnc_core.functions.pieces import cut
from nnc_core.shape.window import Image
from nnc_core.values.dispatch import F
from nnc_core.values.value import Value


class _Places(NamedTuple):
    """Samples of each region along one axis, (regions, samples): the pixels on both sides, the share of the second,
    and whether they lie in the image."""

    first: Value
    second: Value
    share: Value
    inside: Value


def region_maxima(v: Value, boxes: Value, numbers: Value, size: tuple[int, int], scale: float, ratio: int,
                  aligned: bool) -> Value:
    """(regions, *size, channels) of images with channels last: in each part of a region the largest of all that its
    samples are sums of, pixels times their weights.  `ratio` samples along each side of a part."""
    image, wide = Image.of(v.spec, "NHWC"), accumulator(v.dtype)
    height, width = (int(n) for n in image.size)
    corners = F.multiply(F.cast(boxes, dtype=wide), scale)
    corners = F.subtract(corners, 0.5) if aligned else corners
    columns, rows = (_places(corners, k, parts * ratio, length, aligned)
                     for k, parts, length in ((0, size[1], width), (1, size[0], height)))
    count = boxes.shape[0]
    pixels = F.reshape(F.cast(v, dtype=wide), shape=(image.n * height * width, image.c))
    begin = F.multiply(_along(_from_zero(numbers, image.n), count, 1, 1), height)
    found = None
    for y, down in _sides(rows):
        for x, right in _sides(columns):
            number = F.add(F.multiply(F.add(begin, _along(y, count, -1, 1)), width), _along(x, count, 1, -1))
            weight = F.multiply(_along(down, count, -1, 1), _along(right, count, 1, -1))
            term = F.multiply(F.take(pixels, number, axis=0), F.reshape(weight, shape=(*weight.shape, 1)))
            found = term if found is None else F.maximum(found, term)
    inside = F.logical_and(_along(rows.inside, count, -1, 1), _along(columns.inside, count, 1, -1))
    found = F.where(F.reshape(inside, shape=(*inside.shape, 1)), found if found is not None else 0.0, 0.0)
    apart = F.reshape(found, shape=(count, size[0], ratio, size[1], ratio, image.c))
    return F.cast(F.max(apart, axis=(2, 4)), dtype=v.dtype)


def _places(corners: Value, which: int, samples: int, length: int, aligned: bool) -> _Places:
    """Evenly spaced; up to one pixel outside the border stands for the image."""
    low, high = cut(corners, 1, which, which + 1), cut(corners, 1, which + 2, which + 3)
    extent = F.subtract(high, low)
    extent = extent if aligned else F.maximum(extent, 1.0)
    part = constant_beside(corners, ((np.arange(samples) + 0.5) / samples).astype(corners.dtype))
    at = F.add(low, F.multiply(extent, part))
    inside = F.logical_and(F.greater_equal(at, -1.0), F.less_equal(at, float(length)))
    at = F.clip(at, 0.0, float(length - 1))
    first = F.floor(at)
    second = F.minimum(F.add(first, 1.0), float(length - 1))
    whole = [F.cast(p, dtype=dt.int64) for p in (first, second)]
    return _Places(whole[0], whole[1], F.subtract(at, first), inside)


def _sides(places: _Places) -> list[tuple[Value, Value]]:
    return [(places.first, F.subtract(1.0, places.share)), (places.second, places.share)]


def _along(v: Value, count: Any, rows: int, columns: int) -> Value:
    """With axes for the other dimension; -1 marks its own."""
    return F.reshape(v, shape=tuple([v.shape[-1] if n < 0 else n for n in (count, rows, columns)]))


def _from_zero(numbers: Value, images: Any) -> Value:
    """Negative numbers count from the end."""
    n = F.cast(numbers, dtype=dt.int64)
    with beside(n):
        return F.where(F.less(n, 0), F.add(n, images), n)
