"""Powers of float32: 2**(y log2(x)), the logarithm and the product in float64, so that what is rounded is the result.

x = 2**k * m with sqrt(1/2) <= m < sqrt(2), and log2(m) is s times a polynomial in s**2, of s = (m - 1) / (m + 1).  Both
polynomials minimise the largest error, which is below 2**-39 of the logarithm and 2**-28 of the power of two.
"""

from __future__ import annotations

from math import inf, nan

from nnc_core.base.dtype import float32, float64, int64
from nnc_core.codegen.formats import (
    FORMATS,
    as_float,
    form_of,
    nearest_integer,
    polynomial,
    scaled,
    with_sign_of,
)
from nnc_core.codegen.logarithms import SQRT_HALF_BITS
from nnc_core.codegen.scalar import Scalar

_LOG2 = (
    2.8853900817761673, 0.9617966980265963, 0.5770768156910399, 0.4123192438326542, 0.315570929885284,
    0.3423726587343475)  # fmt: skip
"""log2((1 + s) / (1 - s)) / s of s**2 <= 0.02944."""
_EXP2 = (
    1.0, 0.6931471824645996, 0.24022647738456726, 0.05550358071923256, 0.009618503041565418, 0.0013391890097409487,
    0.00015329234884120524)  # fmt: skip
"""2**x of |x| <= 1/2."""
_FAR = 160.0  # 2**160 is infinite, 2**-160 is 0


def power(x: Scalar, y: Scalar) -> Scalar:
    """x to the power of y as IEEE 754 has it: 1 for y = 0 and x = 1 whatever the other is, NaN for a finite x below 0
    and a y that is no integer."""
    magnitude = abs(x)
    factor: Scalar = y.cast(float64)
    exponent = (magnitude.equal(1.0) | y.equal(0.0)).select(factor.constant(0.0), _log2(magnitude) * factor)
    grown = _exp2(exponent)
    half, whole = y * 0.5, y.apply("trunc")
    is_whole = y.equal(whole)
    is_odd = is_whole & half.not_equal(half.apply("trunc"))
    signed = is_odd.select(with_sign_of(grown, x), grown)
    undefined = (x < 0.0) & (x > -inf) & ~is_whole
    is_one = x.equal(1.0) | y.equal(0.0)
    return is_one.select(x.constant(1.0), undefined.select(x.constant(nan), signed))


def _log2(a: Scalar) -> Scalar:
    """log2 of a float32 that is not negative, in float64, where none is subnormal."""
    wide: Scalar = a.cast(float64)
    form, bits = FORMATS[float64], wide.bitcast(int64)
    exponent = (bits - SQRT_HALF_BITS[float64]) >> form.mantissa
    m = (bits - (exponent << form.mantissa)).bitcast(float64)
    s = (m - 1.0) / (m + 1.0)
    logarithm = s * polynomial(_LOG2, s * s) + as_float(exponent, form)
    ends: Scalar = (a < inf).select(logarithm, wide)
    return a.equal(0.0).select(wide.constant(-inf), ends)


def _exp2(x: Scalar) -> Scalar:
    """2**x of a float64, as float32."""
    inside = x.maximum(-_FAR).minimum(_FAR)
    whole = inside.apply("round")
    rest: Scalar = (inside - whole).cast(float32)
    _, exponent = nearest_integer(whole.cast(float32))
    return scaled(polynomial(_EXP2, rest), exponent, form_of(rest))
