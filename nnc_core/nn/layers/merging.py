"""Layers of several inputs, which become one."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import ClassVar

from nnc_core.base.errors import OperandError, ShapeError
from nnc_core.functions.elementwise import add, divide, maximum, minimum, multiply, subtract
from nnc_core.functions.joining import concat, stack
from nnc_core.functions.linear import matmul
from nnc_core.functions.movement import matrix_transpose, reshape
from nnc_core.nn.layers.checks import misfit, title
from nnc_core.nn.layers.settings import settings
from nnc_core.nn.module import Module
from nnc_core.symbol import show_line, user_line
from nnc_core.values.tensor import Tensor

__all__ = [
    "Add", "Average", "ComplexMultiply", "Concatenate", "Divide", "Dot", "MatMul", "Maximum", "Minimum", "Multiply",
    "Stack", "Subtract",
]  # fmt: skip


def _check_some(module: Module, count: int) -> None:
    if count == 0:
        raise OperandError("no inputs, expected one or more", operator=title(module), line=show_line(user_line()))


# ---- element by element
class _Elementwise(Module):
    """One function of two inputs, from left to right; shapes are broadcast."""

    function: ClassVar[Callable[..., Tensor]]

    def forward(self, *xs: Tensor) -> Tensor:
        """One input or more -> their common shape."""
        _check_some(self, len(xs))
        return reduce(type(self).function, xs)


class Add(_Elementwise):
    """The sum of all inputs."""

    function = staticmethod(add)


class Multiply(_Elementwise):
    """The product of all inputs."""

    function = staticmethod(multiply)


class Maximum(_Elementwise):
    """The largest of all inputs; NaN wins."""

    function = staticmethod(maximum)


class Minimum(_Elementwise):
    """The smallest of all inputs; NaN wins."""

    function = staticmethod(minimum)


class Average(Add):
    """The mean of all inputs."""

    def forward(self, *xs: Tensor) -> Tensor:
        """One input or more -> their common shape."""
        return divide(super().forward(*xs), float(len(xs)))


class Subtract(Module):
    """The first input minus the second."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Two inputs -> their common shape."""
        return subtract(x, y)


class Divide(Module):
    """The first input divided by the second."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Two inputs -> their common shape."""
        return divide(x, y)


class ComplexMultiply(Module):
    """The product of two inputs whose last axes hold complex numbers as (real, imaginary) one after another.

    Tensors of complex dtype are multiplied by `Multiply`.
    """

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Two inputs with an even last axis -> their common shape."""
        (a, b), (c, d) = self._parts(x), self._parts(y)
        pairs = stack([a * c - b * d, a * d + b * c], axis=-1)
        return reshape(pairs, (*pairs.shape[:-2], pairs.shape[-2] * 2))

    def _parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if x.ndim == 0 or x.shape[-1] // 2 * 2 != x.shape[-1]:
            raise misfit(self, x, "whose last axis holds no pairs of real and imaginary parts")
        pairs = reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2))
        return pairs[..., 0], pairs[..., 1]


# ---- matrices
class Dot(Module):
    """The matrix product of two inputs: the last axis of the first and the last but one of the second go, axes before
    these are a batch and broadcast.  Either may be transposed first."""

    def __init__(self, transpose_first: bool = False, transpose_second: bool = False) -> None:
        self.transpose_first, self.transpose_second = transpose_first, transpose_second

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(..., m, k) and (..., k, n) -> (..., m, n)"""
        a = matrix_transpose(x) if self.transpose_first else x
        b = matrix_transpose(y) if self.transpose_second else y
        if a.ndim and b.ndim:
            self._check(a, b)
        return matmul(a, b)

    def _check(self, a: Tensor, b: Tensor) -> None:
        k, other = a.shape[-1], b.shape[-1 if b.ndim == 1 else -2]
        if isinstance(k, int) and isinstance(other, int) and k != other:
            raise ShapeError(f"{a.spec} and {b.spec} have no matrix product: {k} columns and {other} rows",
                             operator=title(self), line=show_line(user_line()))

    def describe(self) -> str:
        return settings(self, "transpose_first", "transpose_second")


MatMul = Dot


# ---- one after another
class Concatenate(Module):
    """All inputs one after another along an axis, by default the last: the channels."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, *xs: Tensor) -> Tensor:
        """One input or more, which differ in the length of that axis at most."""
        _check_some(self, len(xs))
        return concat(xs, axis=self.axis)

    def describe(self) -> str:
        return settings(self, "axis")


class Stack(Concatenate):
    """All inputs, which have one shape, one after another along a new axis, by default the last."""

    def forward(self, *xs: Tensor) -> Tensor:
        """One input or more -> one more axis."""
        _check_some(self, len(xs))
        return stack(xs, axis=self.axis)
