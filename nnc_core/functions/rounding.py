"""Rounding, remainders, and how floats are made up."""

from __future__ import annotations

from math import inf, nan
from typing import NamedTuple

from nnc_core.base.dtype import float64, is_complex, is_integer
from nnc_core.functions.dtypes import finfo, iinfo
from nnc_core.functions.pointwise import binary, unary
from nnc_core.type import whole
from nnc_core.values.arguments import ArrayLike, as_operands, as_value, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.elementwise_programs import of_elements
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value
from nnc_core.values.whole import as_whole

__all__ = [
    "ceil", "copysign", "divmod", "float_power", "floor", "fmax", "fmin", "fmod", "frexp", "heaviside", "ldexp", "modf",
    "nextafter", "round", "signbit", "spacing", "trunc",
]  # fmt: skip

floor, ceil, trunc = unary("floor"), unary("ceil"), unary("trunc")
fmod, fmax, fmin, heaviside = binary("fmod"), binary("fmax"), binary("fmin"), by_shapes(binary("heaviside"))
copysign, nextafter, signbit = binary("copysign"), binary("nextafter"), unary("signbit")
ldexp = by_shapes(binary("ldexp"))


class Divmod(NamedTuple):
    """x1 = quotient * x2 + remainder, the quotient rounded towards minus infinity."""

    quotient: Tensor
    remainder: Tensor


class Frexp(NamedTuple):
    """x = mantissa * 2**exponent with 1/2 <= |mantissa| < 1."""

    mantissa: Tensor
    exponent: Tensor


class Modf(NamedTuple):
    """x = fractional + integral, both with the sign of x."""

    fractional: Tensor
    integral: Tensor


@by_shapes
@names_itself
def round(x: ArrayLike, /, decimals: int = 0) -> Tensor:
    """Rounded to that many decimals, halves to even; negative decimals round to tens, hundreds ...  Of
    complex numbers both parts."""
    decimals = whole(decimals, "decimals")
    v = as_value(x)
    if decimals == 0:
        return Tensor(F.round(v))
    if is_complex(v.dtype):
        return Tensor(F.complex_(_floats_rounded(F.real(v), decimals), _floats_rounded(F.imag(v), decimals)))
    if is_integer(v.dtype):
        return Tensor(v if decimals > 0 else _integers_rounded(v, 10**-decimals))
    return Tensor(_floats_rounded(v, decimals))


def _integers_rounded(v: Value, unit: int) -> Value:
    if unit > iinfo(v.dtype).max:
        return F.full_like(v, 0)
    quotient = F.floor_divide(v, unit)
    rest = F.subtract(v, F.multiply(quotient, unit))
    odd = F.equal(F.bitwise_and(quotient, 1), 1)
    up = F.logical_or(F.greater(rest, unit // 2), F.logical_and(F.equal(rest, unit // 2), odd))
    return F.multiply(F.add(quotient, F.cast(up, dtype=v.dtype)), unit)


def _floats_rounded(v: Value, decimals: int) -> Value:
    """Round floats; those too large to have such decimals stay as they are."""
    unit = 10.0 ** min(abs(decimals), 308)
    if unit > finfo(v.dtype).max or abs(decimals) > 308:
        return v if decimals > 0 else F.where(F.less(F.abs(v), inf), F.copysign(F.full_like(v, 0), v), v)
    shift, back = (F.multiply, F.divide) if decimals > 0 else (F.divide, F.multiply)
    if (found := as_whole("rounded", (v,), (unit, decimals > 0))) is not None:
        return found  # type: ignore[no-any-return]
    shifted = shift(v, unit)
    return F.where(F.less(F.abs(shifted), inf), back(F.round(shifted), unit), v)


@by_shapes
@names_itself
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> Divmod:
    """floor_divide and remainder."""
    a, b = as_operands(x1, x2)
    return Divmod(Tensor(F.floor_divide(a, b)), Tensor(F.remainder(a, b)))


@by_shapes
@names_itself
def spacing(x: ArrayLike, /) -> Tensor:
    """The distance to the next float away from zero, with the sign of x; inf for the largest, NaN for infinities."""
    return Tensor(_spacing(_as_float(as_value(x))))


@of_elements
def _spacing(v: Value) -> Value:
    size = F.abs(v)
    gap = F.subtract(F.nextafter(size, F.full_like(v, inf)), size)
    return F.copysign(F.where(F.less(size, inf), gap, nan), v)


@by_shapes
@names_itself
def frexp(x: ArrayLike, /) -> Frexp:
    """The mantissa and the int32 exponent: x = mantissa * 2**exponent with 1/2 <= |mantissa| < 1; zeros, infinities and
    NaN are their own mantissa."""
    v = as_value(x)
    return Frexp(Tensor(F.mantissa(v)), Tensor(F.exponent(v)))


@by_shapes
@names_itself
def modf(x: ArrayLike, /) -> Modf:
    """The fractional and the integral part, both with the sign of x; of integers as floats of the default dtype."""
    v = _as_float(as_value(x))
    return Modf(Tensor(_fraction(v)), Tensor(F.trunc(v)))


@of_elements
def _fraction(v: Value) -> Value:
    nothing = F.copysign(F.full_like(v, 0), v)
    return F.where(F.equal(F.abs(v), inf), nothing, F.fmod(v, F.full_like(v, 1)))


def _as_float(v: Value) -> Value:
    return F.multiply(v, 1.0) if is_integer(v.dtype) else v


@by_shapes
@names_itself
def float_power(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1**x2 in float64, so that integers have negative and fractional powers too."""
    base, exponent = as_values(x1, x2)
    return Tensor(F.power(F.cast(base, dtype=float64), F.cast(exponent, dtype=float64)))
