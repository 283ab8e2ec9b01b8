"""Layers of arithmetic with one input: by numbers, and over axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from nnc_core.base.errors import AttributeValueError
from nnc_core.functions import reduction
from nnc_core.functions.elementwise import clip, multiply, sqrt
from nnc_core.functions.linalg_norms import vector_norm
from nnc_core.nn.layers.settings import settings
from nnc_core.nn.module import Module
from nnc_core.values.tensor import Tensor

__all__ = [
    "ArgMax", "ArgMin", "Clamp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceNorm", "ReduceSum", "Scale", "Sqrt",
]  # fmt: skip


# ---- element by element
class Scale(Module):
    """factor * x, with a number that is not trained."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as x."""
        return multiply(x, self.factor)

    def describe(self) -> str:
        return settings(self, "factor")


class Sqrt(Module):
    """The square root."""

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as x."""
        return sqrt(x)


class Clamp(Module):
    """x brought into [low, high]; None is no limit."""

    def __init__(self, low: float | None = None, high: float | None = None) -> None:
        if low is not None and high is not None and not low <= high:
            raise AttributeValueError(f"from {low} to {high}, expected low <= high", operator="Clamp")
        self.low, self.high = low, high

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as x."""
        return clip(x, self.low, self.high)

    def describe(self) -> str:
        return settings(self, "low", "high")


# ---- over axes
class _Reduction(Module):
    """A function over axes: one, several, or all for None."""

    function: ClassVar[Callable[..., Tensor]]

    def __init__(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> None:
        self.axis = axis if axis is None or isinstance(axis, int) else tuple(axis)
        self.keepdims = keepdims

    def forward(self, x: Tensor) -> Tensor:
        """x without these axes, or with length 1 there if `keepdims`."""
        return type(self).function(x, axis=self.axis, keepdims=self.keepdims)

    def describe(self) -> str:
        return settings(self, "axis", "keepdims")


class ReduceSum(_Reduction):
    """The sum over axes, all of them for None."""

    function = staticmethod(reduction.sum)


class ReduceMean(_Reduction):
    """The mean over axes, all of them for None."""

    function = staticmethod(reduction.mean)


class ReduceMax(_Reduction):
    """The maximum over axes, all of them for None; NaN wins."""

    function = staticmethod(reduction.max)


class ReduceMin(_Reduction):
    """The minimum over axes, all of them for None; NaN wins."""

    function = staticmethod(reduction.min)


class ReduceNorm(_Reduction):
    """The square root of the sum of squares over axes, all of them for None."""

    function = staticmethod(vector_norm)


class _Position(_Reduction):
    def __init__(self, axis: int | None = None, keepdims: bool = False) -> None:
        super().__init__(axis, keepdims)


class ArgMax(_Position):
    """int64 places of the first maximum along an axis, in the flattened x for None."""

    function = staticmethod(reduction.argmax)


class ArgMin(_Position):
    """int64 places of the first minimum along an axis, in the flattened x for None."""

    function = staticmethod(reduction.argmin)
