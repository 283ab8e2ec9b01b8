"""log and its relatives: log2, log10, log1p, asinh, acosh, atanh, logit.

x = 2**k * (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2).  log(1 + f) is put together in float64 as in Sun's fdlibm, by
log((1 + s) / (1 - s)) of s = f / (2 + f), and in float32 as in Moshier's Cephes; the coefficients interpolate what
remains at Chebyshev nodes, computed with 70 decimal digits and rounded once:

- float32: (log(1 + f) - f + f**2 / 2) / f**3 on the whole interval, error of log below 2**-28;
- float64: (log((1 + s) / (1 - s)) - 2 s) / s**3 in z = s**2 <= 0.02945, error of log below 2**-56.
"""

from __future__ import annotations

from math import inf, nan

from nnc_core.base.dtype import float32, float64
from nnc_core.codegen.exponentials import LN2
from nnc_core.codegen.formats import Coefficients, as_float, form_of, head, polynomial, with_sign_of
from nnc_core.codegen.scalar import Scalar

_LOG: Coefficients = {
    float32: (
         0.3333333134651184, -0.2499999701976776, 0.20000715553760529, -0.1666780263185501,
         0.14249058067798615, -0.12425687164068222, 0.11685419827699661, -0.11479733884334564,
         0.06971611827611923),
    float64: (
         0.666666666666667, 0.3999999999989924, 0.2857142862609589, 0.2222221111514416,
         0.18182890556695602, 0.1533167403016786, 0.1461703754879165),
}  # fmt: skip
SQRT_HALF_BITS = {float32: 0x3F3504F3, float64: 0x3FE6A09E667F3BCD}
_LARGE = {float32: 2.0**14, float64: 2.0**30}  # beyond it asinh(x) and acosh(x) are log(2 x)


def log(x: Scalar) -> Scalar:
    """Natural logarithm; -inf at zeros, NaN below."""
    return _with_ends(x, _sum(x))


def log1p(x: Scalar) -> Scalar:
    """log(1 + x), accurate at small x, keeps -0; -inf at -1."""
    total, rest = one_plus(x)
    return x.equal(0.0).select(x, log_of_sum(total, rest))


def log2(x: Scalar) -> Scalar:
    """Exact for powers of two."""
    return _with_ends(x, _in_base(x, _TO_BASE_2[x.dtype]))


def log10(x: Scalar) -> Scalar:
    return _with_ends(x, _in_base(x, _TO_BASE_10[x.dtype]))


def asinh(x: Scalar) -> Scalar:
    """log(1 + t) with t = a + a**2 / (1 + sqrt(1 + a**2)) of a = |x|."""
    a = abs(x)
    square = a * a
    return with_sign_of(_of_large(a, a + square / (1.0 + (1.0 + square).sqrt())), x)


def acosh(x: Scalar) -> Scalar:
    """log(1 + t + sqrt(t * (t + 2))) with t = x - 1; NaN below 1."""
    t = x - 1.0
    return (x < 1.0).select(x.constant(nan), _of_large(x, t + (t * (t + 2.0)).sqrt()))


def atanh(x: Scalar) -> Scalar:
    """log(1 + 2 a / (1 - a)) / 2 of a = |x|; infinite at 1, NaN beyond."""
    a = abs(x)
    half = log1p((a + a) / (1.0 - a)) * 0.5
    return with_sign_of((a > 1.0).select(x.constant(nan), abs(half)), x)


def logit(x: Scalar) -> Scalar:
    """log(x / (1 - x)); near 1/2, where it is 0, log(1 + (2 x - 1) / (1 - x))."""
    other = 1.0 - x
    ratio = x / other
    total, rest = one_plus((x + x - 1.0) / other)
    near = abs(x - 0.5) < 0.2
    argument = near.select(total, ratio)
    return log_of_sum(argument, near.select(rest, 0.0))


def one_plus(x: Scalar) -> tuple[Scalar, Scalar]:
    """1 + x, rounded, and what the rounding has cut off."""
    total = x + 1.0
    return total, x - (total - 1.0)


def log_of_sum(x: Scalar, rest: Scalar) -> Scalar:
    """log(x + rest), where the rest is less than the last bit of x."""
    return _with_ends(x, _sum(x, rest))


def _sum(x: Scalar, rest: Scalar | None = None, extra: Scalar | None = None) -> Scalar:
    """log(x + rest) of positive x, plus `extra` times ln 2; the rest is less than the last bit of x."""
    power, f = split(x)
    if extra is not None:
        power = power + extra
    high, low = LN2[x.dtype]
    small = _small_part(f) + power * low
    if rest is not None:
        small = small + rest / x
    if x.dtype == float32:  # smallest terms first
        return (f + (small - f * f * 0.5)) + power * high
    return power * high - ((f * f * 0.5 - small) - f)


def _small_part(f: Scalar) -> Scalar:
    """log(1 + f) - f + f**2 / 2."""
    square = f * f
    if f.dtype == float32:
        return f * square * polynomial(_LOG[float32], f)
    s = f / (f + 2.0)
    return s * (square * 0.5 + s * s * polynomial(_LOG[float64], s * s))


def split(x: Scalar) -> tuple[Scalar, Scalar]:
    """(k, f) with x = 2**k * (1 + f) and sqrt(1/2) <= 1 + f < sqrt(2), for positive x; both are floats."""
    form = form_of(x)
    subnormal, shift = x < form.smallest_normal, form.mantissa + 2
    bits = subnormal.select(x * 2.0**shift, x).bitcast(form.integer)
    exponent = (bits - SQRT_HALF_BITS[x.dtype]) >> form.mantissa
    mantissa = (bits - (exponent << form.mantissa)).bitcast(x.dtype)
    power = as_float(exponent, form)
    return subnormal.select(power - float(shift), power), mantissa - 1.0


def _with_ends(x: Scalar, result: Scalar) -> Scalar:
    """The logarithm's ends put into a result for positive finite x."""
    result = (x > 0.0).select(result, x.equal(0.0).select(x.constant(-inf), nan))
    return (x < inf).select(result, x)


def _of_large(x: Scalar, t: Scalar) -> Scalar:
    """log(1 + t), or log(2 x) where x is large."""
    large = x > _LARGE[x.dtype]
    total, rest = one_plus(t)
    total, rest = large.select(x, total), large.select(x.constant(0.0), rest)
    result = _sum(total, rest, extra=large.select(x.constant(1.0), 0.0))
    return t.equal(0.0).select(t, (x < inf).select(result, x))


def _in_base(x: Scalar, scale: tuple[float, float, float, float]) -> Scalar:
    """`split` x times the logarithms of e and 2 in another base, each in two parts."""
    e_high, e_low, two_high, two_low = scale
    power, f = split(x)
    half = f * f * 0.5
    high = head(f - half)
    low = (f - high) - half + _small_part(f)
    main, base = high * e_high, power * two_high  # exact
    total = base + main
    rest = (base - total) + main
    return total + (rest + ((low + high) * e_low + low * e_high + power * two_low))


_TO_BASE_2 = {
    float32: (1.44287109375, -0.00017605285393074155, 1.0, 0.0),
    float64: (1.4426950365304947, 4.3584687174185184e-09, 1.0, 0.0),
}
_TO_BASE_10 = {
    float32: (0.434326171875, -3.168997136526741e-05, 0.301025390625, 4.605039066518657e-06),
    float64: (0.434294480830431, 1.0728208431540585e-09, 0.30102999566395283, 2.8363394551044964e-14),
}
"""The logarithms of e and 2, each in two parts, the first of few enough bits that its products are exact."""
