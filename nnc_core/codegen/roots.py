"""Roots: cbrt and hypot.  (Square roots are correctly rounded by every device.)"""

from __future__ import annotations

from math import inf

from nnc_core.codegen.formats import form_of, head, polynomial, with_sign_of
from nnc_core.codegen.scalar import Scalar

_CUBE_ROOT = (0.5557909602691388, 0.5808263911380952, -0.1586624600531909, 0.022148699208245196)
"""Interpolates cbrt at Chebyshev nodes of [1, 2]: error below 2**-13."""
_CUBE_ROOT_OF_2, _CUBE_ROOT_OF_4 = 1.2599210498948732, 1.5874010519681996


def cbrt(x: Scalar) -> Scalar:
    """The real cube root, keeps the sign.

    |x| = 2**(3 q) * v with 1 <= v < 8.  A polynomial guess and two of Halley's steps (float32: one); the guess of the
    last one has half the digits, so that its square is exact.
    """
    form = form_of(x)
    a = abs(x)
    subnormal, shift = a < form.smallest_normal, 3 * (form.mantissa // 3 + 1)
    bits = subnormal.select(a * 2.0**shift, a).bitcast(form.integer)
    exponent = (bits >> form.mantissa) - form.bias
    offset = 3 * (form.bias + form.mantissa)
    third = (((exponent + offset) * 21846) >> 16) - offset // 3  # rounded down; exact for small integers
    left = exponent - third * 3
    one_bits = form.bias << form.mantissa
    mantissa = ((bits & ((1 << form.mantissa) - 1)) | one_bits).bitcast(x.dtype)
    v = ((left + form.bias) << form.mantissa).bitcast(x.dtype) * mantissa
    factor = left.equal(0).select(x.constant(1.0), left.equal(1).select(x.constant(_CUBE_ROOT_OF_2), _CUBE_ROOT_OF_4))
    guess = polynomial(_CUBE_ROOT, mantissa) * factor
    if form.mantissa > 23:
        cube = guess * guess * guess
        guess = guess * ((cube + (v + v)) / ((cube + cube) + v))
    guess = head(guess)
    quotient = v / (guess * guess)
    root = guess + guess * ((quotient - guess) / ((guess + guess) + quotient))
    power = third - subnormal.select(third.constant(shift // 3), 0)
    root = root * ((power + form.bias) << form.mantissa).bitcast(x.dtype)
    return (a < inf).select(a.equal(0.0).select(x, with_sign_of(root, x)), x)


def hypot(x: Scalar, y: Scalar) -> Scalar:
    """sqrt(x**2 + y**2) without overflow in between; infinite where one of them is, even beside NaN."""
    form = form_of(x)
    a, b = abs(x), abs(y)
    far = a.maximum(b)
    bound = 2.0 ** (form.bias // 2 - form.mantissa // 2)
    shift = form.bias // 2 + form.mantissa
    up, down = far < 1 / bound, far > bound
    scale = up.select(x.constant(2.0**shift), down.select(x.constant(2.0**-shift), 1.0))
    back = up.select(x.constant(2.0**-shift), down.select(x.constant(2.0**shift), 1.0))
    a, b = a * scale, b * scale
    length = (a * a + b * b).sqrt() * back
    return (abs(x).equal(inf) | abs(y).equal(inf)).select(x.constant(inf), length)
