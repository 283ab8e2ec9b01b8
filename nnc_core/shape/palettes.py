"""Rules of arrays that are kept as codes of a few bits and palettes of numbers."""

from __future__ import annotations

from math import prod
from typing import Any

from nnc_core.base import dtype as dt
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.type import Dims, TensorSpec

BITS = (4, 5, 6, 7, 8)
"""Lengths that a code may have, in bits."""


def code_bytes(count: int, bits: int) -> int:
    """Bytes that hold so many codes; the last one may be filled up."""
    return -(-count * bits // 8)


def block_count(count: int, block: int) -> int:
    """Blocks of so many elements; the last one may be short."""
    return -(-count // block)


def check_bits(bits: Any) -> None:
    """AttributeValueError unless codes may have so many bits."""
    if type(bits) is not int or bits not in BITS:
        raise AttributeValueError(f"bits {bits!r} is none of {', '.join(map(str, BITS))}")


def check_block(block: Any) -> None:
    """AttributeValueError unless blocks may have so many elements."""
    if type(block) is not int or block < 1:
        raise AttributeValueError(f"block {block!r} should be a number of elements, at least 1")


def depalettise(codes: TensorSpec, palette: TensorSpec, bits: int, shape: Dims, block: int) -> TensorSpec:
    """uint8[bytes] and [blocks, 2**bits] give the shape in the palette's dtype."""
    check_bits(bits)
    check_block(block)
    if codes.dtype != dt.uint8:
        raise DTypeError(f"the codes are {codes}, not uint8: bytes that are filled with {bits}-bit numbers")
    if palette.dtype not in dt.NUMBERS:
        raise DTypeError(f"the palette is {palette}, not of real numbers", hint="cast with astype")
    wrong = [n for n in shape if type(n) is not int or n < 0]
    if wrong:
        raise AttributeValueError(f"shape {shape} has {wrong[0]!r}: sizes should be known, and not negative")
    count = prod([int(n) for n in shape])
    if codes.shape != (wanted := (code_bytes(count, bits),)):
        raise ShapeError(f"the codes are {codes}, expected shape {wanted} for {count} elements of {bits} bits")
    if palette.shape != (rows := (block_count(count, block), 2**bits)):
        raise ShapeError(f"the palette is {palette}, expected shape {rows}: {2**bits} numbers for each block of "
                         f"{block} of {count} elements")
    return TensorSpec(shape, palette.dtype)
