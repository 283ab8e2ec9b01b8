"""Pools of sequences, images and volumes over as many windows as are asked for."""

from __future__ import annotations

from typing import Any

from nnc_core.functions.adaptive import adaptive_avg_pool, adaptive_max_pool
from nnc_core.nn.layers.settings import settings
from nnc_core.nn.layers.windowed import LAYOUTS, Windowed
from nnc_core.values.results import ONE
from nnc_core.values.tensor import Tensor

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
]  # fmt: skip


class _AdaptivePool(Windowed):
    def _set(self, size: Any, layout: str | None) -> None:
        self._set_layout(layout)
        kept = size is None or (isinstance(size, (tuple, list)) and None in size)
        given = (size,) * self.rank if size is None else tuple(size) if kept else self._per_axis("size", size)
        self._per_axis("size", tuple(1 if n is None else n for n in given))
        self.size = given

    def describe(self) -> str:
        return settings(self, "size", "layout", usual={"layout": LAYOUTS[self.rank][0]})


class _AdaptiveAvgPool(_AdaptivePool):
    def __init__(self, size: Any, layout: str | None = None) -> None:
        self._set(size, layout)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, *sizes, channels) -> (batch, *size, channels), or with channels before sizes."""
        self._check(x)
        return adaptive_avg_pool(x, self.size, layout=self.layout)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Means of `size` windows of sequences (NWC or NCW); see `AdaptiveAvgPool2d`."""

    rank = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Means of `size` windows along each spatial dimension of images (NHWC or NCHW).

    `size` is a number, or for each dimension a number or None, which keeps its length.  Window i of n over a length L
    goes from floor(i * L / n) up to ceil((i + 1) * L / n).
    """

    rank = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Means of `size` windows along each spatial dimension of volumes; see `AdaptiveAvgPool2d`."""

    rank = 3


class _AdaptiveMaxPool(_AdaptivePool):
    def __init__(self, size: Any, layout: str | None = None, with_indices: bool = False) -> None:
        self._set(size, layout)
        self.with_indices = with_indices

    def forward(self, x: Tensor) -> Any:
        """The maxima, or (maxima, int64 indices)."""
        self._check(x)
        return adaptive_max_pool(x, self.size, with_indices=self.with_indices, layout=self.layout)

    def result_structure(self) -> Any:
        return (ONE, ONE) if self.with_indices else ONE

    def describe(self) -> str:
        return settings(self, "size", "layout", "with_indices", usual={"layout": LAYOUTS[self.rank][0]})


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Maxima of `size` windows of sequences (NWC or NCW); see `AdaptiveMaxPool2d`."""

    rank = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Maxima of `size` windows along each spatial dimension of images, which lie as those of `AdaptiveAvgPool2d`.

    `with_indices` is as in `MaxPool2d`.
    """

    rank = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Maxima of `size` windows along each spatial dimension of volumes; see `AdaptiveMaxPool2d`."""

    rank = 3
