"""The same numbers as another dtype, and the same bits as another dtype."""

from __future__ import annotations

from math import inf, nan
from typing import Any

from nnc_core.base.dtype import DType, float8_e8m0fnu, float32, is_float, is_storage, opened
from nnc_core.base.errors import AttributeValueError
from nnc_core.codegen.storage import ENCODINGS
from nnc_core.functions.dtypes import finfo
from nnc_core.type import admit_numpy
from nnc_core.values.arguments import ArrayLike, as_value, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.operands import copied, value_of
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["astype", "bitcast"]

ROUND_MODES = ("nearest", "up", "down")


@names_itself
def astype(x: ArrayLike, dtype: Any, /, *, copy: bool = True, device: Any = None, saturate: bool = False,
           round_mode: str = "nearest") -> Tensor:
    """The elements converted to another dtype, on another device if one is named; where both are the same a copy, or
    with copy=False the value itself.

    Floats become integers rounded towards zero, saturated at the ends, NaN as 0; integers of 2 and 4 bits are the low
    bits of the int32 that would be.  Floats become floats of at most 8 bits rounded to nearest, halves to even; what
    is beyond becomes infinity or, without one, NaN, with `saturate` the largest finite number; that of float4_e2m1fn
    in any case.  To float8_e8m0fnu, which has powers of two alone, `round_mode` says which of two: the nearest, the
    one that is not less ("up") or not greater ("down"); what is not positive becomes NaN, zeros with `saturate` the
    least.  Both options are without effect on other dtypes.
    """
    wanted = admit_numpy(dtype)
    v = as_value(x) if device is None else value_of(Tensor(as_value(x)).to_device(device))
    if saturate or round_mode != "nearest":
        v = v if wanted == v.dtype else prepared(v, wanted, saturate, round_mode)
    if wanted != v.dtype:
        return Tensor(F.cast(v, dtype=wanted))
    return Tensor(copied(v) if copy and isinstance(x, Tensor) and v is x._value else v)


@names_itself
def bitcast(x: ArrayLike, dtype: Any, /) -> Tensor:
    """The bits of the elements, read as another dtype of as many bits each: a view where the device has views.

    Complex numbers of 64 bits have their real part in the lower half.  Of bytes read as booleans those that are not
    zero are true.  The derivative is zero.
    """
    wanted = admit_numpy(dtype)
    v = as_value(x)
    return Tensor(v if wanted == v.dtype else F.bitcast(v, dtype=wanted))


# ---- floats of 8 bits
def prepared(v: Value, wanted: DType, saturate: bool, round_mode: str = "nearest") -> Value:
    """Numbers of which the plain cast makes those that were asked for."""
    if round_mode not in ROUND_MODES:
        raise AttributeValueError(f"round_mode {round_mode!r} is none of {', '.join(ROUND_MODES)}")
    if wanted == float8_e8m0fnu and (saturate or round_mode != "nearest"):
        return _power_of_two(_floats(v), round_mode, saturate)
    if not saturate or wanted not in ENCODINGS:
        return v
    largest = finfo(wanted).max
    return F.clip(_floats(v), -largest, largest)


def _floats(v: Value) -> Value:
    """As floats that hold the powers of two of float8_e8m0fnu too."""
    if is_storage(v.dtype):
        v = F.cast(v, dtype=opened(v.dtype))
    return v if is_float(v.dtype) and v.dtype.itemsize >= float32.itemsize else F.cast(v, dtype=float32)


def _power_of_two(v: Value, round_mode: str, saturate: bool) -> Value:
    if round_mode != "nearest":
        exponent = F.exponent(v)
        below = F.subtract(exponent, 1)
        if round_mode == "up":
            below = F.where(F.equal(F.mantissa(v), 0.5), below, exponent)
        usual = F.logical_and(F.greater(v, 0.0), F.less(v, inf))
        v = F.where(usual, F.ldexp(F.full_like(v, 1.0), below), v)
    if not saturate:
        return v
    limits = finfo(float8_e8m0fnu)
    return F.where(F.less(v, 0.0), nan, F.clip(v, limits.smallest_normal, limits.max))
