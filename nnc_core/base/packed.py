"""Numbers of a few bits one behind the other in bytes, in each the lowest bits first: palettes' codes, and what files
hold of dtypes of 2 and 4 bits."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, bits_of


def packed(codes: Any, bits: int) -> Any:
    """uint8: the low bits of bytes, so many of each."""
    if bits == 8:
        return codes
    return np.packbits(np.unpackbits(codes[:, None], axis=1, bitorder="little")[:, :bits], bitorder="little")


def unpacked(codes: Any, bits: int, count: int) -> Any:
    """uint8[count]: the first codes.  Eight codes fill `bits` bytes, and those of equal place are read together."""
    if bits == 8:
        return np.asarray(codes)
    groups = np.zeros((-(-count // 8), bits + 1), np.uint8)
    whole = np.zeros(len(groups) * bits, np.uint8)
    whole[: len(codes)] = codes
    groups[:, :bits] = whole.reshape(len(groups), bits)
    out = np.empty((len(groups), 8), np.uint8)
    for k in range(8):
        byte, shift = divmod(k * bits, 8)
        out[:, k] = groups[:, byte] >> shift
        if shift + bits > 8:
            out[:, k] |= groups[:, byte + 1] << (8 - shift)
    return out.reshape(-1)[:count] & np.uint8(2**bits - 1)


def packed_nbytes(shape: tuple[int, ...], dtype: DType) -> int:
    """The bytes that `packed_elements` gives: as many as memory takes, for dtypes that fill theirs."""
    return -(-prod(shape) * bits_of(dtype) // 8)


def packed_elements(array: Any) -> Any:
    """uint8: the elements of an array in C order, those of 2 and 4 bits packed."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return packed(flat, min(bits_of(array.dtype), 8))


def unpacked_elements(content: Any, dtype: DType, shape: tuple[int, ...]) -> Any:
    """The array of that dtype and shape whose elements were packed."""
    bits = bits_of(dtype)
    if bits >= 8:
        return np.asarray(content).view(dtype).reshape(shape)
    return unpacked(content, bits, prod(shape)).view(dtype).reshape(shape)
