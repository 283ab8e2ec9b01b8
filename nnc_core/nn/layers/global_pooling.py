"""Pools of sequences, images and volumes over everything: a number for each channel."""

from __future__ import annotations

from nnc_core.functions.adaptive import global_avg_pool, global_max_pool
from nnc_core.nn.layers.settings import settings
from nnc_core.nn.layers.windowed import LAYOUTS, Windowed
from nnc_core.values.tensor import Tensor

__all__ = [
    "GlobalAvgPool1d", "GlobalAvgPool2d", "GlobalAvgPool3d", "GlobalMaxPool1d", "GlobalMaxPool2d", "GlobalMaxPool3d",
]  # fmt: skip


class _GlobalPool(Windowed):
    def __init__(self, keepdims: bool = False, layout: str | None = None) -> None:
        self._set_layout(layout)
        self.keepdims = keepdims

    def describe(self) -> str:
        return settings(self, "keepdims", "layout", usual={"layout": LAYOUTS[self.rank][0]})


class _GlobalAvgPool(_GlobalPool):
    def forward(self, x: Tensor) -> Tensor:
        """(batch, *sizes, channels) -> (batch, channels), or with sizes of 1."""
        self._check(x)
        return global_avg_pool(x, keepdims=self.keepdims, layout=self.layout)


class GlobalAvgPool1d(_GlobalAvgPool):
    """The mean of each channel of sequences: (batch, channels), or with an axis of length 1 if `keepdims`."""

    rank = 1


class GlobalAvgPool2d(_GlobalAvgPool):
    """The mean of each channel of images: (batch, channels), or with axes of length 1 if `keepdims`."""

    rank = 2


class GlobalAvgPool3d(_GlobalAvgPool):
    """The mean of each channel of volumes: (batch, channels), or with axes of length 1 if `keepdims`."""

    rank = 3


class _GlobalMaxPool(_GlobalPool):
    def forward(self, x: Tensor) -> Tensor:
        """(batch, *sizes, channels) -> (batch, channels), or with sizes of 1."""
        self._check(x)
        return global_max_pool(x, keepdims=self.keepdims, layout=self.layout)


class GlobalMaxPool1d(_GlobalMaxPool):
    """The maximum of each channel of sequences: (batch, channels), or with an axis of length 1 if `keepdims`."""

    rank = 1


class GlobalMaxPool2d(_GlobalMaxPool):
    """The maximum of each channel of images: (batch, channels), or with axes of length 1 if `keepdims`."""

    rank = 2


class GlobalMaxPool3d(_GlobalMaxPool):
    """The maximum of each channel of volumes: (batch, channels), or with axes of length 1 if `keepdims`."""

    rank = 3
