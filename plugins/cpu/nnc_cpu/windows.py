"""Sliding windows over images, whatever their layout: all that convolution and pooling share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType
from nnc_core.base.layout import Layout
from nnc_core.device import Launch
from nnc_cpu.memory import Array
from nnc_cpu.routine import converting, scratch


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where windows lie: `size` is the image's height and width, `count` how many windows there are along each."""

    batch: int
    channels: int
    size: tuple[int, int]
    count: tuple[int, int]
    window: tuple[int, int]
    strides: tuple[int, int]
    padding: tuple[tuple[int, int], tuple[int, int]]
    dilation: tuple[int, int]
    layout: str

    @staticmethod
    def of(image: Layout, counted: Layout, window: Any, strides: Any, padding: Any, dilation: Any,
           layout: Any) -> Geometry:
        """From the layouts of the image and of what has one element for each window."""
        rows, columns, channel = (1, 2, 3) if layout == "NHWC" else (2, 3, 1)
        size = image.shape[rows], image.shape[columns]
        count = counted.shape[rows], counted.shape[columns]
        return Geometry(image.shape[0], image.shape[channel], size, count, window, strides, padding, dilation, layout)

    @property
    def padded(self) -> bool:
        return self.padding != ((0, 0), (0, 0))

    @property
    def padded_shape(self) -> tuple[int, ...]:
        """Of the whole batch, in the order of the layout."""
        (top, bottom), (left, right) = self.padding
        h, w = self.size[0] + top + bottom, self.size[1] + left + right
        return (self.batch, h, w, self.channels) if self.layout == "NHWC" else (self.batch, self.channels, h, w)

    def padded_scratch(self, dtype: DType) -> tuple[Layout, ...]:
        """A padded image, if there is padding."""
        return (scratch(self.padded_shape, dtype),) if self.padded else ()

    def nhwc(self, x: Array) -> Array:
        return x if self.layout == "NHWC" else x.transpose(0, 2, 3, 1)

    def middle(self, padded: Array) -> Array:
        """The part of a padded image (NHWC) that is the image."""
        (top, _), (left, _) = self.padding
        return padded[:, top : top + self.size[0], left : left + self.size[1]]

    def padding_steps(self, x: Array, padded: Array, fill: Any) -> list[Launch]:
        """x (in the layout's order) into the middle of `padded`."""
        return [partial(np.copyto, padded, fill), converting(self.nhwc(x), self.middle(self.nhwc(padded)))]

    def taps(self, image: Array) -> list[Array]:
        """For each position in the window, row by row, the elements of a padded image (NHWC) that lie there."""
        return [self.tap(image, k, j) for k in range(self.window[0]) for j in range(self.window[1])]

    def tap(self, image: Array, k: int, j: int) -> Array:
        (h, w), (sh, sw), (dh, dw) = self.count, self.strides, self.dilation
        return image[:, k * dh : k * dh + (h - 1) * sh + 1 : sh, j * dw : j * dw + (w - 1) * sw + 1 : sw]

    def windows(self, image: Array) -> Array:
        """View (n, h, w, kh, kw, c) of every window of a padded image (NHWC)."""
        sn, sh, sw, sc = image.strides
        (vertical, horizontal), (dh, dw) = self.strides, self.dilation
        steps = (sn, sh * vertical, sw * horizontal, sh * dh, sw * dw, sc)
        shape = (len(image), *self.count, *self.window, self.channels)
        return np.lib.stride_tricks.as_strided(image, shape, steps, writeable=False)
