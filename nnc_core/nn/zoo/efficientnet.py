"""EfficientNet (Tan and Le 2019): inverted bottlenecks with depthwise convolutions and squeeze-and-excitation."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from nnc_core.functions.activation import silu
from nnc_core.functions.adaptive import global_avg_pool
from nnc_core.functions.dropouts import dropout
from nnc_core.functions.elementwise import sigmoid
from nnc_core.nn import Conv2d, Dropout, Linear, Module, Sequential, SiLU
from nnc_core.nn.zoo.blocks import ConvNorm, scaled
from nnc_core.values.tensor import Tensor


class Stage(NamedTuple):
    """Blocks of one kind; the first has the strides."""

    expansion: int
    kernel_size: int
    strides: int
    outputs: int
    blocks: int


B0 = (Stage(1, 3, 1, 16, 1), Stage(6, 3, 2, 24, 2), Stage(6, 5, 2, 40, 2), Stage(6, 3, 2, 80, 3),
      Stage(6, 5, 1, 112, 3), Stage(6, 5, 2, 192, 4), Stage(6, 3, 1, 320, 1))  # fmt: skip
DROPPED = 0.2
"""The probability that the last block's body is left out of an example; the first one's never is."""


class SqueezeExcitation(Module):
    """Channels scaled by what two 1x1 convolutions make of their means (Hu et al. 2018)."""

    def __init__(self, channels: int, squeezed: int, layout: str = "NHWC") -> None:
        self.squeeze = Conv2d(channels, squeezed, 1, layout=layout)
        self.excite = Conv2d(squeezed, channels, 1, layout=layout)
        self.layout = layout

    def forward(self, x: Tensor) -> Tensor:
        means = global_avg_pool(x, keepdims=True, layout=self.layout)
        scaled_by: Tensor = x * sigmoid(self.excite(silu(self.squeeze(means))))
        return scaled_by


class InvertedBottleneck(Module):
    """1x1 to more channels, depthwise, squeeze-and-excitation, 1x1 to few; x is added where the shape stays.

    In training the body is left out of each example with probability `dropped` (Huang et al. 2016).
    """

    def __init__(self, inputs: int, stage: Stage, strides: int, dropped: float, layout: str = "NHWC") -> None:
        conv = partial(ConvNorm, layout=layout)
        inner = inputs * stage.expansion
        self.body = Sequential()
        if stage.expansion != 1:
            self.body.append(conv(inputs, inner, 1, activation=SiLU))
        self.body.append(conv(inner, inner, stage.kernel_size, strides, groups=inner, activation=SiLU))
        self.body.append(SqueezeExcitation(inner, max(1, inputs // 4), layout))
        self.body.append(conv(inner, stage.outputs, 1, activation=None))
        self.adds = strides == 1 and inputs == stage.outputs
        self.drop = ExampleDropout(dropped)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.body(x)
        return x + self.drop(y) if self.adds else y


class ExampleDropout(Dropout):
    """Dropout of whole examples."""

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.rate, shared=tuple(range(1, x.ndim)), training=self.training, generator=self.generator)


class EfficientNet(Module):
    """Images (batch, height, width, channels) -> logits (batch, classes), `width` times as wide as B0."""

    def __init__(self, stages: tuple[Stage, ...], classes: int = 1000, channels: int = 3, *, width: float = 1.0,
                 dropout: float = 0.2, layout: str = "NHWC") -> None:
        count, last = scaled(32, width), scaled(1280, width)
        self.layers = Sequential(ConvNorm(channels, count, 3, 2, activation=SiLU, layout=layout))
        number, total = 0, sum(stage.blocks for stage in stages)
        for stage in stages:
            stage = stage._replace(outputs=scaled(stage.outputs, width))
            for i in range(stage.blocks):
                strides = 1 if i else stage.strides
                self.layers.append(InvertedBottleneck(count, stage, strides, DROPPED * number / total, layout))
                count, number = stage.outputs, number + 1
        self.layers.append(ConvNorm(count, last, 1, activation=SiLU, layout=layout))
        self.dropout, self.head, self.layout = Dropout(dropout), Linear(last, classes), layout

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.dropout(global_avg_pool(self.layers(x), layout=self.layout)))
        return logits


def efficientnet_b0(classes: int = 1000, channels: int = 3, *, width: float = 1.0, dropout: float = 0.2,
                    layout: str = "NHWC") -> EfficientNet:
    """EfficientNet-B0: sixteen blocks in seven stages."""
    return EfficientNet(B0, classes, channels, width=width, dropout=dropout, layout=layout)
