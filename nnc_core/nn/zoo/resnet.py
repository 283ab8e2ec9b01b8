"""Residual networks (He et al. 2016), with the stride of a bottleneck in its 3x3 convolution."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.functions.adaptive import global_avg_pool
from nnc_core.functions.elementwise import relu
from nnc_core.nn import Linear, MaxPool2d, Module, Sequential
from nnc_core.nn.zoo.blocks import ConvNorm
from nnc_core.values.tensor import Tensor

DEPTHS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
"""Blocks of each of the four stages, by the number of layers with weights."""


class Residual(Module):
    """relu(body(x) + shortcut(x)); the shortcut is x itself where nothing changes its shape."""

    def __init__(self, body: Module, shortcut: Module | None) -> None:
        self.body, self.shortcut = body, shortcut

    def forward(self, x: Tensor) -> Tensor:
        return relu(self.body(x) + (x if self.shortcut is None else self.shortcut(x)))


def _shortcut(inputs: int, outputs: int, strides: int, layout: str) -> Module | None:
    if inputs == outputs and strides == 1:
        return None
    return ConvNorm(inputs, outputs, 1, strides, activation=None, layout=layout)


class Basic(Residual):
    """Two 3x3 convolutions."""

    expansion = 1

    def __init__(self, inputs: int, width: int, strides: int = 1, layout: str = "NHWC") -> None:
        body = Sequential(ConvNorm(inputs, width, 3, strides, layout=layout),
                          ConvNorm(width, width, 3, activation=None, layout=layout))
        super().__init__(body, _shortcut(inputs, width, strides, layout))


class Bottleneck(Residual):
    """1x1 to fewer channels, 3x3, 1x1 to four times as many."""

    expansion = 4

    def __init__(self, inputs: int, width: int, strides: int = 1, layout: str = "NHWC") -> None:
        body = Sequential(ConvNorm(inputs, width, 1, layout=layout), ConvNorm(width, width, 3, strides, layout=layout),
                          ConvNorm(width, 4 * width, 1, activation=None, layout=layout))
        super().__init__(body, _shortcut(inputs, 4 * width, strides, layout))


class ResNet(Module):
    """Images (batch, height, width, channels) -> logits (batch, classes).

    `stem` and the four `stages` give feature maps at 1/4, 1/4, 1/8, 1/16 and 1/32 of the size.
    """

    def __init__(self, block: type[Basic] | type[Bottleneck], blocks: Sequence[int], classes: int = 1000,
                 channels: int = 3, *, width: int = 64, layout: str = "NHWC") -> None:
        self.stem = Sequential(ConvNorm(channels, width, 7, 2, layout=layout), MaxPool2d(3, 2, 1, layout=layout))
        self.widths = tuple([block.expansion * width * 2**stage for stage in range(len(blocks))])
        inputs, stages = width, []
        for stage, count in enumerate(blocks):
            made = []
            for i in range(count):
                made.append(block(inputs, width * 2**stage, 2 if stage and not i else 1, layout))
                inputs = self.widths[stage]
            stages.append(Sequential(*made))
        self.stages, self.layout = tuple(stages), layout
        self.head = Linear(inputs, classes)

    def features(self, x: Tensor) -> tuple[Tensor, ...]:
        """The feature maps of the stages."""
        found, x = [], self.stem(x)
        for stage in self.stages:
            x = stage(x)
            found.append(x)
        return tuple(found)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(global_avg_pool(self.features(x)[-1], layout=self.layout))
        return logits


def _resnet(depth: int, block: type[Basic] | type[Bottleneck], classes: int, channels: int, width: int,
            layout: str) -> ResNet:
    return ResNet(block, DEPTHS[depth], classes, channels, width=width, layout=layout)


def resnet18(classes: int = 1000, channels: int = 3, *, width: int = 64, layout: str = "NHWC") -> ResNet:
    """ResNet-18: basic blocks."""
    return _resnet(18, Basic, classes, channels, width, layout)


def resnet34(classes: int = 1000, channels: int = 3, *, width: int = 64, layout: str = "NHWC") -> ResNet:
    """ResNet-34: basic blocks."""
    return _resnet(34, Basic, classes, channels, width, layout)


def resnet50(classes: int = 1000, channels: int = 3, *, width: int = 64, layout: str = "NHWC") -> ResNet:
    """ResNet-50: bottlenecks."""
    return _resnet(50, Bottleneck, classes, channels, width, layout)


def resnet101(classes: int = 1000, channels: int = 3, *, width: int = 64, layout: str = "NHWC") -> ResNet:
    """ResNet-101: bottlenecks."""
    return _resnet(101, Bottleneck, classes, channels, width, layout)


def resnet152(classes: int = 1000, channels: int = 3, *, width: int = 64, layout: str = "NHWC") -> ResNet:
    """ResNet-152: bottlenecks."""
    return _resnet(152, Bottleneck, classes, channels, width, layout)
