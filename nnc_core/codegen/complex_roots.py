"""Square roots of complex numbers, and by them asin, acos, asinh, acosh.

As Kahan has them (Branch cuts for complex elementary functions, 1987): by the roots of 1 + z and 1 - z, whose parts
are put together without cancellation; where |z| is large, by log(2 z).  Infinities and NaN give what annex G of C99
says.
"""

from __future__ import annotations

from math import inf, log, nan, pi

from nnc_core.codegen.complex_logarithms import log_magnitude, magnitude
from nnc_core.codegen.formats import form_of
from nnc_core.codegen.parts import Parts, chosen, flipped_by, is_nan
from nnc_core.codegen.scalar import Scalar


def sqrt(x: Scalar, y: Scalar) -> Parts:
    """The root with a real part that is not negative, an imaginary one of the sign of y."""
    long, short = _lengths(abs(x), abs(y))
    right = x >= 0.0
    re, im = chosen(right, (long, short), (short, long))
    lost, size = is_nan(y).select(x.constant(nan), 0.0), abs(x)
    re, im = chosen(size.equal(inf), chosen(right, (size, lost), (lost, size)), (re, im))
    re, im = chosen(is_nan(x), (x, x), (re, im))
    re, im = chosen(abs(y).equal(inf), (abs(y), abs(y)), (re, im))
    return re, flipped_by(abs(im), y)


def _lengths(a: Scalar, b: Scalar) -> Parts:
    """The parts of the root of a + ib, of positive numbers: of a multiple where they are near the ends of the range."""
    form, far = form_of(a), a.maximum(b)
    up = 2 * form.mantissa
    small, large = far < 2.0 ** (up + form.mantissa - form.bias), far > 2.0 ** (form.bias - 3)
    scale = small.select(a.constant(2.0**up), large.select(a.constant(2.0**-4), 1.0))
    back = small.select(a.constant(2.0 ** -(up // 2)), large.select(a.constant(4.0), 1.0))
    a, b = a * scale, b * scale
    long = ((magnitude(a, b) + a) * 0.5).sqrt()
    short = far.equal(0.0).select(far, b * 0.5 / long)
    return long * back, short * back


def asin(x: Scalar, y: Scalar) -> Parts:
    (a, b), (c, d) = sqrt(1.0 - x, -y), sqrt(x + 1.0, y)
    far, size = _is_far(x, y), flipped_by(_log_twice(x, y), y)
    re = far.select(x.apply("atan2", abs(y)), x.apply("atan2", a * c - b * d))
    return x.equal(0.0).select(x, re), far.select(size, (a * d - b * c).apply("asinh"))


def acos(x: Scalar, y: Scalar) -> Parts:
    (a, b), (c, d) = sqrt(1.0 - x, -y), sqrt(x + 1.0, y)
    far, size = _is_far(x, y), flipped_by(_log_twice(x, y), y)
    re = far.select(abs(y).apply("atan2", x), a.apply("atan2", c) * 2.0)
    upright = x.equal(0.0) & is_nan(y)
    return upright.select(x.constant(pi / 2), re), far.select(-size, (c * b - d * a).apply("asinh"))


def asinh(x: Scalar, y: Scalar) -> Parts:
    """i asin(-i z)."""
    re, im = asin(y, -x)
    return -im, re


def acosh(x: Scalar, y: Scalar) -> Parts:
    """acos(z) turned so that its real part is not negative."""
    re, im = acos(x, y)
    return abs(im), flipped_by(re, y)


def _is_far(x: Scalar, y: Scalar) -> Scalar:
    """True where 1 is nothing beside z**2."""
    bound = 2.0 ** (form_of(x).mantissa // 2 + 4)
    return (abs(x) > bound) | (abs(y) > bound)


def _log_twice(x: Scalar, y: Scalar) -> Scalar:
    return log_magnitude(x, y) + log(2)
