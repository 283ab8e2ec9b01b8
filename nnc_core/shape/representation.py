"""Rules of operators on how numbers are written: bits of integers, exponents and signs of floats."""

from __future__ import annotations

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType
from nnc_core.base.errors import DTypeError
from nnc_core.shape.elementwise import broadcast, floating, same
from nnc_core.type import TensorSpec


def integers(*xs: TensorSpec) -> TensorSpec:
    """Integers in, the same dtype out."""
    out = same(*xs)
    if not dt.is_integer(out.dtype):
        raise DTypeError(f"needs integers, not {out.dtype}", hint="cast with astype")
    return out


def sign_bit(x: TensorSpec) -> TensorSpec:
    """Floats in, booleans out."""
    return TensorSpec(floating(x).shape, dt.boolean)


def exponent(x: TensorSpec) -> TensorSpec:
    """Floats in, int32 out."""
    return TensorSpec(floating(x).shape, dt.int32)


def scaled(x: TensorSpec, n: TensorSpec) -> TensorSpec:
    """Floats and integers in, the floats' dtype out."""
    if not dt.is_integer(n.dtype):
        raise DTypeError(f"the exponents are {n.dtype}, not integers", hint="cast with astype, or multiply by exp2")
    floating(x)
    return TensorSpec(broadcast(x.shape, n.shape), x.dtype)


def bitcast(x: TensorSpec, dtype: DType) -> TensorSpec:
    """Another dtype of as many bits."""
    given, wanted = dt.bits_of(x.dtype), dt.bits_of(dtype)
    if given != wanted:
        raise DTypeError(f"{x.dtype} has {given} bits and {dtype} {wanted}", hint="cast numbers with astype")
    return TensorSpec(x.shape, dtype)
