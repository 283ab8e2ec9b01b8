"""Steps that functions of complex numbers share: products with two parts, signs, sums that lose nothing."""

from __future__ import annotations

from typing import TypeAlias

from nnc_core.base.dtype import float32
from nnc_core.codegen.formats import form_of, head
from nnc_core.codegen.scalar import Scalar

Parts: TypeAlias = tuple[Scalar, Scalar]
"""The real and the imaginary part of a complex number."""


def times(a: Parts, b: Parts) -> Parts:
    """The product, as NumPy forms it."""
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def quotient(a: Parts, b: Parts) -> Parts:
    """Smith's algorithm (1962), which divides by the larger part first, as NumPy does."""
    larger = abs(b[0]) >= abs(b[1])
    nothing = b[0].equal(0) & b[1].equal(0)
    by_re, by_im = _divided(a, b[0], b[1]), _divided((a[1], a[0]), b[1], b[0])
    by_zero = a[0] / abs(b[0]), a[1] / abs(b[0])
    return chosen(nothing, by_zero, chosen(larger, by_re, (by_im[0], -by_im[1])))


def _divided(a: Parts, large: Scalar, small: Scalar) -> Parts:
    ratio = small / large
    scale = 1.0 / (large + small * ratio)
    return (a[0] + a[1] * ratio) * scale, (a[1] - a[0] * ratio) * scale


def chosen(condition: Scalar, a: Parts, b: Parts) -> Parts:
    """a where the condition holds, b elsewhere."""
    return condition.select(a[0], b[0]), condition.select(a[1], b[1])


def flipped_by(value: Scalar, x: Scalar) -> Scalar:
    """The value, with its sign changed where the sign bit of x is set."""
    form = form_of(x)
    return (value.bitcast(form.integer) ^ (x.bitcast(form.integer) & form.sign_bit)).bitcast(value.dtype)


def is_nan(x: Scalar) -> Scalar:
    return x.not_equal(x)


def two_sum(a: Scalar, b: Scalar | float) -> tuple[Scalar, Scalar]:
    """The rounded sum and its error (Knuth)."""
    other = b if isinstance(b, Scalar) else a.constant(b)
    total = a + other
    part = total - a
    return total, (a - (total - part)) + (other - part)


def product(a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """The rounded product and its error: by one rounding less in float32, by halves of digits (Dekker) in float64."""
    whole = a * b
    if a.dtype == float32:
        return whole, a.fma(b, -whole)
    a_high, b_high = head(a), head(b)
    a_low, b_low = a - a_high, b - b_high
    return whole, ((a_high * b_high - whole) + (a_high * b_low + a_low * b_high)) + a_low * b_low
