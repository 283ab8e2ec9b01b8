"""Scalar instructions that NumPy has a function for, as the yardstick for renderers.

float16 and bfloat16 are computed in float32 and rounded after each instruction.  Casts of floats to integers
round towards zero and saturate, NaN gives 0; float64 to float16 rounds once, to bfloat16 and what is narrower through
float32.  Integers of 2 and 4 bits are the low bits of what a cast to int32 gives.
Shifts by a negative count, or by the width or more, shift everything out.  An integer power with a negative
exponent is its exact value rounded towards zero, and 0 for base 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from nnc_core.base.dtype import (
    DType,
    accumulator,
    bfloat16,
    boolean,
    float32,
    int32,
    is_float,
    is_integer,
    is_storage,
    is_stored_integer,
    opened,
)
from nnc_core.base.errors import NotSupportedError
from nnc_core.codegen.exact_fma import fma

Values = np.ndarray[Any, Any]


def rule(operation: str, source: DType) -> Callable[..., Values]:
    """The function of arrays of a dtype that an operation stands for; halves have become float32."""
    if (function := known_rule(operation, source)) is None:
        raise NotSupportedError(f"no scalar instruction {operation} on {source}")
    return function


def known_rule(operation: str, source: DType) -> Callable[..., Values] | None:
    """The rule, or None for an operation that NumPy has no function for."""
    table = _INTEGER if is_integer(source) else _FLOAT if is_float(source) else _BOOLEAN
    return table.get(operation) or _ANY.get(operation)


def cast(values: Values, dtype: DType) -> Values:
    """Convert values; see the module for what floats out of range give."""
    if is_storage(values.dtype) and values.dtype != dtype:
        values = values.astype(opened(values.dtype))
    if is_storage(dtype):
        return _stored(values, dtype)
    if dtype == boolean:
        return np.not_equal(values, 0)
    if is_integer(dtype) and is_float(values.dtype):
        return _saturate(values.astype(accumulator(values.dtype), copy=False), dtype)
    if is_float(dtype) and not is_float(values.dtype) and accumulator(dtype) != dtype:
        values = values.astype(float32)
    if dtype == bfloat16:
        values = values.astype(float32, copy=False)
    return values.astype(dtype, copy=False)


def _stored(values: Values, dtype: DType) -> Values:
    if values.dtype == dtype:
        return values
    if is_stored_integer(dtype):
        return (cast(values, int32) if is_float(values.dtype) else values).astype(dtype)
    return values.astype(float32, copy=False).astype(dtype)


def _saturate(values: Values, dtype: DType) -> Values:
    limits = np.iinfo(dtype)
    inside = (values > float(limits.min)) & (values < float(limits.max))
    result = np.where(inside, values, 0).astype(dtype)
    result = np.where(values >= float(limits.max), limits.max, result)
    return np.where(values <= float(limits.min), limits.min, result).astype(dtype, copy=False)


def minimum(a: Values, b: Values) -> Values:
    """NaN wins; the first of equals, so that zeros of either sign give one answer everywhere."""
    return np.where((a <= b) | (a != a), a, b)


def maximum(a: Values, b: Values) -> Values:
    return np.where((a >= b) | (a != a), a, b)


def _float_remainder(a: Values, b: Values) -> Values:
    """fmod moved to the divisor's sign, zeros included."""
    rest = np.fmod(a, b)
    moved = np.where((b < 0) != (rest < 0), rest + b, rest)
    return np.where(b == 0, rest, np.where(rest == 0, np.copysign(np.zeros_like(rest), b), moved))


def _float_floor_divide(a: Values, b: Values) -> Values:
    """(a - remainder) / b, which is nearly an integer, made one; a / b for b = 0."""
    rest = np.fmod(a, b)
    quotient = (a - rest) / b
    quotient = np.where((rest != 0) & ((b < 0) != (rest < 0)), quotient - 1, quotient)
    whole = np.floor(quotient)
    whole = np.where(quotient - whole > 0.5, whole + 1, whole)
    whole = np.where(quotient == 0, np.copysign(np.zeros_like(quotient), a / b), whole)
    return np.where(b == 0, a / b, whole)


def integer_power(base: Values, exponent: Values) -> Values:
    """Wraps; a negative exponent gives the exact value rounded towards zero, and 0 for base 0."""
    one = np.ones_like(base)
    result, square, left = np.broadcast_arrays(one, base, np.maximum(exponent, 0))
    with np.errstate(over="ignore"):  # NumPy minds it where there are no dimensions
        while left.any():
            result = np.where(left & 1, result * square, result)
            square, left = square * square, left >> 1
    odd = np.where(exponent & 1, base, one)
    inverse = np.where(base == 1, one, np.where(base == np.array(-1).astype(base.dtype), odd, 0))
    return np.where(exponent < 0, inverse, result).astype(base.dtype, copy=False)


