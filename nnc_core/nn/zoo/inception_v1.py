"""GoogLeNet (Szegedy et al. 2015) with batch normalisation: convolutions of several sizes side by side."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, NamedTuple

from nnc_core.functions.adaptive import adaptive_avg_pool, global_avg_pool
from nnc_core.nn import Dropout, Flatten, Linear, MaxPool2d, Module, ReLU, Sequential
from nnc_core.nn.zoo.auxiliary import AuxiliaryNetwork
from nnc_core.nn.zoo.blocks import ConvNorm, SideBySide, scaled
from nnc_core.values.tensor import Tensor

EPSILON = 1e-3


class Branches(NamedTuple):
    """Channels of an inception block: 1x1; before and of the first 3x3; before and of the second; after the pool."""

    single: int
    before_first: int
    first: int
    before_second: int
    second: int
    pool: int


STAGES = (
    (Branches(64, 96, 128, 16, 32, 32), Branches(128, 128, 192, 32, 96, 64)),
    (Branches(192, 96, 208, 16, 48, 64), Branches(160, 112, 224, 24, 64, 64), Branches(128, 128, 256, 24, 64, 64),
     Branches(112, 144, 288, 32, 64, 64), Branches(256, 160, 320, 32, 128, 128)),
    (Branches(256, 160, 320, 32, 128, 128), Branches(384, 192, 384, 48, 128, 128)),
)  # fmt: skip
AUXILIARY_AFTER = (0, 3)
"""Blocks of the second stage whose results the auxiliary classifiers read."""


class Inception(SideBySide):
    """Four branches.  That which the paper has with 5x5 windows has 3x3 ones, as in the weights in use today."""

    def __init__(self, inputs: int, widths: Branches, layout: str = "NHWC") -> None:
        conv = partial(ConvNorm, epsilon=EPSILON, layout=layout)
        super().__init__(
            conv(inputs, widths.single, 1),
            Sequential(conv(inputs, widths.before_first, 1), conv(widths.before_first, widths.first, 3)),
            Sequential(conv(inputs, widths.before_second, 1), conv(widths.before_second, widths.second, 3)),
            Sequential(MaxPool2d(3, 1, 1, layout=layout), conv(inputs, widths.pool, 1)), layout=layout)
        self.outputs = widths.single + widths.first + widths.second + widths.pool


class Auxiliary(Module):
    """Means of 4x4 windows, a 1x1 convolution, two dense layers."""

    def __init__(self, inputs: int, classes: int, width: float, layout: str) -> None:
        channels, hidden = scaled(128, width), scaled(1024, width)
        self.conv = ConvNorm(inputs, channels, 1, epsilon=EPSILON, layout=layout)
        self.head = Sequential(Flatten(), Linear(16 * channels, hidden), ReLU(), Dropout(0.7), Linear(hidden, classes))
        self.layout = layout

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.conv(adaptive_avg_pool(x, 4, layout=self.layout)))
        return logits


class GoogLeNet(AuxiliaryNetwork):
    """Images (batch, height, width, channels) -> logits (batch, classes), `width` times as wide as published.

    `auxiliary` adds two classifiers for training, at a weight of 0.3 each.
    """

    auxiliary_weight: ClassVar[float] = 0.3

    def __init__(self, classes: int = 1000, channels: int = 3, *, width: float = 1.0, auxiliary: bool = False,
                 dropout: float = 0.2, layout: str = "NHWC") -> None:
        conv = partial(ConvNorm, epsilon=EPSILON, layout=layout)
        pool = partial(MaxPool2d, padding="SAME", layout=layout)
        few, count = scaled(64, width), scaled(192, width)
        self.stem = Sequential(conv(channels, few, 7, 2), pool(3, 2), conv(few, few, 1), conv(few, count, 3),
                               pool(3, 2))
        stages, heads = [], []
        for stage, blocks in enumerate(STAGES):
            made = []
            for i, widths in enumerate(blocks):
                made.append(Inception(count, Branches(*[scaled(n, width) for n in widths]), layout))
                count = made[-1].outputs
                if auxiliary and stage == 1 and i in AUXILIARY_AFTER:
                    heads.append(Auxiliary(count, classes, width, layout))
            stages.append(tuple(made))
        self.stages, self.pools, self.heads = tuple(stages), (pool(3, 2), pool(2, 2)), tuple(heads)
        self.dropout, self.head, self.layout = Dropout(dropout), Linear(count, classes), layout

    def all_logits(self, x: Tensor) -> tuple[Tensor, ...]:
        x, read = self.stem(x), []
        for stage, blocks in enumerate(self.stages):
            x = self.pools[stage - 1](x) if stage else x
            for i, block in enumerate(blocks):
                x = block(x)
                if stage == 1 and i in AUXILIARY_AFTER:
                    read.append(x)
        logits = self.head(self.dropout(global_avg_pool(x, layout=self.layout)))
        return (logits, *[head(y) for head, y in zip(self.heads, read, strict=False)])


def googlenet(classes: int = 1000, channels: int = 3, *, width: float = 1.0, auxiliary: bool = False,
              dropout: float = 0.2, layout: str = "NHWC") -> GoogLeNet:
    """GoogLeNet: nine inception blocks."""
    return GoogLeNet(classes, channels, width=width, auxiliary=auxiliary, dropout=dropout, layout=layout)
