"""Bits counted, and packed into bytes."""

from __future__ import annotations

import numpy as np

from nnc_core.base.dtype import DType, boolean, int64, is_integer, uint8
from nnc_core.base.errors import AttributeValueError, DTypeError
from nnc_core.functions.constants import constant_beside
from nnc_core.functions.pieces import cut, flat, with_length
from nnc_core.functions.reduction import as_dtype
from nnc_core.shape.axes import normalise_axis
from nnc_core.values.arguments import ArrayLike, as_value, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value
from nnc_core.values.whole import as_whole

__all__ = ["bitwise_count", "packbits", "unpackbits"]

ORDERS = {"big": 1, "little": -1}


@by_shapes
@names_itself
def bitwise_count(x: ArrayLike, /) -> Tensor:
    """uint8: how many bits of the magnitudes of integers are 1."""
    v = as_value(x)
    v = as_dtype(v, uint8) if v.dtype == boolean else v
    if not is_integer(v.dtype):
        raise DTypeError(f"{v.dtype} has no bits to count", hint="cast it with astype")
    unsigned = np.dtype(f"u{v.dtype.itemsize}")
    if (found := as_whole("bitwise_count", (v,))) is not None:
        return Tensor(found)
    v = F.cast(F.abs(v), dtype=unsigned) if v.dtype.kind == "i" else v
    v = F.subtract(v, F.bitwise_and(_shifted(v, 1), _mask(v, 0x55)))
    v = F.add(F.bitwise_and(v, _mask(v, 0x33)), F.bitwise_and(_shifted(v, 2), _mask(v, 0x33)))
    v = F.bitwise_and(F.add(v, _shifted(v, 4)), _mask(v, 0x0F))
    for reach in (8, 16, 32)[: unsigned.itemsize.bit_length() - 1]:
        v = F.add(v, _shifted(v, reach))
    return Tensor(as_dtype(F.bitwise_and(v, _number(v, 0x7F)), uint8))


def _number(v: Value, number: int) -> Value:
    return constant_beside(v, np.array(number, v.dtype))


def _mask(v: Value, byte: int) -> Value:
    """The same byte again and again."""
    return _number(v, int.from_bytes(bytes([byte]) * v.dtype.itemsize, "little"))


def _shifted(v: Value, by: int) -> Value:
    return F.bitwise_right_shift(v, _number(v, by))


# ---- eight to a byte
def _powers(v: Value, bitorder: str, dtype: DType) -> Value:
    if bitorder not in ORDERS:
        raise AttributeValueError(f"bitorder {bitorder!r} is neither 'big' nor 'little'")
    return constant_beside(v, np.arange(8)[:: -ORDERS[bitorder]].copy(), dtype)


def _last(v: Value, axis: int | None) -> tuple[Value, int]:
    """The axis that is packed; of the flattened array without one."""
    return (flat(v), 0) if axis is None else (v, normalise_axis(axis, v.ndim))


@by_shapes
@names_itself
def packbits(x: ArrayLike, /, axis: int | None = None, bitorder: str = "big") -> Tensor:
    """uint8: booleans or integers, those that are not zero as ones, eight to a byte along an axis, the last byte filled
    up with zeros; of the flattened x without an axis.  The first of eight is the highest bit, or the lowest for
    "little"."""
    v = as_value(x)
    if v.dtype != boolean and not is_integer(v.dtype):
        raise DTypeError(f"{v.dtype} numbers are no bits", hint="compare with 0")
    v, a = _last(v, axis)
    shifts = _powers(v, bitorder, int64)
    if (found := as_whole("packbits", (v,), (a, bitorder))) is not None:
        return Tensor(found)
    v = as_dtype(as_dtype(v, boolean), int64)
    n = v.spec.static_shape[a]
    count = -(-n // 8)
    v = F.pad(v, low=(0,) * v.ndim, high=with_length((0,) * v.ndim, a, 8 * count - n), interior=(0,) * v.ndim)
    v = F.reshape(v, shape=(*v.shape[:a], count, 8, *v.shape[a + 1 :]))
    shifts = F.reshape(shifts, shape=(8, *(1,) * (v.ndim - a - 2)))
    return Tensor(as_dtype(F.sum(F.bitwise_left_shift(v, shifts), axis=(a + 1,)), uint8))


@by_shapes
@names_itself
def unpackbits(x: ArrayLike, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Tensor:
    """uint8 zeros and ones: the bits of bytes along an axis, the first `count` of them, or all but the last -count; of
    the flattened x without an axis."""
    v = as_value(x)
    if v.dtype != uint8:
        raise DTypeError(f"{v.dtype} are no bytes", hint="cast with astype to uint8")
    v, a = _last(v, axis)
    y = as_whole("unpackbits", (v,), (a, bitorder)) if bitorder in ORDERS else None
    return _first(_unpacked(v, a, bitorder) if y is None else y, a, count)


def _unpacked(v: Value, a: int, bitorder: str) -> Value:
    n = v.spec.static_shape[a]
    shifts = F.reshape(_powers(v, bitorder, uint8), shape=(8, *(1,) * (v.ndim - a - 1)))
    bits = F.bitwise_right_shift(F.reshape(v, shape=(*v.shape[: a + 1], 1, *v.shape[a + 1 :])), shifts)
    return F.reshape(F.bitwise_and(bits, _number(v, 1)), shape=with_length(v.shape, a, 8 * n))


def _first(y: Value, axis: int, count: int | None) -> Tensor:
    return Tensor(y if count is None else _counted(y, axis, count))


def _counted(v: Value, axis: int, count: int) -> Value:
    there = v.spec.static_shape[axis]
    wanted = count if count >= 0 else there + count
    if wanted < 0:
        raise AttributeValueError(f"count {count} leaves nothing of {there} bits")
    if wanted <= there:
        return cut(v, axis, 0, wanted)
    high = with_length((0,) * v.ndim, axis, wanted - there)
    return F.pad(v, low=(0,) * v.ndim, high=high, interior=(0,) * v.ndim)
