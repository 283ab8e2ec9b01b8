"""Layers with sliding windows: convolution and pooling of images."""

from __future__ import annotations

from typing import Any

from nnc_core.base.errors import AttributeValueError
from nnc_core.dynamic.functions.creation import zeros
from nnc_core.dynamic.functions.pooling import avg_pool2d, max_pool2d
from nnc_core.dynamic.functions.window import conv2d
from nnc_core.dynamic.random.generator import Generator
from nnc_core.dynamic.tensor import Tensor
from nnc_core.nn.checks import as_pair, at_least_one
from nnc_core.nn.initialise import Initialiser, generator_or_default, glorot_uniform
from nnc_core.nn.module import Module
from nnc_core.nn.parameter import Parameter

Pair = int | tuple[int, int]
LAYOUTS = ("NHWC", "NCHW")


class Conv2d(Module):
    """Cross-correlation of images (NHWC or NCHW) plus a bias for each output channel.

    kernel (height, width, in_channels / groups, out_channels) for NHWC, (out, in / groups, height, width) for NCHW,
    by default Glorot's uniform (Owl's Tanh); bias (out_channels,), zero at first.  `padding` is "SAME", "VALID", a
    number or ((top, bottom), (left, right)).
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Pair, strides: Pair = 1,
                 padding: Any = "VALID", dilation: Pair = 1, groups: int = 1, bias: bool = True,
                 layout: str = "NHWC", *, init: Initialiser = glorot_uniform, generator: Generator | None = None,
                 dtype: Any = None) -> None:
        at_least_one("Conv2d", in_channels=in_channels, out_channels=out_channels, groups=groups)
        _check_layout("Conv2d", layout)
        if in_channels % groups or out_channels % groups:
            raise AttributeValueError(f"{in_channels} and {out_channels} channels do not divide into {groups} groups",
                                      operator="Conv2d")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = as_pair("Conv2d", "kernel_size", kernel_size)
        self.strides, self.dilation = as_pair("Conv2d", "strides", strides), as_pair("Conv2d", "dilation", dilation)
        self.padding, self.layout = padding, layout
        height, width = self.kernel_size
        area, taken = height * width, in_channels // groups
        nhwc = layout == "NHWC"
        shape = (height, width, taken, out_channels) if nhwc else (out_channels, taken, height, width)
        drawn = init(generator_or_default(generator), shape, area * taken, area * out_channels // groups, dtype)
        self.kernel = Parameter(drawn)
        self.bias = Parameter(zeros(out_channels, dtype=dtype)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        y = conv2d(x, self.kernel.read(), strides=self.strides, padding=self.padding, dilation=self.dilation,
                   groups=self.groups, layout=self.layout)
        if self.bias is None:
            return y
        bias = self.bias.read()
        shifted: Tensor = y + (bias if self.layout == "NHWC" else bias.reshape(self.out_channels, 1, 1))
        return shifted

    def describe(self) -> str:
        return ", ".join([f"{self.in_channels}, {self.out_channels}, {self.kernel_size}", *_window_options(self),
                          *[f"groups={self.groups}"] * (self.groups != 1), *["bias=False"] * (self.bias is None)])


class _Pool2d(Module):
    """What the two pools share: their settings."""

    def __init__(self, window: Pair, strides: Pair | None = None, padding: Any = "VALID", dilation: Pair = 1,
                 layout: str = "NHWC") -> None:
        kind = type(self).__name__
        _check_layout(kind, layout)
        self.window = as_pair(kind, "window", window)
        self.strides = self.window if strides is None else as_pair(kind, "strides", strides)
        self.dilation = as_pair(kind, "dilation", dilation)
        self.padding, self.layout = padding, layout

    def describe(self) -> str:
        return ", ".join([str(self.window), *_window_options(self)])


class MaxPool2d(_Pool2d):
    """The maximum of each window of each channel; strides default to the window."""

    def forward(self, x: Tensor) -> Tensor:
        pooled: Tensor = max_pool2d(x, self.window, strides=self.strides, padding=self.padding, dilation=self.dilation,
                                    layout=self.layout)
        return pooled


class AvgPool2d(_Pool2d):
    """The mean of each window of each channel; strides default to the window, padding counts only if asked."""

    def __init__(self, window: Pair, strides: Pair | None = None, padding: Any = "VALID", dilation: Pair = 1,
                 layout: str = "NHWC", count_padding: bool = False) -> None:
        super().__init__(window, strides, padding, dilation, layout)
        self.count_padding = count_padding

    def forward(self, x: Tensor) -> Tensor:
        return avg_pool2d(x, self.window, strides=self.strides, padding=self.padding, dilation=self.dilation,
                          count_padding=self.count_padding, layout=self.layout)


def _check_layout(module: str, layout: str) -> None:
    if layout not in LAYOUTS:
        raise AttributeValueError(f"layout {layout!r} is none of {', '.join(LAYOUTS)}", operator=module)


def _window_options(module: Conv2d | _Pool2d) -> list[str]:
    usual = module.window if isinstance(module, _Pool2d) else (1, 1)
    return [f"{name}={value!r}" for name, value, default in (
        ("strides", module.strides, usual), ("padding", module.padding, "VALID"),
        ("dilation", module.dilation, (1, 1)), ("layout", module.layout, "NHWC")) if value != default]
