"""Trigonometric and hyperbolic functions, their inverses, and sinc."""

from __future__ import annotations

from math import factorial, pi
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.base.dtype import is_complex
from nnc_core.codegen.scalar import Scalar
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.references import in_wide, widened
from nnc_core.shape import elementwise as rule

if TYPE_CHECKING:
    from nnc_core.operator import Namespace

_SINC_SLOPE = [(-1) ** k * pi ** (2 * k) * 2 * k / factorial(2 * k + 1) for k in range(1, 15)]
"""The derivative of sinc, divided by x, in powers of x**2."""


def _sinc(x: Scalar) -> Scalar:
    z = x * pi
    return z.equal(0).select(x.constant(1), z.apply("sin") / z)


def _numpy_sinc(x: Any) -> Any:
    z = x * x.dtype.type(pi)
    return np.where(z == 0, x.dtype.type(1), np.sin(z) / np.where(z == 0, x.dtype.type(1), z))


def _sinc_slope(F: Namespace[V], y: V, x: V) -> V:
    """(cos(pi x) - sinc(x)) / x, and its series where that would cancel."""
    near = F.less(F.abs(x), 0.5)
    small, large = F.where(near, x, 0), F.where(near, 1, x)
    square = F.multiply(small, small)
    series = F.add(F.multiply(square, _SINC_SLOPE[-1]), _SINC_SLOPE[-2])
    for c in reversed(_SINC_SLOPE[:-2]):
        series = F.add(F.multiply(series, square), c)
    turned = F.multiply(large, pi)
    direct = F.divide(F.subtract(F.cos(turned), F.divide(F.sin(turned), turned)), large)
    return F.where(near, F.multiply(small, series), direct)


def _leg(F: Namespace[V], x: V) -> V:
    """sqrt(1 - x**2), accurate near 1."""
    return F.sqrt(F.multiply(F.subtract(1.0, x), F.add(x, 1.0)))


def _hypotenuse(F: Namespace[V], x: V) -> V:
    """sqrt(x**2 + 1), of real numbers without overflow."""
    return F.sqrt(F.add(F.multiply(x, x), 1.0)) if is_complex(x.dtype) else F.hypot(x, 1.0)


def _angle_slope(F: Namespace[V], side: Any, other: V) -> V:
    """side / (side**2 + other**2), without overflow in between; 0 at the origin."""
    length = F.hypot(side, other)
    origin = F.equal(length, 0)
    safe = F.where(origin, 1, length)
    return F.where(origin, 0, F.divide(F.divide(side, safe), safe))


class Trigonometry(Base[V], Generic[V]):
    """Angles are in radians; integers become floats of the default dtype."""

    @op(infer=rule.inexact, reference=widened(np.tan), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("tan"), partials=(lambda F, y, x: F.add(F.multiply(y, y), 1.0),))
    def tan(self, x: V | float) -> V:
        """The tangent of x, an angle in radians."""
        ...

    @op(infer=rule.inexact, reference=widened(np.arcsin), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("asin"), partials=(lambda F, y, x: F.divide(1.0, _leg(F, x)),))
    def asin(self, x: V | float) -> V:
        """The angle in [-pi/2, pi/2], in radians, whose sine is x; NaN beyond 1 and -1."""
        ...

    @op(infer=rule.inexact, reference=widened(np.arccos), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("acos"), partials=(lambda F, y, x: F.divide(-1.0, _leg(F, x)),))
    def acos(self, x: V | float) -> V:
        """The angle in [0, pi], in radians, whose cosine is x; NaN beyond 1 and -1."""
        ...

    @op(infer=rule.inexact, reference=widened(np.arctan), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("atan"), partials=(lambda F, y, x: F.divide(1.0, F.add(F.multiply(x, x), 1.0)),))
    def atan(self, x: V | float) -> V:
        """The angle in [-pi/2, pi/2], in radians, whose tangent is x."""
        ...

    @op(infer=rule.floating, reference=widened(np.arctan2), promote=ALL_INPUTS, to_float=True, inplace=(0, 1),
        scalar=lambda a, b: a.apply("atan2", b),
        partials=(lambda F, y, a, b: _angle_slope(F, b, a), lambda F, y, a, b: F.negative(_angle_slope(F, a, b))))
    def atan2(self, a: V | float, b: V | float) -> V:
        """The angle of the point (b, a), in [-pi, pi]: atan(a / b) in the right quadrant."""
        ...

    @op(infer=rule.inexact, reference=widened(_numpy_sinc), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=in_wide(_sinc), partials=(_sinc_slope,))
    def sinc(self, x: V | float) -> V:
        """sin(pi x) / (pi x), 1 at 0."""
        ...


class Hyperbolic(Base[V], Generic[V]):
    """Integers become floats of the default dtype."""

    @op(infer=rule.inexact, reference=widened(np.sinh), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("sinh"), partials=(lambda F, y, x: F.cosh(x),))
    def sinh(self, x: V | float) -> V:
        """The hyperbolic sine, (exp(x) - exp(-x)) / 2."""
        ...

    @op(infer=rule.inexact, reference=widened(np.cosh), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("cosh"), partials=(lambda F, y, x: F.sinh(x),))
    def cosh(self, x: V | float) -> V:
        """The hyperbolic cosine, (exp(x) + exp(-x)) / 2."""
        ...

    @op(infer=rule.inexact, reference=widened(np.arcsinh), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("asinh"), partials=(lambda F, y, x: F.divide(1.0, _hypotenuse(F, x)),))
    def asinh(self, x: V | float) -> V:
        """The inverse of sinh."""
        ...

    @op(infer=rule.inexact, reference=widened(np.arccosh), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("acosh"),
        partials=(lambda F, y, x: F.divide(1.0, F.multiply(F.sqrt(F.subtract(x, 1.0)), F.sqrt(F.add(x, 1.0)))),))
    def acosh(self, x: V | float) -> V:
        """The inverse of cosh, at least 0; NaN below 1."""
        ...

    @op(infer=rule.inexact, reference=widened(np.arctanh), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("atanh"),
        partials=(lambda F, y, x: F.divide(1.0, F.multiply(F.subtract(1.0, x), F.add(x, 1.0))),))
    def atanh(self, x: V | float) -> V:
        """The inverse of tanh; infinite at 1 and -1, NaN beyond."""
        ...
