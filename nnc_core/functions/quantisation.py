"""Real numbers as integers with a scale and a zero point, as ONNX has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, float32, int8, int32, is_float, is_integer, uint8
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.shape.axes import normalise_axis
from nnc_core.type import admit_numpy
from nnc_core.values.arguments import ArrayLike, as_value, as_value_beside, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["dequantize_linear", "dynamic_quantize_linear", "quantize_linear"]


@names_itself
def quantize_linear(x: ArrayLike, scale: ArrayLike, zero_point: ArrayLike = 0, /, *, axis: int | None = None,
                    dtype: Any = None) -> Tensor:
    """round(x / scale) + zero_point, halves to even, saturated at the ends of `dtype`; NaN gives 0.

    `scale` and `zero_point` are numbers, or vectors along `axis`.  `dtype` is an integer one of at most 16 bits, by
    default that of a zero point that is an array, and int8 beside a number.
    """
    v = _real(x)
    wanted = admit_numpy(dtype) if dtype is not None else _dtype_of(zero_point)
    if not is_integer(wanted) or wanted.itemsize > 2:
        raise DTypeError(f"dtype {wanted} is no integer one of at most 16 bits", hint="int8 or uint8")
    counts = F.round(F.divide(v, _along(as_value_beside(scale, v), v, axis, "scale")))
    zero = _along(zero_point_beside(zero_point, v, wanted), v, axis, "zero_point")
    exact = float32 if v.dtype.itemsize < 4 else v.dtype
    return Tensor(F.cast(F.add(F.cast(counts, dtype=exact), F.cast(zero, dtype=exact)), dtype=wanted))


@names_itself
def dequantize_linear(x: ArrayLike, scale: ArrayLike, zero_point: ArrayLike = 0, /, *,
                      axis: int | None = None) -> Tensor:
    """(x - zero_point) * scale in the dtype of `scale`, float32 if that is a number.

    `x` are integers of at most 32 bits; `scale` and `zero_point` are numbers, or vectors along `axis`.
    """
    v = as_value(x)
    if not is_integer(v.dtype) or v.dtype.itemsize > int32.itemsize:
        raise DTypeError(f"x is {v.dtype}, not an integer of at most 32 bits", hint="quantize_linear makes such")
    step = as_value(np.float32(scale) if isinstance(scale, (int, float)) else scale, v.stack)
    if not is_float(step.dtype):
        raise DTypeError(f"scale is {step.dtype}, not real floating-point", hint="cast it with astype")
    counts = F.cast(v, dtype=int32)
    if not _is_zero(zero_point):
        zero = _along(zero_point_beside(zero_point, v, v.dtype), v, axis, "zero_point")
        counts = F.subtract(counts, F.cast(zero, dtype=int32))
    return Tensor(F.multiply(F.cast(counts, dtype=step.dtype), _along(step, v, axis, "scale")))


@names_itself
def dynamic_quantize_linear(x: ArrayLike, /) -> tuple[Tensor, Tensor, Tensor]:
    """x as uint8 by its own range: the integers, their scale and their zero point, so that 0.0 is one of them.

    An array of zeros has the scale 1.
    """
    v = _real(x)
    axes = tuple(range(v.ndim))
    low = F.minimum(F.min(v, axis=axes, keepdims=False), 0.0)
    high = F.maximum(F.max(v, axis=axes, keepdims=False), 0.0)
    step = F.divide(F.subtract(high, low), 255.0)
    step = F.where(F.equal(step, 0.0), 1.0, step)
    zero = F.cast(F.round(F.divide(F.negative(low), step)), dtype=uint8)
    counts = F.add(F.round(F.divide(v, step)), F.cast(zero, dtype=v.dtype))
    return Tensor(F.cast(counts, dtype=uint8)), Tensor(step), Tensor(zero)


def _real(x: ArrayLike) -> Value:
    v = as_value(x)
    if not is_float(v.dtype):
        raise DTypeError(f"x is {v.dtype}, not real floating-point", hint="cast it with astype")
    return v


def _is_zero(zero_point: ArrayLike | None) -> bool:
    return zero_point is None or (isinstance(zero_point, int) and zero_point == 0)


def _dtype_of(zero_point: ArrayLike) -> DType:
    return int8 if isinstance(zero_point, int) else as_value(zero_point).dtype


def zero_point_beside(zero_point: ArrayLike, like: Value, dtype: DType) -> Value:
    """A zero point in the dtype of what it belongs to, on the device of another value."""
    if isinstance(zero_point, int):
        ends = np.iinfo(dtype)
        if not ends.min <= zero_point <= ends.max:
            raise AttributeValueError(f"zero point {zero_point} is none of {dtype}",
                                      hint=f"{ends.min} to {ends.max}")
        zero_point = np.asarray(zero_point, dtype)
    v = as_value(zero_point, like.stack)
    if v.dtype != dtype:
        raise DTypeError(f"a zero point of {v.dtype} beside {dtype}", hint="both have one dtype")
    return v


def _along(x: Value, like: Value, axis: int | None, name: str) -> Value:
    """A number as it is, a vector along an axis of another value."""
    if x.ndim == 0:
        return x
    if x.ndim > 1 or axis is None:
        raise ShapeError(f"{name} {x.spec} should be a number" + (" or a vector" if axis is not None else ""),
                         hint="axis says along which axis of x a vector lies")
    place = normalise_axis(axis, like.ndim)
    return F.reshape(x, shape=(*x.shape, *(1,) * (like.ndim - place - 1)))
