"""sin, cos and tan, for arguments of every size.

From an argument that is not too large the nearest multiple of pi / 2 is taken in three parts (Cody and Waite).  A
larger one is multiplied by 2 / pi in integers, as Payne and Hanek do (ACM SIGNUM Newsletter 18, 1983): of the many
digits of 2 / pi only those matter whose product with the argument lies around its point; the product's two bits before
the point are the quadrant, the others the angle within it.  That takes 64-bit integers, and in float64 two hundred
instructions; where they are computed in any case a library's function, which looks at the argument first, is quicker.

The coefficients of sin interpolate (sin(r) - r) / r**3, those of cos (cos(r) - 1 + r**2 / 2) / r**4, in r**2 at
Chebyshev nodes of |r| <= pi / 4, computed with 90 decimal digits and rounded once; error below 2**-28 (float32) and
2**-57 (float64).
"""

from __future__ import annotations

from math import inf, nan
from typing import NamedTuple

from nnc_core.base.dtype import float32, float64, int64, uint64
from nnc_core.codegen.formats import Coefficients, Format, form_of, multiply_add, nearest_integer, polynomial
from nnc_core.codegen.scalar import Scalar

_SIN: Coefficients = {
    float32: (-0.1666666716337204, 0.008333331905305386, -0.00019840087043121457, 2.7249895993008977e-06),
    float64: (
         -0.16666666666666666, 0.008333333333333331, -0.00019841269841265063, 2.7557319219337312e-06,
         -2.5052106231802837e-08, 1.6058531516797758e-10, -7.586691094197958e-13),
}  # fmt: skip
_COS: Coefficients = {
    float32: (0.0416666679084301, -0.00138888880610466, 2.480059993104078e-05, -2.730093342506734e-07),
    float64: (
         0.041666666666666664, -0.0013888888888888887, 2.4801587301584645e-05, -2.755731922140179e-07,
         2.0876755790721963e-09, -1.1470460830795304e-11, 4.7458685530816656e-14),
}  # fmt: skip
_TWO_BY_PI = (
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E006492EEA09D1921C"
    "FE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980F"
    "EF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D08"
    "56033046FC7B6BABF0CFBC209AF4361DA9E391615EE61B08"
)
"""Its binary digits after the point."""
_WORDS = [int(text, 16) for text in (("0" * 16 + _TWO_BY_PI)[k : k + 16] for k in range(0, 352, 16))]
"""The same as words of 64 bits, behind 64 zeros."""
_BY_HALF_PI = 0.6366197723675814
_HALF_PI = {
    float32: (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    float64: (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21),
}
"""pi / 2 in three parts; in float64 the first two have 33 bits: their products with small integers are exact."""
_NEAR = {float32: 2.0**17, float64: 2.0**20}
"""Arguments below are reduced by the three parts."""
_UNIT = {
    float32: (8.515328097865888e-20, -2.4147648606397375e-25),
    float64: (8.515303944838236e-20, 5.378150071992814e-29),
}
"""pi / 2 * 2**-64 in two parts; the first has half the digits, so that its product with another half is exact."""


class Angle(NamedTuple):
    """|x| = quadrant * pi / 2 + (angle + rest) with |angle| <= pi / 4, hardly more; the last two bits of the quadrant
    count."""

    angle: Scalar
    rest: Scalar
    quadrant: Scalar


def sin(x: Scalar) -> Scalar:
    """Keeps -0; NaN at infinity."""
    turned, form = _reduced(abs(x)), form_of(x)
    value = _odd(turned.quadrant).select(_cosine(turned), _sine(turned))
    return _with_ends(x, _turned_by(value, (turned.quadrant << _to_sign(form)) ^ x.bitcast(form.integer)))


def cos(x: Scalar) -> Scalar:
    """NaN at infinity."""
    turned = _reduced(abs(x))
    value = _odd(turned.quadrant).select(_sine(turned), _cosine(turned))
    return _with_ends(x, _turned_by(value, (turned.quadrant + 1) << _to_sign(form_of(x))))


def tan(x: Scalar) -> Scalar:
    """Keeps -0; NaN at infinity."""
    turned = _reduced(abs(x))
    sine, cosine, odd = _sine(turned), _cosine(turned), _odd(turned.quadrant)
    value = odd.select(-cosine, sine) / odd.select(sine, cosine)
    return _with_ends(x, _turned_by(value, x.bitcast(form_of(x).integer)))


def _odd(quadrant: Scalar) -> Scalar:
    return (quadrant & 1).equal(1)


def _to_sign(form: Format) -> int:
    """Places from the bit that quadrants 2 and 3 have to the sign."""
    return 8 * form.dtype.itemsize - 2


def _turned_by(value: Scalar, signs: Scalar) -> Scalar:
    """The value, negative where an integer is."""
    form = form_of(value)
    return (value.bitcast(form.integer) ^ (signs & form.sign_bit)).bitcast(value.dtype)


def _with_ends(x: Scalar, value: Scalar) -> Scalar:
    return (abs(x) < inf).select(value, nan)


def _sine(turned: Angle) -> Scalar:
    r = turned.angle
    square = r * r
    return r + multiply_add(r * square, polynomial(_SIN[r.dtype], square), turned.rest)


def _cosine(turned: Angle) -> Scalar:
    r = turned.angle
    square = r * r
    total = multiply_add(square, -0.5, 1.0)
    rest = multiply_add(square, -0.5, 1.0 - total) - r * turned.rest
    return total + multiply_add(square * square, polynomial(_COS[r.dtype], square), rest)


def _reduced(a: Scalar) -> Angle:
    near, far, is_near = _NEARLY[a.dtype](a), _reduced_by_digits(a), a < _NEAR[a.dtype]
    return Angle(*[is_near.select(one, other) for one, other in zip(near, far, strict=True)])


def _nearly_float32(a: Scalar) -> Angle:
    """The first difference is exact."""
    high, middle, low = _HALF_PI[float32]
    whole, quadrant = nearest_integer(a, _BY_HALF_PI)
    return Angle(whole.fma(-middle, whole.fma(-high, a)), whole * -low, quadrant)


def _nearly_float64(a: Scalar) -> Angle:
    """The first difference is exact, and so is the error of the second (Knuth); what is not in the angle is less than
    its last bit."""
    high, middle, low = _HALF_PI[float64]
    whole, quadrant = nearest_integer(a, _BY_HALF_PI)
    large, small = a - whole * high, whole * middle
    angle = large - small
    part = large - angle
    error = (large - (angle + part)) - (small - part)
    rest = error - whole * low
    total = angle + rest
    return Angle(total, rest - (total - angle), quadrant)


_NEARLY = {float32: _nearly_float32, float64: _nearly_float64}


def _reduced_by_digits(a: Scalar) -> Angle:
    form = form_of(a)
    bits = a.bitcast(form.integer)
    digits = ((bits & ((1 << form.mantissa) - 1)) | (1 << form.mantissa)).cast(uint64)
    start = ((bits >> form.mantissa) - (form.bias + form.mantissa - 62)).maximum(0).cast(uint64)
    top, middle = _products[form.dtype](digits, start)
    quadrant = (top + (1 << 61)) >> 62
    turn, rest = (top << 2) | (middle >> 62), middle << 2  # what is left of a quadrant, in units of 2**-64 and 2**-128
    sign = turn.bitcast(int64) >> 63
    turn, rest = turn.bitcast(int64) ^ sign, (rest.bitcast(int64) ^ sign).bitcast(uint64)
    angle, low = _angle(turn, rest, form)
    negative = sign < 0
    return Angle(negative.select(-angle, angle), negative.select(-low, low), quadrant.cast(form.integer))


def _angle(turn: Scalar, rest: Scalar, form: Format) -> tuple[Scalar, Scalar]:
    """pi / 2 times the fraction of a quadrant, in two parts."""
    high_unit, low_unit = _UNIT[form.dtype]
    split = 63 - (form.mantissa + 1) // 2  # above it there is half of the float's digits
    large = (turn >> split) << split
    small = (turn - large).cast(form.dtype) + (rest >> 11).cast(form.dtype) * 2.0**-53
    head = large.cast(form.dtype)
    main = head * high_unit  # exact
    correction = head * low_unit + small * (high_unit + low_unit)
    angle = main + correction
    return angle, correction - (angle - main)


def _products_float32(digits: Scalar, start: Scalar) -> tuple[Scalar, Scalar]:
    """Digits times 2 / pi from a bit on: 64 bits of the product, the first two before the point, and 0."""
    first, second = _window(start, _WORDS[:5], 2)
    return digits * first + ((digits * (second >> 32)) >> 32), digits.constant(0)


def _products_float64(digits: Scalar, start: Scalar) -> tuple[Scalar, Scalar]:
    """128 bits of the product, the first two before the point."""
    first, second, third = _window(start, _WORDS[:20], 3)
    low = digits * second
    middle = low + _upper_half(digits, third)
    carry = (middle < low).select(digits.constant(1), 0)
    return digits * first + _upper_half(digits, second) + carry, middle


_products = {float32: _products_float32, float64: _products_float64}


def _window(start: Scalar, words: list[int], count: int) -> list[Scalar]:
    """`count` words from bit `start` on: the whole words are chosen bit by bit of their number, then shifted."""
    number, shift = start >> 6, start & 63
    chosen: list[Scalar] = [start.constant(word) for word in words]
    bit = (len(words) - count - 1).bit_length() - 1  # of the highest number
    for step in (1 << k for k in range(bit, -1, -1)):
        taken = (number & step).equal(step)
        chosen = [taken.select(chosen[k + step], chosen[k]) if k + step < len(chosen) else chosen[k]
                  for k in range(min(step + count, len(chosen)))]
    return [(chosen[k] << shift) | (chosen[k + 1] >> (64 - shift)) for k in range(count)]


def _upper_half(a: Scalar, b: Scalar) -> Scalar:
    """The upper 64 bits of the product of two unsigned 64-bit integers, of which a is below 2**53."""
    mask = (1 << 32) - 1
    a_low, a_high, b_low, b_high = a & mask, a >> 32, b & mask, b >> 32
    crossed = a_high * b_low + ((a_low * b_low) >> 32)
    other = a_low * b_high + (crossed & mask)
    return a_high * b_high + (crossed >> 32) + (other >> 32)
