"""Regions of images by plain loops over samples and pixels, from the definitions of their authors."""

from __future__ import annotations

import math

import numpy as np


def bilinear(plane, y, x):
    """A sample of (height, width, channels), as torchvision reads it: the border up to one pixel outside, then zero."""
    height, width, channels = plane.shape
    if y < -1 or y > height or x < -1 or x > width:
        return np.zeros(channels), False
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = min(int(y), height - 1), min(int(x), width - 1)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    down, across = y - top, x - left
    upper = plane[top, left] * (1 - across) + plane[top, right] * across
    lower = plane[bottom, left] * (1 - across) + plane[bottom, right] * across
    return upper * (1 - down) + lower * down, True


def roi_align(x, boxes, images, size, scale, sampling_ratio, aligned, count_outside):
    """NHWC."""
    out = np.zeros((len(boxes), *size, x.shape[-1]))
    for k, (box, n) in enumerate(zip(boxes, images, strict=True)):
        x1, y1, x2, y2 = (float(v) * scale - (0.5 if aligned else 0) for v in box)
        extent = [y2 - y1, x2 - x1]
        if not aligned:
            extent = [max(e, 1) for e in extent]
        part = [e / s for e, s in zip(extent, size, strict=True)]
        grid = [sampling_ratio or max(math.ceil(b), 0) for b in part]
        for p, q in np.ndindex(*size):
            total, inside = np.zeros(x.shape[-1]), 0
            for i, j in np.ndindex(*grid):
                value, seen = bilinear(x[n], y1 + (p + (i + 0.5) / grid[0]) * part[0],
                                       x1 + (q + (j + 0.5) / grid[1]) * part[1])
                total, inside = total + value, inside + seen
            out[k, p, q] = total / max(grid[0] * grid[1] if count_outside else inside, 1)
    return out


def nnc_roi_align(x, boxes, size):
    """NNC's command, by its rule: boxes (x, y, width, height) in parts of the image; box k of image k."""
    _, height, width, channels = x.shape
    out = np.zeros((len(boxes), *size, channels))
    for k, (bx, by, bw, bh) in enumerate(boxes):
        left, top, wide, high = bx * width, by * height, bw * width, bh * height
        grid = math.ceil(high / size[0]), math.ceil(wide / size[1])
        for p, q in np.ndindex(*size):
            found = []
            for i, j in np.ndindex(*grid):
                y = top + (p * grid[0] + i + 0.5) * high / (grid[0] * size[0]) - 0.5
                z = left + (q * grid[1] + j + 0.5) * wide / (grid[1] * size[1]) - 0.5
                iy, iz = math.floor(y), math.floor(z)
                if iy + 1 < 0 or iy > height - 1 or iz + 1 < 0 or iz > width - 1:
                    continue
                rows, columns = np.clip([iy, iy + 1], 0, height - 1), np.clip([iz, iz + 1], 0, width - 1)
                down, across = np.array([1 - (y - iy), y - iy]), np.array([1 - (z - iz), z - iz])
                found.append(np.einsum("a,b,abc->c", down, across, x[k][np.ix_(rows, columns)]))
            if found:
                out[k, p, q] = np.mean(found, 0)
    return out


def nearest_away(v):
    return int(math.copysign(math.floor(abs(v) + 0.5), v))


def roi_pool(x, boxes, images, size, scale):
    """NHWC; (maxima, places in the flattened image)."""
    _, height, width, channels = x.shape
    out, places = np.zeros((len(boxes), *size, channels)), np.full((len(boxes), *size, channels), -1)
    for k, (box, n) in enumerate(zip(boxes, images, strict=True)):
        x1, y1, x2, y2 = (nearest_away(float(v) * scale) for v in box)
        part = [max(y2 - y1 + 1, 1) / size[0], max(x2 - x1 + 1, 1) / size[1]]
        for p, q in np.ndindex(*size):
            rows = range(max(math.floor(p * part[0]) + y1, 0), min(math.ceil((p + 1) * part[0]) + y1, height))
            columns = range(max(math.floor(q * part[1]) + x1, 0), min(math.ceil((q + 1) * part[1]) + x1, width))
            for c in range(channels):
                for h in rows:
                    for w in columns:
                        if places[k, p, q, c] < 0 or x[n, h, w, c] > out[k, p, q, c]:
                            out[k, p, q, c], places[k, p, q, c] = x[n, h, w, c], h * width + w
    return out, places


def iou(a, b):
    wide = max(min(a[2], b[2]) - max(a[0], b[0]), 0)
    high = max(min(a[3], b[3]) - max(a[1], b[1]), 0)
    area = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - wide * high
    return wide * high / area if area else math.nan


def nms(boxes, scores, groups, threshold):
    """The boxes that stay: by picking the best that is left, again and again."""
    left = list(range(len(boxes)))
    kept = []
    while left:
        best = max(left, key=lambda i: (scores[i], -i))
        kept.append(best)
        left = [i for i in left if i != best and not (
            groups[i] == groups[best] and iou(boxes[best], boxes[i]) > threshold)]
    return kept
