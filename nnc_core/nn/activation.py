"""Layers without weights."""

from __future__ import annotations

from nnc_core.base.errors import AxisError
from nnc_core.dynamic.functions.elementwise import relu, sigmoid, tanh
from nnc_core.dynamic.functions.movement import reshape
from nnc_core.dynamic.functions.neural import log_softmax, softmax
from nnc_core.dynamic.tensor import Tensor
from nnc_core.nn.module import Module


class ReLU(Module):
    """max(x, 0)"""

    def forward(self, x: Tensor) -> Tensor:
        return relu(x)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        return tanh(x)


class Sigmoid(Module):
    """1 / (1 + exp(-x))"""

    def forward(self, x: Tensor) -> Tensor:
        return sigmoid(x)


class Softmax(Module):
    """exp(x) / sum(exp(x)) along an axis."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return softmax(x, axis=self.axis)

    def describe(self) -> str:
        return f"axis={self.axis}"


class LogSoftmax(Softmax):
    """log(softmax(x)) along an axis."""

    def forward(self, x: Tensor) -> Tensor:
        return log_softmax(x, axis=self.axis)


class Flatten(Module):
    """Axes from `start` on made one: (n, h, w, c) -> (n, h * w * c)."""

    def __init__(self, start: int = 1) -> None:
        self.start = start

    def forward(self, x: Tensor) -> Tensor:
        if not 0 <= self.start < x.ndim:
            raise AxisError(f"{x.spec} has no axis {self.start} to flatten from", operator=repr(self))
        return reshape(x, (*x.shape[: self.start], -1))

    def describe(self) -> str:
        return "" if self.start == 1 else f"start={self.start}"
