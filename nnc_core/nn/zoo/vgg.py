"""VGG (Simonyan and Zisserman 2015): 3x3 convolutions, halved five times, three dense layers."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.nn import Conv2d, Dropout, Flatten, Linear, MaxPool2d, Module, ReLU, Sequential
from nnc_core.nn.initialise import he_normal

CONVOLUTIONS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
"""The number of layers at each size of the image, by the depth of the network."""
MULTIPLES = (1, 2, 4, 8, 8)
"""Channels at each size, in widths."""


def vgg(convolutions: Sequence[int], classes: int = 1000, channels: int = 3, *, width: int = 64, hidden: int = 4096,
        image: int = 224, dropout: float = 0.5, layout: str = "NHWC") -> Sequential:
    """Images (batch, image, image, channels) -> logits (batch, classes); `convolutions` at each of five sizes."""
    layers: list[Module] = []
    for count, multiple in zip(convolutions, MULTIPLES, strict=True):
        for _ in range(count):
            layers += [Conv2d(channels, multiple * width, 3, padding=1, layout=layout, init=he_normal), ReLU()]
            channels = multiple * width
        layers.append(MaxPool2d(2, layout=layout))
    side = image // 2 ** len(convolutions)
    return Sequential(
        *layers, Flatten(),
        Linear(side * side * channels, hidden, init=he_normal), ReLU(), Dropout(dropout),
        Linear(hidden, hidden, init=he_normal), ReLU(), Dropout(dropout), Linear(hidden, classes),
    )  # fmt: skip


def vgg16(classes: int = 1000, channels: int = 3, *, width: int = 64, hidden: int = 4096, image: int = 224,
          dropout: float = 0.5, layout: str = "NHWC") -> Sequential:
    """Thirteen convolutions and three dense layers: configuration D of the paper."""
    return vgg(CONVOLUTIONS[16], classes, channels, width=width, hidden=hidden, image=image, dropout=dropout,
               layout=layout)
