"""Real numbers as integers with a scale and a zero point, as ONNX has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nnc_core.base.dtype import (
    STORED_FLOATS,
    DType,
    float32,
    int8,
    int32,
    int64,
    integer_limits,
    is_float,
    is_integer,
    is_stored_integer,
    opened,
    uint8,
)
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.codegen.storage import ENCODINGS
from nnc_core.functions.casts import prepared
from nnc_core.functions.pieces import cut
from nnc_core.functions.reduction import as_dtype
from nnc_core.shape.axes import normalise_axis
from nnc_core.type import admit_numpy, whole
from nnc_core.values.arguments import ArrayLike, as_value, as_value_beside, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["dequantize_linear", "dynamic_quantize_linear", "quantize_linear"]


@names_itself
def quantize_linear(x: ArrayLike, scale: ArrayLike, zero_point: ArrayLike = 0, /, *, axis: int | None = None,
                    dtype: Any = None, block_size: int | None = None, saturate: bool = True) -> Tensor:
    """x / scale + zero_point: as integers rounded, halves to even, and saturated at the ends, NaN giving 0; as floats
    of 8 bits saturated too, unless `saturate` is False, as `astype` does it.

    `scale` and `zero_point` are numbers, vectors along `axis`, or of x's shape but for `axis`, along which each element
    counts for `block_size` neighbours, by default as many as there have to be.  `dtype` is an integer one of at most 16
    bits or a float one of at most 8, by default that of a zero point that is an array, and int8 beside a number.
    """
    v = _as_float(as_value(x), "x")
    wanted = admit_numpy(dtype) if dtype is not None else _dtype_of(zero_point)
    if not _is_quantised(wanted) or wanted.itemsize > 2:
        raise DTypeError(f"dtype {wanted} is no integer one of at most 16 bits, nor a float one of at most 8",
                         hint="int8 or uint8")
    spread = Spread(v, axis, block_size)
    counts = F.divide(v, spread.out(_as_float(as_value_beside(scale, v), "scale"), "scale"))
    rounds = wanted not in ENCODINGS
    counts = F.round(counts) if rounds else counts
    if not _is_zero(zero_point):
        exact = float32 if counts.dtype.itemsize < 4 else counts.dtype
        zero = spread.out(zero_point_beside(zero_point, v, wanted), "zero_point")
        counts = F.add(F.cast(counts, dtype=exact), F.cast(zero, dtype=exact))
    if is_stored_integer(wanted):
        counts = F.clip(counts, *map(float, integer_limits(wanted)))
    return Tensor(F.cast(counts if rounds else prepared(counts, wanted, saturate), dtype=wanted))


@names_itself
def dequantize_linear(x: ArrayLike, scale: ArrayLike, zero_point: ArrayLike = 0, /, *, axis: int | None = None,
                      dtype: Any = None, block_size: int | None = None) -> Tensor:
    """(x - zero_point) * scale in `dtype`, by default that of `scale`, and float32 if that is a number or only stored.

    `x` are integers of at most 32 bits or floats of at most 8; `scale` and `zero_point` as for `quantize_linear`.
    """
    v = as_value(x)
    if not _is_quantised(v.dtype) or v.dtype.itemsize > int32.itemsize:
        raise DTypeError(f"x is {v.dtype}, not an integer of at most 32 bits", hint="quantize_linear makes such")
    step = as_value(np.float32(scale) if isinstance(scale, (int, float)) else scale, v.stack)
    if not is_float(step.dtype) and step.dtype not in STORED_FLOATS:
        raise DTypeError(f"scale is {step.dtype}, not real floating-point", hint="cast it with astype")
    wanted = admit_numpy(dtype) if dtype is not None else opened(step.dtype)
    if not is_float(wanted):
        raise DTypeError(f"dtype {wanted} is not real floating-point", hint="float32")
    spread, wide = Spread(v, axis, block_size), _holds_differences(v.dtype)
    counts = F.cast(v, dtype=wide) if wide != int64 else v
    if not _is_zero(zero_point):
        zero = spread.out(zero_point_beside(zero_point, v, v.dtype), "zero_point")
        counts = F.subtract(F.cast(v, dtype=wide), F.cast(zero, dtype=wide))
    return Tensor(F.multiply(as_dtype(counts, wanted), F.cast(spread.out(step, "scale"), dtype=wanted)))


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


def _as_float(v: Value, name: str) -> Value:
    """Floats as they are, int32 and floats that are only stored as float32."""
    if v.dtype == int32 or v.dtype in STORED_FLOATS:
        return F.cast(v, dtype=float32)
    if not is_float(v.dtype):
        raise DTypeError(f"{name} is {v.dtype}, not real floating-point", hint="cast it with astype")
    return v


def _is_quantised(dtype: DType) -> bool:
    return is_integer(dtype) or is_stored_integer(dtype) or dtype in ENCODINGS


def _holds_differences(dtype: DType) -> DType:
    """A dtype that has the difference of any two quantised numbers."""
    if dtype in ENCODINGS:
        return float32
    return int64 if dtype.itemsize == int32.itemsize else int32


def _is_zero(zero_point: ArrayLike | None) -> bool:
    return zero_point is None or (isinstance(zero_point, int) and zero_point == 0)


def _dtype_of(zero_point: ArrayLike) -> DType:
    return int8 if isinstance(zero_point, int) else as_value(zero_point).dtype


def zero_point_beside(zero_point: ArrayLike, like: Value, dtype: DType) -> Value:
    """A zero point in the dtype of what it belongs to, on the device of another value."""
    if isinstance(zero_point, int):
        if dtype in ENCODINGS:
            raise AttributeValueError(f"zero point {zero_point} of {dtype}", hint="floats need none")
        least, most = integer_limits(dtype)
        if not least <= zero_point <= most:
            raise AttributeValueError(f"zero point {zero_point} is none of {dtype}", hint=f"{least} to {most}")
        zero_point = np.asarray(zero_point, dtype)
    v = as_value(zero_point, like.stack)
    if v.dtype != dtype:
        raise DTypeError(f"a zero point of {v.dtype} beside {dtype}", hint="both have one dtype")
    return v


@dataclass(frozen=True)
class Spread:
    """The way of scales and zero points to the elements that they count for."""

    like: Value
    axis: int | None
    block_size: int | None

    def out(self, x: Value, name: str) -> Value:
        """A number as it is, a vector along an axis, and blocks repeated."""
        if all([n.__class__ is int and n == 1 for n in x.shape]):
            return F.reshape(x, shape=()) if x.ndim else x
        if self.axis is None or x.ndim not in (1, self.like.ndim):
            raise ShapeError(f"{name} {x.spec} should be a number" + self._others(),
                             hint="axis says along which axis of x a vector, or blocks, lie")
        place = normalise_axis(self.axis, self.like.ndim)
        if x.ndim == self.like.ndim and (x.ndim > 1 or self.block_size is not None):
            return self._blocks(x, place, name)
        return F.reshape(x, shape=(*x.shape, *(1,) * (self.like.ndim - place - 1)))

    def _others(self) -> str:
        return "" if self.axis is None else " or a vector, or have as many axes as x"

    def _blocks(self, x: Value, place: int, name: str) -> Value:
        length, count = self.like.shape[place], x.shape[place]
        block = -(-length // count) if self.block_size is None else whole(self.block_size, "block_size", 1)
        if x.shape != (*self.like.shape[:place], -(-length // block), *self.like.shape[place + 1 :]):
            raise ShapeError(f"{name} {x.spec} has not one number for each {block} elements of {self.like.spec} along "
                             f"axis {place}")
        if block == 1:
            return x
        before, after = x.shape[:place], x.shape[place + 1 :]
        x = F.broadcast_to(F.reshape(x, shape=(*before, count, 1, *after)), shape=(*before, count, block, *after))
        x = F.reshape(x, shape=(*before, count * block, *after))
        return x if count * block == length else cut(x, place, 0, length)
