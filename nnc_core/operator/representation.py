"""Floats as sign, exponent and digits: copysign, signbit, nextafter, ldexp, and the two parts of frexp."""

from __future__ import annotations

from typing import Any, Generic

import numpy as np

from nnc_core.base.dtype import DType, accumulator, float32, float64, int16, int32, int64
from nnc_core.codegen.scalar import Scalar
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.references import widened
from nnc_core.shape import elementwise as rule
from nnc_core.shape import representation

_BITS = {2: int16, 4: int32, 8: int64}
_MANTISSA, _BIAS = {float32: 23, float64: 52}, {float32: 127, float64: 1023}


def _bits(x: Scalar) -> tuple[Scalar, int]:
    """As an integer of the same width, and that integer's sign bit."""
    integer = _BITS[x.dtype.itemsize]
    return x.bitcast(integer), int(np.iinfo(integer).min)


def _copysign(x: Scalar, y: Scalar) -> Scalar:
    (magnitude, sign), (other, _) = _bits(x), _bits(y)
    return ((magnitude & ~sign) | (other & sign)).bitcast(x.dtype)


def _next_after(x: Scalar, y: Scalar) -> Scalar:
    """Bits grow with the magnitude."""
    (bits, sign), (other, _) = _bits(x), _bits(y)
    grows = x < y
    outward = (grows & (x > 0)) | (~grows & (x < 0))
    moved = outward.select(bits + 1, bits - 1)
    first = (other & sign) | 1  # beside zero
    moved = x.equal(0).select(first, moved).bitcast(x.dtype)
    known = x.equal(x) & y.equal(y)
    return x.equal(y).select(y, known.select(moved, x + y))


def _numpy_next_after(x: Any, y: Any) -> Any:
    """NumPy's gives x where both are zeros of float16, and y elsewhere."""
    return np.where(np.equal(x, y), y, np.nextafter(x, y))


def _parts(x: Scalar) -> tuple[Scalar, Scalar]:
    """(m, e) with x = m * 2**e and 1/2 <= |m| < 1, of a finite float32 or float64 that is not 0."""
    mantissa, bias = _MANTISSA[x.dtype], _BIAS[x.dtype]
    subnormal = abs(x) < 2.0 ** (1 - bias)
    bits, _ = _bits(subnormal.select(x * 2.0 ** (mantissa + 1), x))
    field = ((1 << (_BITS[x.dtype.itemsize].itemsize * 8 - 1)) - 1) ^ ((1 << mantissa) - 1)
    exponent = ((bits & field) >> mantissa) - (bias - 1)
    exponent = subnormal.select(exponent - (mantissa + 1), exponent)
    return ((bits & ~field) | ((bias - 1) << mantissa)).bitcast(x.dtype), exponent


def _ordinary(x: Scalar) -> Scalar:
    """Finite and not 0."""
    return (abs(x) < np.inf) & x.not_equal(0)


def _mantissa(x: Scalar) -> Scalar:
    wide: Scalar = x.cast(accumulator(x.dtype))
    result: Scalar = _ordinary(wide).select(_parts(wide)[0], wide).cast(x.dtype)
    return result


def _exponent(x: Scalar) -> Scalar:
    wide: Scalar = x.cast(accumulator(x.dtype))
    exponent = _parts(wide)[1]
    result: Scalar = _ordinary(wide).select(exponent, 0).cast(int32)
    return result


def _scale(x: Scalar, n: Scalar) -> Scalar:
    """Multiply by two powers of two that are in range, so that the result is rounded once."""
    wide: Scalar = x.cast(accumulator(x.dtype))
    mantissa, exponent = _parts(wide)
    bias, width = _BIAS[wide.dtype], _MANTISSA[wide.dtype]
    total = exponent + _limited(n, 4 * bias).cast(exponent.dtype)
    total = total.maximum(-bias - width - 2).minimum(bias + 3)
    half = total >> 1
    first, second = (((k + bias) << width).bitcast(wide.dtype) for k in (half, total - half))
    result: Scalar = _ordinary(wide).select(mantissa * first * second, wide).cast(x.dtype)
    return result


def _limited(n: Scalar, bound: int) -> Scalar:
    """n brought into [-bound, bound], as far as its dtype reaches beyond it."""
    limits = np.iinfo(n.dtype)
    n = n.minimum(bound) if limits.max > bound else n
    return n.maximum(-bound) if limits.min < -bound else n


def _numpy_scale(x: Any, n: Any) -> Any:
    """np.ldexp takes no unsigned counts, and none of bfloat16."""
    dtype: DType = np.asarray(x).dtype
    limits = np.iinfo(np.asarray(n).dtype)
    counts = np.clip(n, max(-9999, limits.min), min(9999, limits.max)).astype(np.int32)
    return np.asarray(np.ldexp(np.asarray(x).astype(accumulator(dtype)), counts)).astype(dtype, copy=False)


class Representation(Base[V], Generic[V]):
    """Integers become floats of the default dtype."""

    @op(infer=rule.floating, reference=np.copysign, promote=ALL_INPUTS, to_float=True, inplace=(0, 1), exact=True,
        scalar=_copysign, partials=(lambda F, y, a, b: F.multiply(F.sign(a), F.copysign(F.full_like(a, 1), b)), None))
    def copysign(self, a: V | float, b: V | float) -> V:
        """|a| with the sign of b."""
        ...

    @op(infer=representation.sign_bit, reference=np.signbit, promote=ALL_INPUTS, to_float=True, exact=True,
        differentiable=False, scalar=lambda x: _bits(x)[0] < 0)
    def signbit(self, x: V | float) -> V:
        """True where the sign is minus, that of zeros and NaN included."""
        ...

    @op(infer=rule.floating, reference=_numpy_next_after, promote=ALL_INPUTS, to_float=True, inplace=(0, 1), exact=True,
        scalar=_next_after, partials=(1, None))
    def nextafter(self, a: V | float, b: V | float) -> V:
        """The float beside a in the direction of b.  To differentiation it is a."""
        ...

    @op(infer=representation.scaled, reference=_numpy_scale, promote=(0,), to_float=True, inplace=(0,), exact=True,
        scalar=_scale, vjp=(lambda F, g, y, x, n: F.sum_to(F.ldexp(g, n), x.shape), None),
        jvp=lambda F, t, y, x, n: None if t[0] is None else F.ldexp(t[0], n))
    def ldexp(self, x: V | float, n: V | int) -> V:
        """x * 2**n, for integers n, rounded once."""
        ...

    @op(infer=rule.floating, reference=widened(lambda x: np.frexp(x)[0]), promote=ALL_INPUTS, to_float=True,
        inplace=(0,), exact=True, scalar=_mantissa,
        partials=(lambda F, y, x: F.ldexp(F.full_like(x, 1), F.negative(F.exponent(x))),))
    def mantissa(self, x: V | float) -> V:
        """m in x = m * 2**e with 1/2 <= |m| < 1; zeros, infinities and NaN themselves."""
        ...

    @op(infer=representation.exponent, promote=ALL_INPUTS, to_float=True, exact=True, differentiable=False,
        reference=lambda x: np.frexp(np.asarray(x).astype(accumulator(np.asarray(x).dtype)))[1], scalar=_exponent)
    def exponent(self, x: V | float) -> V:
        """e in x = m * 2**e with 1/2 <= |m| < 1, as int32; 0 for zeros, infinities and NaN."""
        ...
