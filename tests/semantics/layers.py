"""Every layer of `nn` with arguments for a call, and views that may stand before a layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import nnc_core as nnc
from nnc_core import nn
from tests.semantics.along_time import TIME
from tests.semantics.feedforward import FEEDFORWARD
from tests.semantics.networks import RunningNorm, UnrolledLSTM, generator
from tests.support import numbers


class Layer(NamedTuple):
    """How to make a layer, and what it is called with."""

    make: Callable[[], nn.Module]
    args: tuple[Any, ...]


IMAGES = numbers(2, 6, 7, 4)
FIRST = numbers(2, 4, 6, 7)  # channels first
ROWS, STATE = numbers(5, 3), numbers(5, 4)

LAYERS: dict[str, Layer] = {
    "AvgPool2d": Layer(lambda: nn.AvgPool2d(2, padding="SAME"), (IMAGES,)),
    "AvgPool2d, padding counts": Layer(lambda: nn.AvgPool2d(3, 2, padding=1, count_padding=True), (IMAGES,)),
    "Conv2d": Layer(lambda: nn.Conv2d(4, 6, 3, padding="SAME", generator=generator(1)), (IMAGES,)),
    "Conv2d, NCHW, groups, strides": Layer(
        lambda: nn.Conv2d(4, 6, 3, strides=2, groups=2, layout="NCHW", generator=generator(1)), (FIRST,)),
    "Conv2d, dilation, no bias": Layer(
        lambda: nn.Conv2d(4, 2, 2, dilation=2, padding=1, bias=False, generator=generator(1)), (IMAGES,)),
    "Dropout": Layer(lambda: nn.Dropout(0.4, generator(2)), (ROWS,)),
    "Embedding": Layer(lambda: nn.Embedding(5, 3, generator=generator(3)), (np.array([[0, 4, 4], [2, 0, 1]]),)),
    "Flatten": Layer(nn.Flatten, (IMAGES,)),
    "LSTMCell": Layer(lambda: nn.LSTMCell(3, 4, generator=generator(4)), (ROWS, (STATE, STATE * 2))),
    "LSTMCell, unrolled": Layer(UnrolledLSTM, (numbers(4, 2, 3),)),
    "Lambda": Layer(lambda: nn.Lambda(lambda x: nnc.exp(x) - 1), (ROWS,)),
    "Linear": Layer(lambda: nn.Linear(3, 4, generator=generator(5)), (ROWS,)),
    "Linear, no bias, more axes": Layer(lambda: nn.Linear(4, 3, bias=False, generator=generator(5)), (IMAGES,)),
    "LogSoftmax": Layer(nn.LogSoftmax, (ROWS,)),
    "MaxPool2d": Layer(lambda: nn.MaxPool2d(2), (IMAGES,)),
    "MaxPool2d, NCHW, overlapping": Layer(lambda: nn.MaxPool2d(3, 1, padding="SAME", layout="NCHW"), (FIRST,)),
    "PalettisedWeight, of a linear layer": Layer(
        lambda: nn.palettise(nn.Linear(3, 4, generator=generator(5)), 4, only="weight"), (ROWS,)),
    "ReLU": Layer(nn.ReLU, (ROWS,)),
    "Sequential": Layer(lambda: nn.Sequential(nn.Linear(3, 4, generator=generator(6)), nn.Sigmoid(), lambda x: x * 2),
                        (ROWS,)),
    "Sigmoid": Layer(nn.Sigmoid, (ROWS,)),
    "Softmax": Layer(lambda: nn.Softmax(0), (ROWS,)),
    "Tanh": Layer(nn.Tanh, (ROWS,)),
    "running statistics": Layer(lambda: RunningNorm(3), (ROWS,)),
}  # fmt: skip


LAYERS |= {name: Layer(*row) for name, row in (FEEDFORWARD | TIME).items()}


def reshaped(x: nnc.Tensor) -> nnc.Tensor:
    """(2 n, h / 2, w, c)"""
    n, h, w, c = (int(d) for d in x.shape)
    return nnc.reshape(x, (2 * n, h // 2, w, c))


def sliced(x: nnc.Tensor) -> nnc.Tensor:
    """Rows but the outer ones, columns but the first."""
    return x[:, 1:-1, 1:]


VIEWS: dict[str, tuple[Callable[[nnc.Tensor], nnc.Tensor], ...]] = {
    "reshape": (reshaped,),
    "slice": (sliced,),
    "reshape, slice": (reshaped, sliced),
    "slice, reshape": (sliced, reshaped),
}  # fmt: skip

KEEPING: dict[str, Callable[[], nn.Module]] = {
    "activation": nn.Tanh,
    "average pool": lambda: nn.AvgPool2d(2, 1, padding="SAME"),
    "convolution": lambda: nn.Conv2d(4, 4, 3, padding="SAME", generator=generator(1)),
    "dense": lambda: nn.Linear(4, 4, generator=generator(2)),
    "dropout": lambda: nn.Dropout(0.4, generator(3)),
    "max pool": lambda: nn.MaxPool2d(2, 1, padding="SAME"),
    "relu": nn.ReLU,
    "running statistics": lambda: RunningNorm(4),
}  # fmt: skip
"""Layers of images (n, h, w, 4) that keep their shape."""
