"""NumPy references of the operators on regions and boxes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nnc_core.base.dtype import accumulator
from nnc_core.operator.indexing import check_indices

Array = np.ndarray[Any, Any]


def _last(x: Array, layout: str) -> Array:
    return x if layout == "NHWC" else x.transpose(0, 2, 3, 1)


def _restored(x: Array, layout: str) -> Array:
    return x if layout == "NHWC" else x.transpose(0, 3, 1, 2)


def _seen(rows: Array, columns: Array) -> Iterator[tuple[int, Array, Array]]:
    """The regions that weigh anything, each with the rows and the columns of pixels that it weighs at all."""
    high, wide = np.any(rows, axis=1), np.any(columns, axis=1)
    for k in np.flatnonzero(np.any(high, axis=1) & np.any(wide, axis=1)):
        yield int(k), np.flatnonzero(high[k]), np.flatnonzero(wide[k])


def region_product(x: Array, rows: Array, columns: Array, images: Array, layout: str) -> Array:
    """Region by region, on the pixels of the image that it weighs."""
    image = _last(x, layout).astype(accumulator(x.dtype), copy=False)
    check_indices("region_product", images, len(image))
    out = np.zeros((len(rows), rows.shape[1], columns.shape[1], image.shape[3]), image.dtype)
    for k, high, wide in _seen(rows, columns):
        out[k] = _contracted(image[images[k], high[:, None], wide], rows[k][:, high], columns[k][:, wide])
    return _restored(out, layout).astype(x.dtype, copy=False)


def _contracted(part: Array, rows: Array, columns: Array) -> Array:
    """sum_hw rows[p, h] * columns[q, w] * part[h, w, c]; what weighs nothing is not read, be it infinite."""
    high, _, channels = part.shape
    with np.errstate(all="ignore"):
        narrow = np.matmul(columns, part).reshape(high, len(columns) * channels)
        found = np.matmul(rows, narrow).reshape(len(rows), len(columns), channels)
    if np.isfinite(found).all():  # else there was something infinite, maybe times zero
        return np.asarray(found)
    weights = rows[:, None, :, None, None] * columns[None, :, None, :, None]
    return np.asarray(np.where(weights != 0, weights * part, 0).sum((2, 3)))


def region_product_gradient(g: Array, rows: Array, columns: Array, images: Array, count: int, layout: str) -> Array:
    cotangent = _last(g, layout).astype(accumulator(g.dtype), copy=False)
    check_indices("region_product_gradient", images, count)
    out = np.zeros((count, rows.shape[2], columns.shape[2], cotangent.shape[3]), cotangent.dtype)
    for k, high, wide in _seen(rows, columns):
        out[images[k], high[:, None], wide] += _contracted(cotangent[k], rows[k][:, high].T, columns[k][:, wide].T)
    return _restored(out, layout).astype(g.dtype, copy=False)


def _rounded(x: Array) -> Array:
    """To the nearest integer, halves away from zero; NaN gives 0, and what is beyond any image its end."""
    whole = np.floor(np.abs(x) + x.dtype.type(0.5))
    limited = np.minimum(np.where(np.isnan(whole), 0, whole), 1 << 24)
    return np.where(x < 0, -limited, limited).astype(np.int64)


def bins(first: int, last: int, count: int, length: int) -> list[tuple[int, int]]:
    """The begin and end, inside an axis, of each of `count` parts of the elements from `first` to `last`."""
    size = max(last - first + 1, 1)
    edges = [(first + i * size // count, first - (-(i + 1) * size // count)) for i in range(count)]
    return [(min(max(a, 0), length), min(max(b, 0), length)) for a, b in edges]


def roi_pool_index(x: Array, boxes: Array, images: Array, size: Any, scale: float, layout: str) -> Array:
    image, wide = _last(x, layout), boxes.astype(accumulator(boxes.dtype))
    check_indices("roi_pool_index", images, len(image))
    corners = _rounded(wide * wide.dtype.type(scale))
    _, height, width, channels = image.shape
    out = np.full((len(boxes), *size, channels), -1, np.int64)
    for k, n in enumerate(images):
        x1, y1, x2, y2 = (int(v) for v in corners[k])
        for p, (top, bottom) in enumerate(bins(y1, y2, size[0], height)):
            for q, (left, right) in enumerate(bins(x1, x2, size[1], width)):
                if top < bottom and left < right:
                    part = image[n, top:bottom, left:right].reshape(-1, channels)
                    h, w = np.divmod(np.argmax(part, 0), right - left)
                    out[k, p, q] = (h + top) * width + w + left
    return _restored(out, layout)


def nms_order(boxes: Array, scores: Array, groups: Array, threshold: float) -> Array:
    """Greedily in each group: the best box that is left stays, and what overlaps it by more than the threshold goes."""
    wide = boxes.astype(accumulator(boxes.dtype))
    order = np.argsort(-scores.astype(wide.dtype), kind="stable")
    left = np.zeros(len(order), np.bool_)
    by_group = np.argsort(groups[order], kind="stable")
    sides = np.ascontiguousarray(wide[order[by_group]].T)
    ends = np.flatnonzero(np.diff(groups[order][by_group])) + 1
    for places, boxes in zip(np.split(by_group, ends), np.split(sides, ends, 1), strict=True):
        left[places[_survivors(boxes, threshold)]] = True
    kept = order[left]
    return np.concatenate([kept, np.full(len(order) - len(kept), -1, np.int64)]).astype(np.int64)


def _survivors(boxes: Array, threshold: float) -> list[int]:
    """Numbers of the boxes (4, n) of a group that stay, the best first."""
    rest, stay = np.vstack([boxes, area(boxes)]), list[int]()
    places = np.arange(boxes.shape[1])
    while len(places):
        stay.append(int(places[0]))
        goes = overlap(rest[:, :1], rest[:, 1:]) > threshold
        rest, places = rest[:, 1:], places[1:]
        if goes.any():
            rest, places = rest[:, ~goes], places[~goes]
    return stay


def area(boxes: Array) -> Array:
    """Areas of boxes (4, n): x1, y1, x2, y2."""
    return np.asarray((boxes[2] - boxes[0]) * (boxes[3] - boxes[1]))


def overlap(box: Array, others: Array) -> Array:
    """Intersection over union of boxes (5, n), whose areas come last; NaN between boxes without area."""
    wide, high = np.minimum(box[2:4], others[2:4]) - np.maximum(box[:2], others[:2])
    with np.errstate(all="ignore"):
        common = np.maximum(wide, 0) * np.maximum(high, 0)
        return np.asarray(common / (box[4] + others[4] - common))
