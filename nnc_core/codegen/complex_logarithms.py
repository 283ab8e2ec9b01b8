"""Magnitudes and logarithms of complex numbers: abs, log, log2, log10, log1p, atanh, atan.

log|z| is half of log(1 + (|z|**2 - 1)) where |z| is near 1, with the difference put together from sums and squares
whose errors are kept.  Infinities and NaN give what annex G of C99 says.
"""

from __future__ import annotations

from math import inf, nan, pi
from math import log as log_of

from nnc_core.base.dtype import float32, float64
from nnc_core.codegen.formats import form_of
from nnc_core.codegen.logarithms import one_plus
from nnc_core.codegen.parts import Parts, flipped_by, is_nan, product, two_sum
from nnc_core.codegen.scalar import Scalar

_LN2 = log_of(2)
_TOUCHING = {float32: 2.0**-30, float64: 2.0**-60}
"""A distance from 1 that only imaginary parts can have."""


def magnitude(x: Scalar, y: Scalar) -> Scalar:
    """|z|, infinite where a part is."""
    return x.apply("hypot", y)


def log(x: Scalar, y: Scalar) -> Parts:
    return log_magnitude(x, y), y.apply("atan2", x)


def log2(x: Scalar, y: Scalar) -> Parts:
    re, im = log(x, y)
    return re * (1 / _LN2), im * (1 / _LN2)


def log10(x: Scalar, y: Scalar) -> Parts:
    re, im = log(x, y)
    return re * (1 / log_of(10)), im * (1 / log_of(10))


def log1p(x: Scalar, y: Scalar) -> Parts:
    """log(1 + z), accurate where z is small."""
    total, rest = one_plus(x)
    return log_magnitude(total, y, rest), y.apply("atan2", total)


def log_magnitude(x: Scalar, y: Scalar, rest: Scalar | None = None) -> Scalar:
    """log|x + rest + iy|, where the rest is less than the last bit of x."""
    far = abs(x).maximum(abs(y))
    close = _beyond_one(x, y, rest).apply("log1p") * 0.5
    return ((far >= 0.5) & (far <= 3.0)).select(close, _log_length(x, y, far))


def _beyond_one(x: Scalar, y: Scalar, rest: Scalar | None) -> Scalar:
    """|z|**2 - 1 where |z| is near 1."""
    (a, a_low), (b, b_low) = product(x, x), product(y, y)
    total, first = two_sum(a, -1.0)
    total, second = two_sum(total, b)
    low, third = two_sum(a_low, b_low)
    if rest is not None:
        low, fourth = two_sum(low, (x + x) * rest)
        third = third + (fourth + rest * rest)
    total, fifth = two_sum(total, low)
    return total + (fifth + ((first + second) + third))


def _log_length(x: Scalar, y: Scalar, far: Scalar) -> Scalar:
    """log|z|; where |z| is out of range, or has few digits, of a multiple."""
    form = form_of(x)
    up = 2 * form.mantissa
    small, large = far < 2.0 ** (up - form.bias), far > 2.0 ** (form.bias - 2)
    scale = small.select(x.constant(2.0**up), large.select(x.constant(0.25), 1.0))
    shift = small.select(x.constant(-up * _LN2), large.select(x.constant(2 * _LN2), 0.0))
    return magnitude(x * scale, y * scale).apply("log") + shift


def atanh(x: Scalar, y: Scalar) -> Parts:
    """log(1 + 4 x / |1 - z|**2) / 4 for x >= 0, and half the angle of (1 + z) / (1 - z)."""
    form, a = form_of(x), abs(x)
    bound = 2.0 ** (form.mantissa + 4)
    far, infinite = (a > bound) | (abs(y) > bound), a.equal(inf) | abs(y).equal(inf)
    distance = magnitude(1.0 - a, y)
    ratio = infinite.select(x.constant(0.0), a / distance / distance)
    touching = (_LN2 - distance.apply("log")) * 0.5
    grown = (distance < _TOUCHING[x.dtype]).select(touching, (ratio * 4.0).apply("log1p") * 0.25)
    re = x.equal(0.0).select(x, flipped_by(far.select(ratio, grown), x))
    im = (y + y).apply("atan2", (1.0 - a) * (a + 1.0) - y * y) * 0.5
    at_end = is_nan(y).select(y.constant(nan), flipped_by(y.constant(pi / 2), y))
    return re, far.select(at_end, im)


def atan(x: Scalar, y: Scalar) -> Parts:
    """atanh(i z) / i."""
    re, im = atanh(-y, x)
    return im, -re
