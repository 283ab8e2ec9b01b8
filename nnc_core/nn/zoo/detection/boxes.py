"""Boxes x1, y1, x2, y2 in pixels: as differences from other boxes, and within images."""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from nnc_core.functions.creation import asarray
from nnc_core.functions.elementwise import exp, maximum, minimum, where
from nnc_core.functions.elementwise import log as logarithm
from nnc_core.functions.joining import concat
from nnc_core.values.tensor import Tensor

LARGEST_GROWTH = log(1000 / 16)
"""The bound of logarithms of sizes: beyond it exp would make boxes that are larger than any image."""


class Weights(NamedTuple):
    """The factors of differences."""

    centre: float
    size: float


OF_ANCHORS, OF_REGIONS = Weights(1.0, 1.0), Weights(10.0, 5.0)


def _centre_and_size(boxes: Tensor) -> tuple[Tensor, Tensor]:
    low, high = boxes[..., :2], boxes[..., 2:]
    size = high - low
    return low + size * 0.5, size


def encoded(boxes: Tensor, references: Tensor, weights: Weights) -> Tensor:
    """Differences of boxes (..., 4) from references: centres in sizes of the reference, logarithms of sizes."""
    centre, size = _centre_and_size(boxes)
    start, unit = _centre_and_size(references)
    return concat([(centre - start) / unit * weights.centre, logarithm(size / unit) * weights.size], axis=-1)


def decoded(differences: Tensor, references: Tensor, weights: Weights) -> Tensor:
    """The boxes (..., 4) that differ so from references."""
    start, unit = _centre_and_size(references)
    centre = start + differences[..., :2] * (1 / weights.centre) * unit
    half = exp(minimum(differences[..., 2:] * (1 / weights.size), LARGEST_GROWTH)) * unit * 0.5
    return concat([centre - half, centre + half], axis=-1)


def clipped(boxes: Tensor, height: int, width: int) -> Tensor:
    """The part of boxes (..., 4) that lies in an image."""
    limits = asarray(np.array([width, height, width, height], np.float32), dtype=boxes.dtype, device=boxes.device)
    return minimum(maximum(boxes, 0), limits)


def chosen(wanted: Tensor, boxes: Tensor) -> Tensor:
    """Boxes (..., 4) where they are wanted (...), elsewhere unit ones, whose logarithms are finite."""
    unit = asarray(np.array([0, 0, 1, 1], np.float32), dtype=boxes.dtype, device=boxes.device)
    return where(wanted[..., None], boxes, unit)
