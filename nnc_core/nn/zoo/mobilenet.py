"""MobileNetV2 (Sandler et al. 2018): inverted residuals with linear bottlenecks."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from nnc_core.functions.adaptive import global_avg_pool
from nnc_core.nn import Dropout, Linear, Module, ReLU6, Sequential
from nnc_core.nn.zoo.blocks import ConvNorm, scaled
from nnc_core.values.tensor import Tensor


class BottleneckStage(NamedTuple):
    """Blocks of one kind; the first has the strides."""

    expansion: int
    outputs: int
    blocks: int
    strides: int


V2 = (BottleneckStage(1, 16, 1, 1), BottleneckStage(6, 24, 2, 2), BottleneckStage(6, 32, 3, 2),
      BottleneckStage(6, 64, 4, 2), BottleneckStage(6, 96, 3, 1), BottleneckStage(6, 160, 3, 2),
      BottleneckStage(6, 320, 1, 1))  # fmt: skip


class InvertedResidual(Module):
    """1x1 to more channels, depthwise 3x3, 1x1 to few without activation; x is added where the shape stays."""

    def __init__(self, inputs: int, outputs: int, expansion: int, strides: int, layout: str = "NHWC") -> None:
        conv, inner = partial(ConvNorm, layout=layout), inputs * expansion
        self.body = Sequential()
        if expansion != 1:
            self.body.append(conv(inputs, inner, 1, activation=ReLU6))
        self.body.append(conv(inner, inner, 3, strides, groups=inner, activation=ReLU6))
        self.body.append(conv(inner, outputs, 1, activation=None))
        self.adds = strides == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.body(x)
        return x + y if self.adds else y


class MobileNetV2(Module):
    """Images (batch, height, width, channels) -> logits (batch, classes), `width` times as wide as published."""

    def __init__(self, stages: tuple[BottleneckStage, ...] = V2, classes: int = 1000, channels: int = 3, *,
                 width: float = 1.0, dropout: float = 0.2, layout: str = "NHWC") -> None:
        count, last = scaled(32, width), scaled(1280, max(1.0, width))
        self.layers = Sequential(ConvNorm(channels, count, 3, 2, activation=ReLU6, layout=layout))
        for stage in stages:
            outputs = scaled(stage.outputs, width)
            for i in range(stage.blocks):
                strides = 1 if i else stage.strides
                self.layers.append(InvertedResidual(count, outputs, stage.expansion, strides, layout))
                count = outputs
        self.layers.append(ConvNorm(count, last, 1, activation=ReLU6, layout=layout))
        self.dropout, self.head, self.layout = Dropout(dropout), Linear(last, classes), layout

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.dropout(global_avg_pool(self.layers(x), layout=self.layout)))
        return logits


def mobilenet_v2(classes: int = 1000, channels: int = 3, *, width: float = 1.0, dropout: float = 0.2,
                 layout: str = "NHWC") -> MobileNetV2:
    """MobileNetV2: seventeen blocks in seven stages."""
    return MobileNetV2(V2, classes, channels, width=width, dropout=dropout, layout=layout)
