"""Numbers of at most 8 bits in loop nests, which know them as bytes: read as float32 or integers, and written again.

What there is are additions, shifts and choices of integers, so that every renderer and every device has the casts,
with the same bits.  They round once from float32, halves to even, as ml_dtypes has it: float64 becomes float32 first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import (
    DType,
    bits_of,
    boolean,
    float32,
    int32,
    is_integer,
    is_stored_integer,
    uint8,
)

if TYPE_CHECKING:
    from nnc_core.codegen.scalar import Scalar

_MANTISSA, _BIAS, _INFINITY, _NAN = 23, 127, 0x7F800000, 0x7FC00000
_MAGNITUDE = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class Encoding:
    """A float format with a sign: which bits stand for what, the sign aside.

    `largest` is the largest finite number, `beyond` what becomes of larger ones, `nan` the first of what is NaN or None
    where nothing is.  `one_zero`: the bits of minus zero are the one NaN, a negative one.
    """

    mantissa: int
    bias: int
    largest: int
    beyond: int
    nan: int | None
    one_zero: bool = False

    @property
    def sign(self) -> int:
        """The bit of the sign."""
        return self.largest.bit_length()


ENCODINGS: Mapping[DType, Encoding] = {
    dt.float8_e4m3fn: Encoding(3, 7, 0x7E, 0x7F, 0x7F),
    dt.float8_e4m3fnuz: Encoding(3, 8, 0x7F, 0x80, None, one_zero=True),
    dt.float8_e5m2: Encoding(2, 15, 0x7B, 0x7C, 0x7D),
    dt.float8_e5m2fnuz: Encoding(2, 16, 0x7F, 0x80, None, one_zero=True),
    dt.float4_e2m1fn: Encoding(1, 1, 0x7, 0x7, None),
}  # fmt: skip
"""Those with signs: float8_e8m0fnu has none, and nothing but exponents."""
_QUIET = {dt.float8_e5m2: 0x7E}
"""What NaN becomes where that is not the first of them."""


class StoredScalar:
    """An element of a storage dtype: its bits, as uint8."""

    __slots__ = ("bits", "dtype")

    def __init__(self, bits: Scalar, dtype: DType) -> None:
        self.bits, self.dtype = bits, dtype

    def opened(self) -> Scalar:
        """The number: int32 of integers, float32 of floats."""
        bits = self.bits.cast(int32)
        if is_stored_integer(self.dtype):
            return _integer(bits, self.dtype)
        return _power(bits) if self.dtype == dt.float8_e8m0fnu else _float(bits, ENCODINGS[self.dtype])

    def constant(self, value: Any) -> StoredScalar:
        """A constant beside this element, of its dtype."""
        return StoredScalar(self.bits.constant(byte_of(value, self.dtype)), self.dtype)

    def chosen(self, condition: Scalar, other: Any) -> StoredScalar:
        """This where the condition holds, else the other."""
        b = other if isinstance(other, StoredScalar) else self.constant(other)
        return StoredScalar(self.bits.chosen(condition, b.bits), self.dtype)

    def equal(self, other: StoredScalar) -> Scalar:
        return self.opened().equal(other.opened())

    def not_equal(self, other: Any) -> Scalar:
        return self.opened().not_equal(other.opened() if isinstance(other, StoredScalar) else other)

    def cast(self, dtype: DType) -> Any:
        """The number converted."""
        return self if dtype == self.dtype else self.opened().cast(dtype)


def byte_of(value: Any, dtype: DType) -> int:
    """The bits that a number has in a storage dtype."""
    return int(np.asarray(value).astype(dtype).view(np.uint8))


# ---- reading
def _integer(bits: Scalar, dtype: DType) -> Scalar:
    above = 32 - bits_of(dtype)
    if dtype in (dt.int4, dt.int2):
        return (bits << above) >> above
    return bits & ((1 << bits_of(dtype)) - 1)


def _float(bits: Scalar, form: Encoding) -> Scalar:
    """Exponents are moved by the difference of the biases; subnormal numbers are counts of the least one."""
    magnitude = bits & ((1 << form.sign) - 1)
    sign = ((bits >> form.sign) & 1) << 31
    least = 2.0 ** (1 - form.bias - form.mantissa)
    moved = (magnitude << (_MANTISSA - form.mantissa)) + ((_BIAS - form.bias) << _MANTISSA)
    counted: Scalar = (magnitude.cast(float32) * least).bitcast(int32)
    found = (magnitude < 1 << form.mantissa).select(counted, moved)
    if form.one_zero:
        is_nan = magnitude.equal(0) & sign.not_equal(0)
        return is_nan.select(sign.constant(_NAN - (1 << 31)), found | sign).bitcast(float32)
    if form.nan is not None:
        if form.beyond != form.nan:
            found = magnitude.equal(form.beyond).select(magnitude.constant(_INFINITY), found)
        found = (magnitude >= form.nan).select(magnitude.constant(_NAN), found)
    return (found | sign).bitcast(float32)


def _power(bits: Scalar) -> Scalar:
    """2**(bits - 127), the first of which is no normal float32; the last is NaN."""
    found = bits.equal(0).select(bits.constant(1 << (_MANTISSA - 1)), bits << _MANTISSA)
    return bits.equal(0xFF).select(bits.constant(_NAN), found).bitcast(float32)


# ---- writing
def stored(x: Scalar, dtype: DType) -> StoredScalar:
    """A number as a storage dtype has it."""
    if is_stored_integer(dtype):
        whole = x if is_integer(x.dtype) or x.dtype == boolean else x.cast(int32)
        return StoredScalar(whole.cast(uint8) & ((1 << bits_of(dtype)) - 1), dtype)
    bits = x.cast(float32).bitcast(int32)
    found = _exponent(bits) if dtype == dt.float8_e8m0fnu else _rounded(bits, dtype)
    return StoredScalar(found.cast(uint8), dtype)


def _rounded(bits: Scalar, dtype: DType) -> Scalar:
    """Large numbers lose digits, halves to even; small ones become counts of the least, by adding what leaves just the
    digits that count."""
    form = ENCODINGS[dtype]
    magnitude, negative = bits & _MAGNITUDE, (bits >> 31) & 1
    lost = _MANTISSA - form.mantissa
    moved = magnitude - ((_BIAS - form.bias) << _MANTISSA)
    normal = (moved + ((1 << (lost - 1)) - 1) + ((moved >> lost) & 1)) >> lost
    room = 2.0 ** (1 - form.bias + lost)
    small = (magnitude.bitcast(float32) + room).bitcast(int32) - ((1 - form.bias + lost + _BIAS) << _MANTISSA)
    found = (magnitude < ((_BIAS + 1 - form.bias) << _MANTISSA)).select(small, normal)
    found = (found > form.largest).select(magnitude.constant(form.beyond), found)
    is_nan = magnitude > _INFINITY
    if form.one_zero:
        found = is_nan.select(magnitude.constant(form.beyond), found)
        return (found.equal(0) | found.equal(form.beyond)).select(found, found | (negative << form.sign))
    if form.nan is None:  # minus zero, and zero of -NaN
        found, negative = is_nan.select(magnitude.constant(0), found), is_nan.select(negative ^ 1, negative)
    else:
        found = is_nan.select(magnitude.constant(_QUIET.get(dtype, form.nan)), found)
    return found | (negative << form.sign)


def _exponent(bits: Scalar) -> Scalar:
    """The nearest power of two, the larger one of two, and between the first two; NaN of what is not positive, or
    beyond."""
    normal = (bits + (1 << (_MANTISSA - 1))) >> _MANTISSA
    small: Scalar = (bits > 1 << (_MANTISSA - 1)).cast(int32)
    found = (bits < 1 << _MANTISSA).select(small, normal)
    return ((bits <= 0) | (bits >= _INFINITY)).select(bits.constant(0xFF), found)
