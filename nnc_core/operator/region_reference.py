"""NumPy references of the operators on regions and boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.dtype import accumulator
from nnc_core.operator.indexing import check_indices

Array = np.ndarray[Any, Any]


def _last(x: Array, layout: str) -> Array:
    return x if layout == "NHWC" else x.transpose(0, 2, 3, 1)


def _restored(x: Array, layout: str) -> Array:
    return x if layout == "NHWC" else x.transpose(0, 3, 1, 2)


def _support(weights: Array) -> slice:
    """The elements that a region weighs at all: rows of weights (results, length)."""
    used = np.flatnonzero((weights != 0).any(0))
    return slice(int(used[0]), int(used[-1]) + 1) if len(used) else slice(0, 0)


def region_product(x: Array, rows: Array, columns: Array, images: Array, layout: str) -> Array:
    """Region by region, on the part of the image that it weighs."""
    image = _last(x, layout).astype(accumulator(x.dtype))
    check_indices("region_product", images, len(image))
    out = np.zeros((len(rows), rows.shape[1], columns.shape[1], image.shape[3]), image.dtype)
    for k, n in enumerate(images):
        high, wide = _support(rows[k]), _support(columns[k])
        out[k] = _contracted(image[n, high, wide], rows[k, :, high], columns[k, :, wide])
    return _restored(out, layout).astype(x.dtype)


def _contracted(part: Array, rows: Array, columns: Array) -> Array:
    """sum_hw rows[p, h] * columns[q, w] * part[h, w, c]; what weighs nothing is not read, be it infinite."""
    if np.isfinite(part).all():
        return np.asarray(np.einsum("ph,qw,hwc->pqc", rows, columns, part, optimize=True))
    weights = rows[:, None, :, None, None] * columns[None, :, None, :, None]
    return np.asarray(np.where(weights != 0, weights * part, 0).sum((2, 3)))


def region_product_gradient(g: Array, rows: Array, columns: Array, images: Array, count: int, layout: str) -> Array:
    cotangent = _last(g, layout).astype(accumulator(g.dtype))
    check_indices("region_product_gradient", images, count)
    out = np.zeros((count, rows.shape[2], columns.shape[2], cotangent.shape[3]), cotangent.dtype)
    for k, n in enumerate(images):
        high, wide = _support(rows[k]), _support(columns[k])
        out[n, high, wide] += _contracted(cotangent[k], rows[k, :, high].T, columns[k, :, wide].T)
    return _restored(out, layout).astype(g.dtype)


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
    ends = np.flatnonzero(np.diff(groups[order][by_group])) + 1
    for rest in np.split(by_group, ends):
        while len(rest):
            left[rest[0]] = True
            best, rest = wide[order[rest[0]]], rest[1:]
            rest = rest[~(overlap(best, wide[order[rest]]) > threshold)]
    kept = order[left]
    return np.concatenate([kept, np.full(len(order) - len(kept), -1, np.int64)]).astype(np.int64)


def overlap(box: Array, others: Array) -> Array:
    """Intersection over union; NaN between boxes without area."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    common = np.maximum(high - low, 0).prod(1)
    with np.errstate(all="ignore"):
        return np.asarray(common / ((box[2:] - box[:2]).prod() + (others[:, 2:] - others[:, :2]).prod(1) - common))
