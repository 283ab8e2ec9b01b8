"""Heads that read regions of a pyramid: classes, boxes and masks (He et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nnc_core.functions.creation import asarray
from nnc_core.functions.elementwise import clip, equal, log, relu, sqrt, where
from nnc_core.functions.movement import reshape
from nnc_core.functions.regions import roi_align
from nnc_core.functions.rounding import floor
from nnc_core.nn import Conv2d, ConvTranspose2d, Flatten, Linear, Module, ReLU, Sequential
from nnc_core.nn.initialise import he_normal
from nnc_core.values.tensor import Tensor

USUAL_SIZE, USUAL_LEVEL = 224, 2
"""Regions of so many pixels a side are read from this level, counted from the largest."""
SAMPLES = 2
"""Along each side of a part of a region."""
OUTSIDE = -8.0
"""Pixels; samples more than one pixel outside of an image are zeros."""


def region_levels(boxes: Tensor, count: int) -> Tensor:
    """From which of `count` levels each box (n, 4) is read: one higher for twice the size."""
    sides = boxes[:, 2:] - boxes[:, :2]
    doublings = log(sqrt(sides[:, 0] * sides[:, 1]) * (1 / USUAL_SIZE) + 1e-6) * (1 / np.log(2))
    return clip(floor(doublings + USUAL_LEVEL), 0, count - 1)


def pooled(levels: Sequence[Tensor], strides: Sequence[int], boxes: Tensor, size: int, layout: str) -> Tensor:
    """Regions (batch, n, 4) as images of one size: (batch * n, size, size, channels).

    Every region is read from every level, and the one that fits it is taken, so that shapes do not depend on data.  On
    the other levels it lies outside of the image, where there is nothing to read.
    """
    batch, count = (int(n) for n in boxes.shape[:2])
    flat = reshape(boxes, (-1, 4))
    images = asarray(np.repeat(np.arange(batch), count), device=boxes.device)
    wanted = reshape(region_levels(flat, len(levels)), (-1, 1, 1, 1))
    result: Tensor | None = None
    for k, (level, stride) in enumerate(zip(levels, strides, strict=True)):
        fits = equal(wanted, k)
        there = where(reshape(fits, (-1, 1)), flat, OUTSIDE * stride)
        read = roi_align(level, there, size, images=images, scale=1 / stride, sampling_ratio=SAMPLES, layout=layout)
        result = read if result is None else where(fits, read, result)
    assert result is not None
    return result


class BoxHead(Module):
    """Regions (n, size, size, channels) -> logits (n, classes) and differences (n, classes, 4)."""

    def __init__(self, channels: int, size: int, hidden: int, classes: int) -> None:
        self.layers = Sequential(
            Flatten(), Linear(size * size * channels, hidden, init=he_normal), ReLU(),
            Linear(hidden, hidden, init=he_normal), ReLU())  # fmt: skip
        self.logits, self.differences = Linear(hidden, classes), Linear(hidden, 4 * classes)

    def forward(self, regions: Tensor) -> tuple[Tensor, Tensor]:
        x = self.layers(regions)
        return self.logits(x), reshape(self.differences(x), (x.shape[0], -1, 4))


class MaskHead(Module):
    """Regions (n, size, size, channels) -> logits of a mask for each class (n, 2 size, 2 size, classes)."""

    def __init__(self, channels: int, classes: int, layout: str = "NHWC") -> None:
        self.convs = tuple([Conv2d(channels, channels, 3, padding=1, layout=layout, init=he_normal) for _ in range(4)])
        self.larger = ConvTranspose2d(channels, channels, 2, 2, layout=layout, init=he_normal)
        self.logits = Conv2d(channels, classes, 1, layout=layout)

    def forward(self, regions: Tensor) -> Tensor:
        for conv in self.convs:
            regions = relu(conv(regions))
        logits: Tensor = self.logits(relu(self.larger(regions)))
        return logits
