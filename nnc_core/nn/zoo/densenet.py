"""Densely connected networks (Huang et al. 2017): every layer reads what all layers before it in its block made."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.functions.adaptive import global_avg_pool
from nnc_core.functions.joining import concat
from nnc_core.nn import AvgPool2d, Conv2d, Linear, MaxPool2d, Module, ReLU, Sequential
from nnc_core.nn.initialise import he_normal
from nnc_core.nn.zoo.blocks import ConvNorm, channel_axis, norm
from nnc_core.values.tensor import Tensor

BOTTLENECK = 4
"""Channels between the two convolutions of a layer, in growths."""


def _normed_conv(inputs: int, outputs: int, size: int, layout: str) -> Sequential:
    """Normalisation and activation before the convolution."""
    return Sequential(norm(inputs, layout), ReLU(),
                 Conv2d(inputs, outputs, size, padding=size // 2, bias=False, layout=layout, init=he_normal))


class DenseLayer(Module):
    """x with `growth` more channels."""

    def __init__(self, inputs: int, growth: int, layout: str = "NHWC") -> None:
        self.body = Sequential(_normed_conv(inputs, BOTTLENECK * growth, 1, layout),
                          _normed_conv(BOTTLENECK * growth, growth, 3, layout))
        self.axis = channel_axis(layout)

    def forward(self, x: Tensor) -> Tensor:
        return concat([x, self.body(x)], axis=self.axis)


class DenseNet(Module):
    """Images (batch, height, width, channels) -> logits (batch, classes); `blocks` are numbers of layers."""

    def __init__(self, blocks: Sequence[int], classes: int = 1000, channels: int = 3, *, growth: int = 32,
                 layout: str = "NHWC") -> None:
        count = 2 * growth
        self.layers = Sequential(ConvNorm(channels, count, 7, 2, layout=layout), MaxPool2d(3, 2, 1, layout=layout))
        for i, layers in enumerate(blocks):
            if i:
                self.layers.append(_normed_conv(count, count // 2, 1, layout))
                self.layers.append(AvgPool2d(2, layout=layout))
                count //= 2
            self.layers.append(Sequential(*[DenseLayer(count + k * growth, growth, layout) for k in range(layers)]))
            count += layers * growth
        self.layers.append(norm(count, layout))
        self.layers.append(ReLU())
        self.head, self.layout = Linear(count, classes), layout

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(global_avg_pool(self.layers(x), layout=self.layout))
        return logits


def densenet121(classes: int = 1000, channels: int = 3, *, growth: int = 32, layout: str = "NHWC") -> DenseNet:
    """DenseNet-121: 6, 12, 24 and 16 layers, each of which adds `growth` channels."""
    return DenseNet((6, 12, 24, 16), classes, channels, growth=growth, layout=layout)
