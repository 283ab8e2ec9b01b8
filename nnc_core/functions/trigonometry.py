"""Trigonometric and hyperbolic functions, angles in degrees, and roots."""

from __future__ import annotations

from math import pi

from nnc_core.functions.pointwise import binary, unary
from nnc_core.values.arguments import ArrayLike, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.operands import operand
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cosh", "deg2rad", "hypot", "rad2deg",
    "reciprocal", "rsqrt", "sinc", "sinh", "tan",
]  # fmt: skip

tan, asin, acos, atan, atan2 = unary("tan"), unary("asin"), unary("acos"), unary("atan"), binary("atan2")
sinh, cosh, asinh, acosh, atanh = unary("sinh"), unary("cosh"), unary("asinh"), unary("acosh"), unary("atanh")
sinc, cbrt, rsqrt, hypot = unary("sinc"), unary("cbrt"), unary("rsqrt"), binary("hypot")


@by_shapes
@names_itself
def reciprocal(x: ArrayLike, /) -> Tensor:
    """1 / x; integers become floats of the default dtype."""
    return Tensor(F.divide(1.0, operand(x)))


@by_shapes
@names_itself
def deg2rad(x: ArrayLike, /) -> Tensor:
    """Degrees as radians."""
    return Tensor(F.multiply(operand(x), pi / 180))


@by_shapes
@names_itself
def rad2deg(x: ArrayLike, /) -> Tensor:
    """Radians as degrees."""
    return Tensor(F.multiply(operand(x), 180 / pi))
