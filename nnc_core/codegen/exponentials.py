"""exp and its relatives: exp2, expm1, sinh, cosh, tanh, sigmoid.

Range reduction by Cody and Waite: e**x = 2**k * (1 + f), with ln 2 in two parts.  f is r + r**2 * p(r) of the rest r.
In float64 p interpolates (exp(r) - 1 - r) / r**2 at the Chebyshev nodes of |r| <= ln(2) / 2, computed with 70 decimal
digits and rounded once; in float32 each coefficient minimises the largest error beside those that have been rounded
before it.  Error of exp below 2**-28 (float32) and 2**-62 (float64).
"""

from __future__ import annotations

from math import log

from nnc_core.base.dtype import float32, float64
from nnc_core.codegen.formats import (
    Coefficients,
    form_of,
    multiply_add,
    nearest_integer,
    polynomial,
    power_of_two,
    scaled,
    scaled_down,
    with_sign_of,
)
from nnc_core.codegen.scalar import Scalar

LOG2_E = 1.4426950408889634
LN2 = {float32: (0.693115234375, 3.1946184945309415e-05), float64: (0.6931471803691238, 1.9082149292705877e-10)}
"""log(2) in two parts, the first of few enough bits that its product with any exponent is exact."""

_EXP: Coefficients = {
    float32: (
         0.4999999403953552, 0.1666652113199234, 0.041668277233839035, 0.008368686772882938,
         0.0013819800224155188),
    float64: (
         0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326136,
         0.0013888888888883748, 0.00019841269874820627, 2.4801587325547743e-05, 2.7557255400206422e-06,
         2.75572736431103e-07, 2.5105217004720745e-08, 2.0914686968086876e-09),
}  # fmt: skip
_RANGE = {float32: (-104.0, 89.0), float64: (-746.0, 710.0)}  # beyond it exp is 0 or infinite
_RANGE_2 = {float32: (-151.0, 129.0), float64: (-1077.0, 1025.0)}  # the same of exp2
_MINUS_ONE = {float32: 20.0, float64: 40.0}  # expm1 of minus this, and tanh of this, are one in magnitude
_HYPERBOLIC_RANGE = {float32: 90.0, float64: 711.0}  # beyond it sinh and cosh are infinite


def exp(x: Scalar) -> Scalar:
    """e**x; infinite above, subnormal and then 0 below."""
    low, high = _RANGE[x.dtype]
    exponent, fraction = reduced(x.maximum(low).minimum(high))
    return scaled(fraction + 1.0, exponent, form_of(x))


def exp2(x: Scalar) -> Scalar:
    """2**x, exact for integers."""
    low, high = _RANGE_2[x.dtype]
    inside = x.maximum(low).minimum(high)
    whole, exponent = nearest_integer(inside)
    return scaled(_fraction((inside - whole) * log(2)) + 1.0, exponent, form_of(x))


def expm1(x: Scalar) -> Scalar:
    """e**x - 1, accurate at small x, keeps -0: 2**k * (f + (1 - 2**-k))."""
    form = form_of(x)
    exponent, fraction = reduced(x.maximum(-_MINUS_ONE[x.dtype]).minimum(_RANGE[x.dtype][1]))
    inverse = power_of_two(-exponent.minimum(2 * form.mantissa), form)
    return x.equal(0.0).select(x, scaled(fraction + (1.0 - inverse), exponent, form))


def sinh(x: Scalar) -> Scalar:
    """sinh: with e**|x| = 2**k * (1 + f), and t = f + (1 - 2**-k): 2**(k - 1) * (t + 2**-k * t / (1 + f))."""
    form = form_of(x)
    exponent, fraction = reduced(abs(x).minimum(_HYPERBOLIC_RANGE[x.dtype]))
    inverse = power_of_two(-exponent.minimum(2 * form.mantissa), form)
    grown = fraction + (1.0 - inverse)
    return with_sign_of(scaled(grown + inverse * grown / (fraction + 1.0), exponent - 1, form), x)


def cosh(x: Scalar) -> Scalar:
    """cosh: with e**|x| = 2**k * (1 + f): 2**(k - 1) * ((1 + f) + 2**(-2 k) / (1 + f))."""
    form = form_of(x)
    exponent, fraction = reduced(abs(x).minimum(_HYPERBOLIC_RANGE[x.dtype]))
    inverse = power_of_two(-exponent.minimum(form.mantissa), form)
    mantissa = fraction + 1.0
    return scaled(mantissa + inverse * inverse / mantissa, exponent - 1, form)


def tanh(x: Scalar) -> Scalar:
    """(e**2a - 1) / (e**2a + 1) of a = |x|.  Accurate at small a, keeps -0."""
    magnitude = abs(x).minimum(_MINUS_ONE[x.dtype] / 2)
    exponent, fraction = reduced(magnitude + magnitude)
    scale = power_of_two(exponent, form_of(x))
    grown = multiply_add(scale, fraction, scale - 1.0)  # expm1
    return with_sign_of(grown / (grown + 2.0), x)


def sigmoid(x: Scalar) -> Scalar:
    """1 / (1 + e**-x), accurate in both tails."""
    exponent, fraction = reduced((-abs(x)).maximum(_RANGE[x.dtype][0]))
    decayed = scaled_down(fraction + 1.0, exponent, form_of(x))
    return (x < 0.0).select(decayed, 1.0) / (decayed + 1.0)


def reduced(x: Scalar, low: Scalar | None = None) -> tuple[Scalar, Scalar]:
    """(k, f) with e**(x + low) = 2**k * (1 + f) and |f| <= 0.42; k is an integer of the float's width."""
    high, rest_of_ln2 = LN2[x.dtype]
    whole, exponent = nearest_integer(x, LOG2_E)
    rest = multiply_add(whole, -rest_of_ln2, multiply_add(whole, -high, x))
    return exponent, _fraction(rest if low is None else rest + low)


def _fraction(rest: Scalar) -> Scalar:
    """e**rest - 1 for |rest| <= ln(2) / 2."""
    return multiply_add(rest * rest, polynomial(_EXP[rest.dtype], rest), rest)
