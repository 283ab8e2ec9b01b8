"""Float formats as the expansions need them, and the steps that they share.

They use additions, multiplications, divisions, square roots, bit operations and, in float32, fused multiply-adds: so
CPU compilers vectorise them, and every device gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nnc_core.base.dtype import DType, float32, float64, int32, int64
from nnc_core.codegen.scalar import BodyBuilder, Number, Scalar


@dataclass(frozen=True, slots=True)
class Format:
    """A float format.  `dtype` is as wide as `integer`; `mantissa` counts its stored bits."""

    dtype: DType
    integer: DType
    mantissa: int
    bias: int
    low_half: int
    """Bits that `head` clears, so that the product of two heads is exact."""

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def sign_bit(self) -> int:
        return -(1 << (8 * self.dtype.itemsize - 1))

    @property
    def rounder(self) -> float:
        """Adding it rounds to an integer, which then stands in the low bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def rounder_bits(self) -> int:
        return ((self.bias + self.mantissa) << self.mantissa) + (1 << (self.mantissa - 1))


FORMATS = {float32: Format(float32, int32, 23, 127, 12), float64: Format(float64, int64, 52, 1023, 27)}
Coefficients = dict[DType, Sequence[float]]


def form_of(x: Scalar) -> Format:
    return FORMATS[x.dtype]


def multiply_add(a: Scalar, b: Scalar | Number, c: Scalar | Number) -> Scalar:
    """a * b + c, rounded once in float32.  In float64 it is rounded twice: one rounding takes NumPy, which has no such
    function, 40 operations, but 4 where a format is wider than the product."""
    return a.fma(b, c) if a.dtype == float32 else a * b + c


def polynomial(coefficients: Sequence[float], x: Scalar) -> Scalar:
    """Horner's rule; the constant term comes first."""
    total = x.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = multiply_add(total, x, coefficient)
    return total


def nearest_integer(x: Scalar, factor: float = 1.0) -> tuple[Scalar, Scalar]:
    """The integer nearest to a small x, or to x times a factor: as a float, and as an integer of the same width.
    Halves of x itself go to even."""
    form = form_of(x)
    shifted = x + form.rounder if factor == 1.0 else multiply_add(x, factor, form.rounder)
    return shifted - form.rounder, shifted.bitcast(form.integer) - form.rounder_bits


def as_float(whole: Scalar, form: Format) -> Scalar:
    """A small integer as a float, without a cast."""
    return (whole + form.rounder_bits).bitcast(form.dtype) - form.rounder


def power_of_two(exponent: Scalar, form: Format) -> Scalar:
    """2**exponent, which has to be a normal number."""
    return ((exponent + form.bias) << form.mantissa).bitcast(form.dtype)


def scaled_down(x: Scalar, exponent: Scalar, form: Format) -> Scalar:
    """x * 2**exponent for x near 1 and an exponent that is not positive; rounded once."""
    if _scales(x):
        return x.apply("scale", as_float(exponent, form))
    room = form.bias // 2 + 1
    return x * power_of_two(exponent + room, form) * 2.0**-room


def scaled(x: Scalar, exponent: Scalar, form: Format) -> Scalar:
    """x * 2**exponent for |x| near 1: in two steps, as the power itself may be out of range; rounded once."""
    if _scales(x):
        return x.apply("scale", as_float(exponent, form))
    half = exponent >> 1
    return x * power_of_two(half, form) * power_of_two(exponent - half, form)


def _scales(x: Scalar) -> bool:
    """Tell whether the target of an expansion has an instruction for it."""
    return isinstance(x.builder, BodyBuilder) and "scale" in x.builder.direct


def with_sign_of(magnitude: Scalar, x: Scalar) -> Scalar:
    """`magnitude`, whose sign bit is clear, with the sign bit of x."""
    form = form_of(x)
    return (magnitude.bitcast(form.integer) | (x.bitcast(form.integer) & form.sign_bit)).bitcast(x.dtype)


def head(x: Scalar) -> Scalar:
    """x without the lower half of its digits; the rest, x - head(x), is exact."""
    form = form_of(x)
    return (x.bitcast(form.integer) & -(1 << form.low_half)).bitcast(x.dtype)
