"""Sliding windows over images of any number of dimensions and either layout: what convolution and pooling share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType
from nnc_core.base.layout import Layout
from nnc_core.device import Launch
from nnc_core.shape.window import has_channels_last
from nnc_cpu.memory import Array
from nnc_cpu.routine import converting, scratch

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Geometry:
    """The places of windows: `size` is the image's spatial shape, `count` the number of windows along each axis."""

    batch: int
    channels: int
    size: Sizes
    count: Sizes
    window: Sizes
    strides: Sizes
    padding: tuple[tuple[int, int], ...]
    dilation: Sizes
    channels_last: bool

    @staticmethod
    def of(image: Layout, counted: Layout, window: Any, strides: Any, padding: Any, dilation: Any,
           layout: Any) -> Geometry:
        """From the layouts of the image and of what has one element for each window."""
        last = has_channels_last(layout)
        size, count = ((x.shape[1:-1] if last else x.shape[2:]) for x in (image, counted))
        return Geometry(image.shape[0], image.shape[-1 if last else 1], size, count, window, strides, padding,
                        dilation, last)

    @property
    def padded(self) -> bool:
        return any(map(any, self.padding))

    @property
    def padded_shape(self) -> tuple[int, ...]:
        """The shape of the whole batch, in the order of the layout."""
        size = [n + a + b for n, (a, b) in zip(self.size, self.padding, strict=True)]
        return (self.batch, *size, self.channels) if self.channels_last else (self.batch, self.channels, *size)

    def padded_scratch(self, dtype: DType) -> tuple[Layout, ...]:
        """A padded image, if there is padding."""
        return (scratch(self.padded_shape, dtype),) if self.padded else ()

    def last(self, x: Array) -> Array:
        """The same with channels last."""
        return x if self.channels_last else x.transpose(0, *range(2, x.ndim), 1)

    def middle(self, padded: Array) -> Array:
        """The part of a padded image (channels last) that is the image."""
        return padded[:, *[slice(a, a + n) for n, (a, _) in zip(self.size, self.padding, strict=True)]]

    def padding_steps(self, x: Array, padded: Array, fill: Any) -> list[Launch]:
        """x (in the layout's order) into the middle of `padded`."""
        return [partial(padded.fill, fill), converting(self.last(x), self.middle(self.last(padded)))]

    def positions(self) -> Iterator[Sizes]:
        """The positions in the window, in C order."""
        return product(*map(range, self.window))

    def taps(self, image: Array) -> list[Array]:
        """For each position in the window, the elements of a padded image (channels last) that lie there."""
        return [self.tap(image, k) for k in self.positions()]

    def tap(self, image: Array, position: Sizes) -> Array:
        axes = zip(position, self.count, self.strides, self.dilation, strict=True)
        return image[:, *[slice(k * d, k * d + (n - 1) * s + 1, s) for k, n, s, d in axes]]

    def windows(self, image: Array) -> Array:
        """View (n, count, window, c) of every window of a padded image (channels last)."""
        first, *steps, last = image.strides
        outer = [a * s for a, s in zip(steps, self.strides, strict=True)]
        inner = [a * d for a, d in zip(steps, self.dilation, strict=True)]
        shape = (len(image), *self.count, *self.window, self.channels)
        return np.lib.stride_tricks.as_strided(image, shape, (first, *outer, *inner, last), writeable=False)
