"""NNC's commands of regions of images: boxes that suppress each other, and regions aligned to one size."""

from __future__ import annotations

from typing import Any

import numpy as np

import nnc_core as nnc
from tests.house.nnc_rows import Backward, Command
from tests.house.rows import Array, Row

IMAGE = np.random.default_rng(19).uniform(-1, 1, (1, 5, 6, 2))
BOXES = np.array([[0.9, 0.1, 0.1, 0.5, 0.5], [0.8, 0.12, 0.1, 0.5, 0.5], [0.3, 0.7, 0.7, 0.2, 0.2],
                  [0.6, 0.1, 0.12, 0.48, 0.5], [0.5, 0.0, 0.6, 0.3, 0.3]])  # fmt: skip
"""Score, x, y, width, height."""


def _suppressed(boxes: Any) -> Any:
    """The rows that stay, best first; then rows of the least number, and their places, -1 for those that go."""
    corners = nnc.concat([boxes[:, 1:3], boxes[:, 1:3] + boxes[:, 3:5]], axis=1)
    places = nnc.nms(corners, boxes[:, 0], 0.5, padded=True)
    stays = nnc.expand_dims(places >= 0, 1)
    return [nnc.where(stays, nnc.take(boxes, nnc.maximum(places, 0), axis=0), 0.0), places]


def _suppressed_host(boxes: Array) -> Any:
    left, stay = list(np.argsort(-boxes[:, 0], kind="stable")), []
    while left:
        best = left.pop(0)
        stay.append(best)
        left = [k for k in left if _overlap(boxes[best], boxes[k]) <= 0.5]
    gone = len(boxes) - len(stay)
    return [np.concatenate([boxes[stay], np.zeros((gone, 5))]), np.array(stay + [-1] * gone)]


def _overlap(a: Array, b: Array) -> float:
    sides = [max(0.0, min(a[k] + a[k + 2], b[k] + b[k + 2]) - max(a[k], b[k])) for k in (1, 2)]
    common = sides[0] * sides[1]
    return float(common / (a[3] * a[4] + b[3] * b[4] - common))


REGION = np.array([[0.1, 0.2, 0.6, 0.7]])
"""x, y, width and height as parts of the image."""


def _aligned(x: Any, region: Any) -> Any:
    height, width = x.shape[1:3]
    box = nnc.concat([region[:, :2], region[:, :2] + region[:, 2:]], axis=1)
    return nnc.roi_align(x, box * np.array([width, height] * 2, np.float64), (2, 2), aligned=True, count_outside=False)


def _aligned_host(x: Array, region: Array) -> Array:
    """The mean of as many samples as there are pixels in each part, rounded up."""
    _, height, width, channels = x.shape
    left, top, wide, high = region[0] * np.array([width, height] * 2)
    out = np.zeros((1, 2, 2, channels))
    per = [int(np.ceil(side / 2)) for side in (high, wide)]
    for i, j in np.ndindex(2, 2):
        ys = top + (i * per[0] + np.arange(per[0]) + 0.5) * high / (2 * per[0]) - 0.5
        xs = left + (j * per[1] + np.arange(per[1]) + 0.5) * wide / (2 * per[1]) - 0.5
        out[0, i, j] = np.mean([_between(x[0], a, b) for a in ys for b in xs], axis=0)
    return out


def _between(image: Array, y: float, x: float) -> Array:
    (i, r), (j, s) = ((int(np.floor(v)), v - np.floor(v)) for v in (y, x))
    rows, columns = ([np.clip(k, 0, n - 1) for k in (at, at + 1)] for at, n in zip((i, j), image.shape, strict=False))
    first, second = (image[row, columns[0]] * (1 - s) + image[row, columns[1]] * s for row in rows)
    return np.asarray(first * (1 - r) + second * r)


COMMANDS: dict[str, Command] = {
    "NMS": Command(Row("nms, take", _suppressed, _suppressed_host, (BOXES,),
                       "a box goes above the threshold, in NNC from it on; boxes are corners here, corner and size in "
                       "NNC, whose rows that go have the least score"), Backward((0,))),
    "ROI_ALIGN": Command(Row("roi_align", _aligned, _aligned_host, (IMAGE, REGION),
                             "NNC's regions are x, y, width, height as parts of the image; gradients go to them here"),
                         Backward((0,))),
}  # fmt: skip
