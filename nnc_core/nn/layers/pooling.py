"""Pools of sequences, images and volumes over sliding windows, and what undoes them."""

from __future__ import annotations

from typing import Any

from nnc_core.base.errors import AttributeValueError
from nnc_core.functions.pooling import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_unpool,
)
from nnc_core.nn.layers.checks import Int
from nnc_core.nn.layers.settings import settings
from nnc_core.nn.layers.windowed import LAYOUTS, Windowed
from nnc_core.values.results import ONE
from nnc_core.values.tensor import Tensor

__all__ = [
    "AvgPool1d", "AvgPool2d", "AvgPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d",
    "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]  # fmt: skip


class _Pool(Windowed):
    """The arguments of sliding windows."""

    def _set(self, window: Int, strides: Int | None, padding: Any, dilation: Int, layout: str | None,
             ceil_mode: bool) -> None:
        self._set_layout(layout)
        self.window = self._per_axis("window", window)
        self.strides = self.window if strides is None else self._per_axis("strides", strides)
        self.dilation = self._per_axis("dilation", dilation)
        self.padding, self.ceil_mode = self._checked_padding(padding), ceil_mode

    def _described(self, *more: str) -> str:
        return settings(self, "window", "strides", "padding", "dilation", "layout", *more, "ceil_mode",
                        usual={"strides": self.window, "layout": LAYOUTS[self.rank][0]})

    def describe(self) -> str:
        return self._described()


class _MaxPool(_Pool):
    def __init__(self, window: Int, strides: Int | None = None, padding: Any = "VALID", dilation: Int = 1,
                 layout: str | None = None, with_indices: bool = False, ceil_mode: bool = False) -> None:
        self._set(window, strides, padding, dilation, layout, ceil_mode)
        self.with_indices = with_indices

    def forward(self, x: Tensor) -> Any:
        """The maxima, or (maxima, int64 indices)."""
        self._check(x)
        pool = (max_pool1d, max_pool2d, max_pool3d)[self.rank - 1]
        return pool(x, self.window, strides=self.strides, padding=self.padding, dilation=self.dilation,
                    ceil_mode=self.ceil_mode, with_indices=self.with_indices, layout=self.layout)

    def result_structure(self) -> Any:
        return (ONE, ONE) if self.with_indices else ONE

    def describe(self) -> str:
        return self._described("with_indices")


class MaxPool1d(_MaxPool):
    """The maximum of each window of sequences (NWC or NCW); see `MaxPool2d`."""

    rank = 1


class MaxPool2d(_MaxPool):
    """The maximum of each window of each channel of images (NHWC or NCHW); strides default to the window.

    `padding` is as in `Conv2d` and never wins; `ceil_mode` keeps a last window that begins inside and ends beyond it;
    `with_indices` gives (maxima, int64 indices into the flattened image), which `MaxUnpool2d` takes.
    """

    rank = 2


class MaxPool3d(_MaxPool):
    """The maximum of each window of volumes (NDHWC or NCDHW); see `MaxPool2d`."""

    rank = 3


class _AvgPool(_Pool):
    def __init__(self, window: Int, strides: Int | None = None, padding: Any = "VALID", dilation: Int = 1,
                 layout: str | None = None, count_padding: bool = False, ceil_mode: bool = False) -> None:
        self._set(window, strides, padding, dilation, layout, ceil_mode)
        self.count_padding = count_padding

    def forward(self, x: Tensor) -> Tensor:
        """(batch, *sizes, channels) -> (batch, *smaller sizes, channels), or with channels before sizes."""
        self._check(x)
        pool = (avg_pool1d, avg_pool2d, avg_pool3d)[self.rank - 1]
        return pool(x, self.window, strides=self.strides, padding=self.padding, dilation=self.dilation,
                    ceil_mode=self.ceil_mode, count_padding=self.count_padding, layout=self.layout)

    def describe(self) -> str:
        return self._described("count_padding")


class AvgPool1d(_AvgPool):
    """The mean of each window of sequences (NWC or NCW); see `AvgPool2d`."""

    rank = 1


class AvgPool2d(_AvgPool):
    """The mean of each window of each channel of images (NHWC or NCHW); strides default to the window.

    `padding` and `ceil_mode` are as in `MaxPool2d`; padding counts only with `count_padding`, what is beyond it never.
    """

    rank = 2


class AvgPool3d(_AvgPool):
    """The mean of each window of volumes (NDHWC or NCDHW); see `AvgPool2d`."""

    rank = 3


class _LPPool(_Pool):
    def __init__(self, window: Int, p: float = 2.0, strides: Int | None = None, padding: Any = "VALID",
                 dilation: Int = 1, layout: str | None = None, ceil_mode: bool = False) -> None:
        if not p > 0:
            raise AttributeValueError(f"p is {p!r}, expected a positive number", operator=type(self).__name__)
        self._set(window, strides, padding, dilation, layout, ceil_mode)
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """(batch, *sizes, channels) -> (batch, *smaller sizes, channels), or with channels before sizes."""
        self._check(x)
        return lp_pool(x, self.window, p=self.p, strides=self.strides, padding=self.padding, dilation=self.dilation,
                       ceil_mode=self.ceil_mode, layout=self.layout)

    def describe(self) -> str:
        return self._described("p")


class LPPool1d(_LPPool):
    """(sum |x|**p) ** (1 / p) over each window of sequences (NWC or NCW); see `MaxPool2d` for the settings."""

    rank = 1


class LPPool2d(_LPPool):
    """(sum |x|**p) ** (1 / p) over each window of images (NHWC or NCHW); see `MaxPool2d` for the settings."""

    rank = 2


class LPPool3d(_LPPool):
    """(sum |x|**p) ** (1 / p) over each window of volumes (NDHWC or NCDHW); see `MaxPool2d` for the settings."""

    rank = 3


class _MaxUnpool(Windowed):
    def __init__(self, layout: str | None = None) -> None:
        self._set_layout(layout)

    def forward(self, x: Tensor, indices: Tensor, size: Int) -> Tensor:
        """Zeros of the spatial dimensions `size`, with x at the indices that a max pool gave."""
        self._check(x)
        return max_unpool(x, indices, size, layout=self.layout)

    def describe(self) -> str:
        return settings(self, "layout", usual={"layout": LAYOUTS[self.rank][0]})


class MaxUnpool1d(_MaxUnpool):
    """Maxima of a `MaxPool1d` with indices back where they were, zero elsewhere."""

    rank = 1


class MaxUnpool2d(_MaxUnpool):
    """Maxima of a `MaxPool2d` with indices back where they were, zero elsewhere."""

    rank = 2


class MaxUnpool3d(_MaxUnpool):
    """Maxima of a `MaxPool3d` with indices back where they were, zero elsewhere."""

    rank = 3
