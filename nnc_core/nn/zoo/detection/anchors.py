"""Anchors: boxes of three forms around the pixels of every level of a pyramid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

RATIOS = (0.5, 1.0, 2.0)
"""Heights by widths."""

Array = np.ndarray[Any, np.dtype[np.float32]]


def anchors_of(level: tuple[int, int], stride: int, size: int) -> Array:
    """float32 (height * width * ratios, 4): boxes of about size**2 pixels around the corners of a level's pixels, row
    by row, the ratios of one pixel next to each other."""
    roots = np.sqrt(np.array(RATIOS))
    heights, widths = size * roots, size / roots
    around = np.round(np.stack([-widths, -heights, widths, heights], axis=1) / 2)
    rows, columns = (np.arange(n) * stride for n in level)
    y, x = np.meshgrid(rows, columns, indexing="ij")
    corners = np.stack([x, y, x, y], axis=-1).reshape(-1, 1, 4)
    return (corners + around).reshape(-1, 4).astype(np.float32)


def pyramid_anchors(levels: Sequence[tuple[int, int]], strides: Sequence[int], sizes: Sequence[int]) -> list[Array]:
    """The anchors of each level, (height, width) pixels large."""
    return [anchors_of(*level) for level in zip(levels, strides, sizes, strict=True)]
