"""InceptionV3 (Szegedy et al. 2016): large windows in factors, side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple, TypeAlias

from nnc_core.functions.adaptive import global_avg_pool
from nnc_core.nn import AvgPool2d, Dropout, Linear, MaxPool2d, Module, Sequential
from nnc_core.nn.zoo.auxiliary import AuxiliaryNetwork
from nnc_core.nn.zoo.blocks import ConvNorm, Pair, SideBySide, scaled
from nnc_core.values.tensor import Tensor

EPSILON = 1e-3
FLAT, TALL = (1, 7), (7, 1)
Conv: TypeAlias = "tuple[int, Pair] | tuple[int, Pair, int]"
"""Channels and window; with strides as a third number, which may be 1, there is no padding."""


class Branch(NamedTuple):
    """A module and how many channels it gives."""

    module: Module
    outputs: int


class Builder:
    """Makes modules of one width and layout on images of `count` channels."""

    def __init__(self, count: int, width: float, layout: str) -> None:
        self.count, self.width, self.layout = count, width, layout

    def chain(self, *convs: Conv) -> Branch:
        """Convolutions one after another."""
        made, count = Sequential(), self.count
        for channels, window, *given in convs:
            outputs, (strides, padding) = scaled(channels, self.width), (given[0], 0) if given else (1, None)
            made.append(ConvNorm(count, outputs, window, strides, padding, epsilon=EPSILON, layout=self.layout))
            count = outputs
        return Branch(made, count)

    def averaged(self, channels: int) -> Branch:
        """Means of 3x3 windows, then a 1x1 convolution."""
        conv = self.chain((channels, 1))
        return Branch(Sequential(AvgPool2d(3, 1, 1, layout=self.layout), conv.module), conv.outputs)

    def halved(self) -> Branch:
        """Maxima of 3x3 windows."""
        return Branch(MaxPool2d(3, 2, layout=self.layout), self.count)

    def crossed(self, *before: Conv) -> Branch:
        """Convolutions, then 1x3 and 3x1 ones side by side on what they give."""
        first = self.chain(*before)
        after = Builder(first.outputs, self.width, self.layout)
        cross = after.together(after.chain((384, (1, 3))), after.chain((384, (3, 1))))
        return Branch(Sequential(first.module, cross.module), cross.outputs)

    def together(self, *branches: Branch) -> Branch:
        """Branches side by side."""
        side = SideBySide(*[branch.module for branch in branches], layout=self.layout)
        return Branch(side, sum(branch.outputs for branch in branches))


def _small(b: Builder, averaged: int) -> Branch:
    return b.together(b.chain((64, 1)), b.chain((48, 1), (64, 5)), b.chain((64, 1), (96, 3), (96, 3)),
                      b.averaged(averaged))


def _first_halving(b: Builder) -> Branch:
    return b.together(b.chain((384, 3, 2)), b.chain((64, 1), (96, 3), (96, 3, 2)), b.halved())


def _factored(b: Builder, inner: int) -> Branch:
    return b.together(
        b.chain((192, 1)), b.chain((inner, 1), (inner, FLAT), (192, TALL)),
        b.chain((inner, 1), (inner, TALL), (inner, FLAT), (inner, TALL), (192, FLAT)), b.averaged(192))


def _second_halving(b: Builder) -> Branch:
    return b.together(b.chain((192, 1), (320, 3, 2)), b.chain((192, 1), (192, FLAT), (192, TALL), (192, 3, 2)),
                      b.halved())


def _wide(b: Builder) -> Branch:
    return b.together(b.chain((320, 1)), b.crossed((384, 1)), b.crossed((448, 1), (384, 3)), b.averaged(192))


STEM: tuple[Callable[[Builder], Branch], ...] = (
    lambda b: b.chain((32, 3, 2), (32, 3, 1), (64, 3)), Builder.halved,
    lambda b: b.chain((80, 1), (192, 3, 1)), Builder.halved,
)  # fmt: skip
MIDDLE: tuple[Callable[[Builder], Branch], ...] = (
    lambda b: _small(b, 32), lambda b: _small(b, 64), lambda b: _small(b, 64), _first_halving,
    lambda b: _factored(b, 128), lambda b: _factored(b, 160), lambda b: _factored(b, 160),
    lambda b: _factored(b, 192),
)  # fmt: skip
LAST: tuple[Callable[[Builder], Branch], ...] = (_second_halving, _wide, _wide)


class Auxiliary(Module):
    """Means of 5x5 windows, a 1x1 and a 5x5 convolution, a dense layer."""

    def __init__(self, b: Builder, classes: int) -> None:
        conv = b.chain((128, 1), (768, 5, 1))
        self.layers = Sequential(AvgPool2d(5, 3, layout=b.layout), conv.module)
        self.head, self.layout = Linear(conv.outputs, classes), b.layout

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(global_avg_pool(self.layers(x), layout=self.layout))
        return logits


class InceptionV3(AuxiliaryNetwork):
    """Images (batch, height, width, channels), published for 299x299 -> logits (batch, classes), `width` times as wide
    as published.

    `auxiliary` adds a classifier for training, at a weight of 0.4; images are 299x299 or larger then.
    """

    auxiliary_weight: ClassVar[float] = 0.4

    def __init__(self, classes: int = 1000, channels: int = 3, *, width: float = 1.0, auxiliary: bool = False,
                 dropout: float = 0.5, layout: str = "NHWC") -> None:
        b = Builder(channels, width, layout)
        self.middle = _grown(b, STEM + MIDDLE)
        self.auxiliary = Auxiliary(b, classes) if auxiliary else None
        self.last = _grown(b, LAST)
        self.dropout, self.head, self.layout = Dropout(dropout), Linear(b.count, classes), layout

    def all_logits(self, x: Tensor) -> tuple[Tensor, ...]:
        x = self.middle(x)
        logits = self.head(self.dropout(global_avg_pool(self.last(x), layout=self.layout)))
        return (logits,) if self.auxiliary is None else (logits, self.auxiliary(x))


def _grown(b: Builder, makers: tuple[Callable[[Builder], Branch], ...]) -> Sequential:
    """Blocks one after another; the builder goes on with the channels of the last."""
    made = Sequential()
    for make in makers:
        block, b.count = make(b)
        made.append(block)
    return made


def inception_v3(classes: int = 1000, channels: int = 3, *, width: float = 1.0, auxiliary: bool = False,
                 dropout: float = 0.5, layout: str = "NHWC") -> InceptionV3:
    """InceptionV3: eleven blocks of five kinds."""
    return InceptionV3(classes, channels, width=width, auxiliary=auxiliary, dropout=dropout, layout=layout)
