"""exp, log, tanh and sigmoid from additions, multiplications, divisions and bit operations alone.

CPU drivers and LLVM do not vectorise calls of the C library; these formulas they do.  They need no `fma`, which
is slow where the device has none.  NaN, infinities, signed zeros, overflow and subnormal numbers are as IEEE 754
recommends.

Method: range reduction by Cody and Waite with ln 2 in two parts; log is put together in float64 as in Sun's
fdlibm (by log((1 + s) / (1 - s))), in float32 as in Moshier's Cephes.  The coefficients interpolate the smooth
function that remains at the Chebyshev nodes of its interval, computed with 70 decimal digits and rounded once to
the dtype.  They begin with the constant term:

- exp:  (exp(r) - 1 - r) / r**2 on |r| <= ln(2) / 2, error of exp below 2**-32 (float32) and 2**-62 (float64);
- log, float32:  (log(1 + f) - f + f**2 / 2) / f**3 on sqrt(1/2) - 1 <= f <= sqrt(2) - 1, error below 2**-28;
- log, float64:  (log((1 + s) / (1 - s)) - 2 s) / s**3 in z = s**2 <= 0.02945, error below 2**-56.

Over the tests' points exp and log err by less than 1 ULP, tanh and sigmoid by less than 2.5, subnormal results
included, in float32 and in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, nan

from nnc_core.base.dtype import DType, float32, float64, int32, int64
from nnc_core.codegen.scalar import Scalar

_LOG2_E = 1.4426950408889634


@dataclass(frozen=True, slots=True)
class _Format:
    """What the formulas need to know of a float format."""

    integer: DType  # of the same width
    mantissa: int  # stored bits
    bias: int
    smallest_normal: float
    sign_bit: int
    rounder: float  # 1.5 * 2**mantissa: adding it rounds to an integer, which then stands in the low bits
    rounder_bits: int
    sqrt_half_bits: int
    ln2_high: float  # few enough bits that the product with any exponent is exact
    ln2_low: float
    exp_range: tuple[float, float]  # beyond it exp is 0 or infinite
    tanh_limit: float  # beyond it tanh is 1
    exp: Sequence[float]
    log: Sequence[float]


_FLOAT32 = _Format(
    integer=int32, mantissa=23, bias=127, smallest_normal=2.0**-126, sign_bit=-(2**31),
    rounder=1.5 * 2.0**23, rounder_bits=0x4B400000, sqrt_half_bits=0x3F3504F3,
    ln2_high=0.693115234375, ln2_low=3.1946184945309415e-05, exp_range=(-104.0, 89.0), tanh_limit=10.0,
    exp=(
         0.5, 0.1666666716337204, 0.04166646674275398, 0.00833331048488617,
         0.0013933649752289057, 0.00019890991097781807),
    log=(
         0.3333333134651184, -0.2499999701976776, 0.20000715553760529, -0.1666780263185501,
         0.14249058067798615, -0.12425687164068222, 0.11685419827699661, -0.11479733884334564,
         0.06971611827611923),
)  # fmt: skip
_FLOAT64 = _Format(
    integer=int64, mantissa=52, bias=1023, smallest_normal=2.0**-1022, sign_bit=-(2**63),
    rounder=1.5 * 2.0**52, rounder_bits=0x4338000000000000, sqrt_half_bits=0x3FE6A09E667F3BCD,
    ln2_high=0.6931471803691238, ln2_low=1.9082149292705877e-10, exp_range=(-746.0, 710.0), tanh_limit=20.0,
    exp=(
         0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326136,
         0.0013888888888883748, 0.00019841269874820627, 2.4801587325547743e-05, 2.7557255400206422e-06,
         2.75572736431103e-07, 2.5105217004720745e-08, 2.0914686968086876e-09),
    log=(
         0.666666666666667, 0.3999999999989924, 0.2857142862609589, 0.2222221111514416,
         0.18182890556695602, 0.1533167403016786, 0.1461703754879165),
)  # fmt: skip
_FORMATS = {float32: _FLOAT32, float64: _FLOAT64}


def exp(x: Scalar) -> Scalar:
    """e**x; infinite above, subnormal and then 0 below."""
    form = _FORMATS[x.dtype]
    low, high = form.exp_range
    exponent, fraction = _exponent_and_fraction(x.maximum(low).minimum(high), form)
    half = exponent >> 1  # 2**exponent itself may be out of range; scaling twice rounds once
    return (fraction + 1.0) * _power_of_two(half, form) * _power_of_two(exponent - half, form)


def log(x: Scalar) -> Scalar:
    """Natural logarithm; -inf at zeros, NaN below."""
    form = _FORMATS[x.dtype]
    subnormal = x < form.smallest_normal
    shift = form.mantissa + 2
    bits = subnormal.select(x * 2.0**shift, x).bitcast(form.integer)
    exponent = (bits - form.sqrt_half_bits) >> form.mantissa
    mantissa = (bits - (exponent << form.mantissa)).bitcast(x.dtype)  # in [sqrt(1/2), sqrt(2))
    power = (exponent + form.rounder_bits).bitcast(x.dtype) - form.rounder  # exact, without a cast
    power = subnormal.select(power - float(shift), power)
    result = _LOG_PARTS[x.dtype](mantissa - 1.0, power, form)
    result = (x > 0.0).select(result, x.equal(0.0).select(x.lift(-inf), nan))
    return (x < inf).select(result, x)


def tanh(x: Scalar) -> Scalar:
    """Hyperbolic tangent: (e**2a - 1) / (e**2a + 1) of a = |x|.  Accurate at small a, keeps -0."""
    form = _FORMATS[x.dtype]
    magnitude = abs(x).minimum(form.tanh_limit)
    exponent, fraction = _exponent_and_fraction(magnitude + magnitude, form)
    scale = _power_of_two(exponent, form)
    grown = scale * fraction + (scale - 1.0)  # expm1
    sign = x.bitcast(form.integer) & form.sign_bit
    return ((grown / (grown + 2.0)).bitcast(form.integer) | sign).bitcast(x.dtype)


def sigmoid(x: Scalar) -> Scalar:
    """1 / (1 + e**-x), accurate in both tails."""
    decayed = exp(-abs(x))
    return (x < 0.0).select(decayed, 1.0) / (decayed + 1.0)


EXPANSIONS: dict[str, Callable[[Scalar], Scalar]] = {"exp": exp, "log": log, "tanh": tanh, "sigmoid": sigmoid}


def _exponent_and_fraction(x: Scalar, form: _Format) -> tuple[Scalar, Scalar]:
    """(k, f) with e**x = 2**k * (1 + f) and |f| <= 0.42; k is an integer of the form's width."""
    shifted = x * _LOG2_E + form.rounder
    whole = shifted - form.rounder
    rest = (x - whole * form.ln2_high) - whole * form.ln2_low
    fraction = rest + rest * rest * _polynomial(form.exp, rest)
    return shifted.bitcast(form.integer) - form.rounder_bits, fraction


def _power_of_two(exponent: Scalar, form: _Format) -> Scalar:
    dtype = float32 if form.integer == int32 else float64
    return ((exponent + form.bias) << form.mantissa).bitcast(dtype)


def _log_float32(f: Scalar, power: Scalar, form: _Format) -> Scalar:
    """log(1 + f) + power * ln(2), smallest terms first."""
    square = f * f
    small = f * square * _polynomial(form.log, f) + power * form.ln2_low - square * 0.5
    return (f + small) + power * form.ln2_high


def _log_float64(f: Scalar, power: Scalar, form: _Format) -> Scalar:
    """The same, by s = f / (2 + f): the error of the division meets small terms only."""
    s = f / (f + 2.0)
    square = s * s
    half = f * f * 0.5
    small = s * (half + square * _polynomial(form.log, square)) + power * form.ln2_low
    return power * form.ln2_high - ((half - small) - f)


_LOG_PARTS = {float32: _log_float32, float64: _log_float64}


def _polynomial(coefficients: Sequence[float], x: Scalar) -> Scalar:
    """Horner's rule; the constant term comes first."""
    total = x.lift(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total
