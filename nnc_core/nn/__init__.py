"""Floor 10: networks as modules with named weights, and gradients by them."""

from __future__ import annotations

from nnc_core.nn.activation import Flatten, LogSoftmax, ReLU, Sigmoid, Softmax, Tanh
from nnc_core.nn.container import Lambda, Sequential
from nnc_core.nn.dropout import Dropout
from nnc_core.nn.gradient import value_and_grad
from nnc_core.nn.linear import Embedding, Linear
from nnc_core.nn.module import Module
from nnc_core.nn.parameter import Parameter
from nnc_core.nn.recurrent import LSTMCell
from nnc_core.nn.window import AvgPool2d, Conv2d, MaxPool2d

__all__ = [
    "AvgPool2d",
    "Conv2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "LSTMCell",
    "Lambda",
    "Linear",
    "LogSoftmax",
    "MaxPool2d",
    "Module",
    "Parameter",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "value_and_grad",
]
