"""Convolution and transposed convolution of sequences, images and volumes."""

from __future__ import annotations

from math import prod
from typing import Any

from nnc_core.base.errors import AttributeValueError
from nnc_core.functions.creation import zeros
from nnc_core.functions.window import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from nnc_core.nn.initialise import Initialiser, generator_or_default, glorot_uniform
from nnc_core.nn.layers.checks import Int, at_least_one
from nnc_core.nn.layers.settings import settings
from nnc_core.nn.layers.windowed import LAYOUTS, Windowed
from nnc_core.nn.parameter import Parameter
from nnc_core.random.generator import Generator
from nnc_core.values.tensor import Tensor

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _Convolution(Windowed):
    """Kernel, bias and settings of convolutions and of their transposes."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Int, strides: Int = 1, padding: Any = "VALID",
                 dilation: Int = 1, groups: int = 1, bias: bool = True, layout: str | None = None, *,
                 init: Initialiser = glorot_uniform, generator: Generator | None = None, dtype: Any = None) -> None:
        kind = type(self).__name__
        at_least_one(kind, in_channels=in_channels, out_channels=out_channels, groups=groups)
        self._set_layout(layout)
        if in_channels % groups or out_channels % groups:
            raise AttributeValueError(f"{in_channels} and {out_channels} channels do not divide into {groups} groups",
                                      operator=kind)
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = self._per_axis("kernel_size", kernel_size)
        self.strides, self.dilation = self._per_axis("strides", strides), self._per_axis("dilation", dilation)
        self.padding = self._checked_padding(padding)
        area = prod(self.kernel_size)
        self.kernel = Parameter(init(generator_or_default(generator), self._kernel_shape(),
                                     area * in_channels // groups, area * out_channels // groups, dtype))
        self.bias = Parameter(zeros(out_channels, dtype=dtype)) if bias else None

    def _kernel_shape(self) -> tuple[int, ...]:
        return self._arranged(self.in_channels // self.groups, self.out_channels)

    def _arranged(self, taken: int, given: int) -> tuple[int, ...]:
        """The shape of a kernel from these channels to those."""
        return (*self.kernel_size, taken, given) if self.channels_last else (given, taken, *self.kernel_size)

    def _biased(self, y: Tensor) -> Tensor:
        if self.bias is None:
            return y
        bias = self.bias.read()
        shifted: Tensor = y + (bias if self.channels_last else bias.reshape(self.out_channels, *(1,) * self.rank))
        return shifted

    def describe(self) -> str:
        return settings(self, "in_channels", "out_channels", "kernel_size", "strides", "padding", "dilation", "groups",
                        "bias", "layout", usual={"layout": LAYOUTS[self.rank][0]})


class _Conv(_Convolution):
    def forward(self, x: Tensor) -> Tensor:
        """(batch, *sizes, in_channels) -> (batch, *other sizes, out_channels), or with channels before sizes."""
        self._check(x, self.in_channels)
        convolution = (conv1d, conv2d, conv3d)[self.rank - 1]
        return self._biased(convolution(x, self.kernel.read(), strides=self.strides, padding=self.padding,
                                        dilation=self.dilation, groups=self.groups, layout=self.layout))


class Conv1d(_Conv):
    """Cross-correlation of sequences (NWC or NCW) plus a bias for each output channel; see `Conv2d`.

    kernel (width, in_channels / groups, out_channels) for NWC, (out, in / groups, width) for NCW.
    """

    rank = 1


class Conv2d(_Conv):
    """Cross-correlation of images (NHWC or NCHW) plus a bias for each output channel.

    kernel (height, width, in_channels / groups, out_channels) for NHWC, (out, in / groups, height, width) for NCHW,
    by default Glorot's uniform (Owl's Tanh); bias (out_channels,), zero at first.  Numbers stand for all spatial
    dimensions or are one for each; `padding` is "SAME", "VALID", a number or ((top, bottom), (left, right)).  With
    `groups` equal to in_channels it is depthwise; `dilation` spreads the kernel.  ShapeError for other channels.
    """

    rank = 2


class Conv3d(_Conv):
    """Cross-correlation of volumes (NDHWC or NCDHW) plus a bias for each output channel; see `Conv2d`.

    kernel (depth, height, width, in_channels / groups, out_channels) for NDHWC, (out, in / groups, depth, height,
    width) for NCDHW.
    """

    rank = 3


class _ConvTranspose(_Convolution):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: Int, strides: Int = 1, padding: Any = "VALID",
                 output_padding: Int = 0, dilation: Int = 1, groups: int = 1, bias: bool = True,
                 layout: str | None = None, *, init: Initialiser = glorot_uniform,
                 generator: Generator | None = None, dtype: Any = None) -> None:
        self.output_padding = self._per_axis("output_padding", output_padding, least=0)
        super().__init__(in_channels, out_channels, kernel_size, strides, padding, dilation, groups, bias, layout,
                         init=init, generator=generator, dtype=dtype)
        for more, stride, spread in zip(self.output_padding, self.strides, self.dilation, strict=True):
            if more >= max(stride, spread):
                raise AttributeValueError(f"output_padding {more} should be less than {max(stride, spread)}, the "
                                          "larger of stride and dilation", operator=type(self).__name__)

    def _kernel_shape(self) -> tuple[int, ...]:
        return self._arranged(self.out_channels // self.groups, self.in_channels)

    def forward(self, x: Tensor, size: Int | None = None) -> Tensor:
        """(batch, *sizes, in_channels) -> (batch, *larger sizes, out_channels), or with channels before sizes.

        `size` asks for one of the spatial sizes that the convolution takes to that of x, in place of output_padding.
        """
        self._check(x, self.in_channels)
        transposed = (conv_transpose1d, conv_transpose2d, conv_transpose3d)[self.rank - 1]
        return self._biased(transposed(
            x, self.kernel.read(), strides=self.strides, padding=self.padding, dilation=self.dilation,
            output_padding=0 if size is not None else self.output_padding, groups=self.groups, size=size,
            layout=self.layout))

    def describe(self) -> str:
        return settings(self, "in_channels", "out_channels", "kernel_size", "strides", "padding", "output_padding",
                        "dilation", "groups", "bias", "layout", usual={"layout": LAYOUTS[self.rank][0]})


class ConvTranspose1d(_ConvTranspose):
    """The transpose of `Conv1d` in its input; see `ConvTranspose2d`.

    kernel (width, out_channels / groups, in_channels) for NWC, (in, out / groups, width) for NCW.
    """

    rank = 1


class ConvTranspose2d(_ConvTranspose):
    """The transpose of `Conv2d` in its input: every element adds its multiple of the kernel to the result.

    kernel (height, width, out_channels / groups, in_channels) for NHWC, (in, out / groups, height, width) for NCHW (as
    PyTorch has it); bias (out_channels,).  The result has (n - 1) * stride + (window - 1) * dilation + 1 - padding +
    output_padding elements along each axis, or n * stride with padding "SAME".
    """

    rank = 2


class ConvTranspose3d(_ConvTranspose):
    """The transpose of `Conv3d` in its input; see `ConvTranspose2d`.

    kernel (depth, height, width, out_channels / groups, in_channels) for NDHWC, (in, out / groups, depth, height,
    width) for NCDHW.
    """

    rank = 3
