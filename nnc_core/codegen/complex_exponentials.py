"""Exponentials of complex numbers and what is made of them: exp, exp2, expm1, sinh, cosh, tanh, sin, cos, tan.

e**(x + iy) = e**x (cos y + i sin y), where e**x may be out of range though its product with a small sine is not: then
it comes in three factors.  Infinities and NaN give what annex G of C99 says.
"""

from __future__ import annotations

from math import exp as exp_of
from math import inf, nan
from typing import NamedTuple

from nnc_core.base.dtype import float32, float64
from nnc_core.codegen.parts import Parts, flipped_by, is_nan, product
from nnc_core.codegen.scalar import Scalar

_LN2 = {float32: (0.6931471824645996, -1.904654323148236e-09), float64: (0.6931471805599453, 2.3190468138462996e-17)}
"""log(2) in two parts, each with all the digits of its format."""
_STEP = {float32: 64.0, float64: 512.0}
"""e to this is a number; beyond it the power is split."""
_LEVEL = {float32: 15.0, float64: 25.0}
"""Beyond it tanh is 1 in magnitude."""


class Grown(NamedTuple):
    """A power as the product of a number and two factors, 1 but for large exponents."""

    start: Scalar
    first: Scalar
    second: Scalar

    def times(self, value: Scalar) -> Scalar:
        return self.start * value * self.first * self.second


def _grown(x: Scalar, function: str = "exp") -> Grown:
    step = _STEP[x.dtype]
    factor = exp_of(step) if function == "exp" else 2.0**step
    once, twice = x > step, x > 2 * step
    left = twice.select(x - 2 * step, once.select(x - step, x))
    one = x.constant(1.0)
    return Grown(left.apply(function), once.select(x.constant(factor), one), twice.select(x.constant(factor), one))


def exp(x: Scalar, y: Scalar) -> Parts:
    return _turned(_grown(x), x, y)


def exp2(x: Scalar, y: Scalar) -> Parts:
    """2**z; of imaginary parts so large that a unit in their last place is a turn, anything of that size."""
    high, low = _LN2[x.dtype]
    angle, rest = product(y, y.constant(high))
    rest = rest + y * low
    return _turned(_grown(x, "exp2"), x, angle, (abs(rest) < 1.0).select(rest, 0.0))


def _turned(size: Grown, x: Scalar, y: Scalar, rest: Scalar | None = None) -> Parts:
    """A power of x, turned by the angle y, and by a rest that is small."""
    cosine, sine = y.apply("cos"), y.apply("sin")
    if rest is not None:
        cosine, sine = cosine - sine * rest, sine + cosine * rest
    nowhere, gone = is_nan(cosine), x.equal(-inf)
    end = x.equal(inf).select(x, gone.select(x.constant(0.0), nan))
    re = nowhere.select(end, size.times(cosine))
    im = (nowhere & gone).select(flipped_by(x.constant(0.0), y), size.times(sine))
    return re, y.equal(0.0).select(y, im)


def expm1(x: Scalar, y: Scalar) -> Parts:
    """exp(z) - 1, accurate where z is small; at infinities as the Array API has it."""
    re, im = exp(x, y)
    half = (y * 0.5).apply("sin")
    near = x.apply("expm1") * y.apply("cos") - 2.0 * half * half
    re = (x > _STEP[x.dtype]).select(re, near)
    re = y.equal(0.0).select(x.apply("expm1"), re)
    return x.equal(-inf).select(x.constant(-1.0), re), im


def sinh(x: Scalar, y: Scalar) -> Parts:
    size, odd, even = _hyperbolic(x)
    cosine, sine = y.apply("cos"), y.apply("sin")
    re = is_nan(cosine).select(_end(x), size._replace(start=odd).times(cosine))
    return re, y.equal(0.0).select(y, size._replace(start=even).times(sine))


def cosh(x: Scalar, y: Scalar) -> Parts:
    size, odd, even = _hyperbolic(x)
    cosine, sine = y.apply("cos"), y.apply("sin")
    re = is_nan(cosine).select(abs(x).equal(inf).select(abs(x), nan), size._replace(start=even).times(cosine))
    im = size._replace(start=odd).times(sine)
    on_axis = is_nan(im) & (x.equal(0.0) | y.equal(0.0))
    return re, on_axis.select(flipped_by(flipped_by(x.constant(0.0), x), y), im)


def _hyperbolic(x: Scalar) -> tuple[Grown, Scalar, Scalar]:
    """Factors, and what sinh(x) and cosh(x) are these times."""
    size, far = _grown(abs(x)), abs(x) > _STEP[x.dtype]
    half = size.start * 0.5
    return size, far.select(flipped_by(half, x), x.apply("sinh")), far.select(half, x.apply("cosh"))


def _end(x: Scalar) -> Scalar:
    """A part that has no direction: 0 stays, infinite ones are infinite, others NaN."""
    return x.equal(0.0).select(x, abs(x).equal(inf).select(abs(x), nan))


def tanh(x: Scalar, y: Scalar) -> Parts:
    """(sinh x cosh x + i sin y cos y) / (sinh**2 x + cos**2 y), and 1 + 4 i sin y cos y e**-2x where x is large."""
    size, level = abs(x), _LEVEL[x.dtype]
    cosine, sine = y.apply("cos"), y.apply("sin")
    inside = size.minimum(level)
    odd, even, far = inside.apply("sinh"), inside.apply("cosh"), size > level
    below, across = odd * odd + cosine * cosine, sine * cosine
    re = far.select(x.constant(1.0), odd * even / below)
    re = is_nan(cosine).select(size.equal(inf).select(x.constant(1.0), x.equal(0.0).select(x, nan)), re)
    decayed = (size * -2.0).apply("exp")
    im = far.select(across * 4.0 * decayed, across / below)
    im = (is_nan(cosine) & size.equal(inf)).select(flipped_by(x.constant(0.0), y), im)
    return flipped_by(abs(re), x), y.equal(0.0).select(y, im)


def sin(x: Scalar, y: Scalar) -> Parts:
    """sinh(i z) / i; an infinite part whose sign nothing settles is positive, as it is in sinh."""
    re, im = sinh(-y, x)
    return im, (is_nan(im) & abs(re).equal(inf)).select(abs(re), -re)


def cos(x: Scalar, y: Scalar) -> Parts:
    """cosh(i z)."""
    return cosh(-y, x)


def tan(x: Scalar, y: Scalar) -> Parts:
    """tanh(i z) / i."""
    re, im = tanh(-y, x)
    return im, -re