def _shift_left(a: Values, b: Values) -> Values:
    fits = _count_fits(a, b)
    shifted = np.left_shift(a, np.where(fits, b, 0).astype(b.dtype))
    return np.where(fits, shifted, np.zeros_like(a))


def _shift_right(a: Values, b: Values) -> Values:
    fits = _count_fits(a, b)
    shifted = np.right_shift(a, np.where(fits, b, 0).astype(b.dtype))
    emptied: Values = np.negative(np.less(a, 0).astype(a.dtype))
    return np.where(fits, shifted, emptied)


def _count_fits(a: Values, count: Values) -> Values:
    fits: Values = (count >= 0) & (count < a.dtype.itemsize * 8)
    return fits


def _multiply_high(a: Values, b: Values) -> Values:
    product = np.multiply(a, b, dtype=np.uint64)
    high: Values = np.right_shift(product, 32).astype(np.uint32)
    return high


def _sigmoid(x: Values) -> Values:
    return 1 / (1 + np.exp(-x))


_Table = dict[str, Callable[..., Values]]
_ANY: _Table = {
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal, "minimum": minimum, "maximum": maximum,
}  # fmt: skip
_BOOLEAN: _Table = {
    "bitwise_and": np.logical_and, "bitwise_or": np.logical_or, "bitwise_xor": np.logical_xor,
    "bitwise_invert": np.logical_not,
}  # fmt: skip
_NUMBER: _Table = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "negative": np.negative, "abs": np.abs,
    "sign": np.sign,
}  # fmt: skip
_INTEGER: _Table = _NUMBER | {
    "floor_divide": np.floor_divide, "remainder": np.remainder, "fma": lambda a, b, c: a * b + c,
    "floor": np.positive, "ceil": np.positive, "trunc": np.positive, "round": np.positive,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "bitwise_invert": np.invert, "shift_left": _shift_left, "shift_right": _shift_right,
    "multiply_high": _multiply_high, "power": integer_power, "fmod": np.fmod, "gcd": np.gcd,
}  # fmt: skip
_FLOAT: _Table = _NUMBER | {
    "divide": np.divide, "floor_divide": _float_floor_divide, "remainder": _float_remainder, "fma": fma,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "sqrt": np.sqrt,
    "exp": np.exp, "log": np.log, "tanh": np.tanh, "sigmoid": _sigmoid, "sin": np.sin, "cos": np.cos,
    "power": np.power, "fmod": np.fmod, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "exp2": np.exp2, "expm1": np.expm1, "log1p": np.log1p, "log2": np.log2, "log10": np.log10,
    "cbrt": np.cbrt, "hypot": np.hypot,
}  # fmt: skip


def expm1(x: Any) -> Any:
    """NumPy's, with the values at complex infinities that the Array API asks for."""
    with np.errstate(all="ignore"):
        y = np.expm1(x)
    if x.dtype.kind != "c":
        return y
    far = ~np.isfinite(x.real)
    if not far.any():
        return y
    y, x = np.array(y), np.asarray(x)
    for where, value in _expm1_at_ends(x.real, x.imag):
        y[where & far] = value[where & far]
    return y[()]


def _expm1_at_ends(real: Any, imag: Any) -> Iterator[tuple[Any, Any]]:
    """Places where exp(x) - 1 is no product of a number and a direction, and its value there."""
    wild, flat = ~np.isfinite(imag), imag == 0
    whole = np.empty(np.shape(real), np.result_type(real, np.complex64))
    whole.real, whole.imag = real, imag
    yield flat & ~np.isneginf(real), whole
    yield wild & np.isposinf(real), np.full_like(whole, complex(np.inf, np.nan))
    yield wild & np.isneginf(real), np.full_like(whole, -1)


def log1p(x: Any) -> Any:
    """NumPy's, which loses small complex numbers, with half of log(1 + (|1 + x|**2 - 1)) as the real part there."""
    with np.errstate(all="ignore"):
        y = np.log1p(x)
        if x.dtype.kind != "c":
            return y
        near = np.abs(x) < 0.5
        if not near.any():
            return y
        y, a, b = np.array(y), x.real, x.imag
        y.real = np.where(near, np.log1p(a * (a + 2) + b * b) / 2, y.real)
    return y[()]
