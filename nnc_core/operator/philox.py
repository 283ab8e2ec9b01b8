"""Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011).

A key is two uint64: the seed, and the number of the draw.  The seed is the cipher's key; its counter is (block, draw),
where words 4b to 4b+3 of the result are the output of block b.  So every element can be computed alone, and its bits
are the same on every device and in every mode.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.codegen.scalar import Scalar
from nnc_core.operator.loops import NestBuilder

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
IN_ORDER = (0, 1, 2, 3)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_MULTIPLIERS = np.array([[MULTIPLIERS[1]], [MULTIPLIERS[0]]], np.uint64)
_CHUNK = 1 << 14  # blocks at a time: the working set stays in the cache


def philox_words(key: Any, count: int) -> Any:
    """The first `count` uint32 words of the stream of a key."""
    seed, draw = (int(k) for k in np.asarray(key))
    blocks = -(-count // 4)
    out = np.empty((blocks, 4), np.uint32)
    for first in range(0, blocks, _CHUNK):
        last = min(first + _CHUNK, blocks)
        philox_blocks(seed, draw, np.arange(first, last, dtype=np.uint64), out[first:last])
    return out.reshape(-1)[:count]


def philox_blocks(seed: int, draw: int, block: Any, out: Any) -> None:
    """The four words of each block number, into the rows of `out`."""
    encipher(round_keys(seed), draw, block, np.empty((3, 2, len(block)), np.uint64), out)


def round_keys(seed: int) -> list[Any]:
    """The keys of each round, of a shape that goes with two rows of words."""
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    return [np.array([[(k0 + i * WEYL[0]) & 0xFFFFFFFF], [(k1 + i * WEYL[1]) & 0xFFFFFFFF]], np.uint64)
            for i in range(ROUNDS)]


def encipher(keys: list[Any], draw: Any, block: Any, lanes: Any, out: Any,
             order: tuple[int, ...] = IN_ORDER) -> None:
    """Fill out (blocks, 4) with blocks of these numbers, of a draw or of several; word k of a block goes to column
    order[k].

    `lanes` is scratch: words 0 and 2, words 1 and 3, and products, of each block."""
    even, odd, product = lanes[:, :, : len(out)]
    swapped = even[::-1]
    draws = np.uint64(draw) if draw.__class__ is int else draw
    np.bitwise_and(block, _LOW, out=even[0])
    np.right_shift(block, _HALF, out=odd[0])
    even[1], odd[1] = draws & _LOW, draws >> _HALF
    for key in keys:
        np.multiply(swapped, _MULTIPLIERS, out=product)
        np.right_shift(product, _HALF, out=even)
        np.bitwise_xor(even, odd, out=even)
        np.bitwise_xor(even, key, out=even)
        np.bitwise_and(product, _LOW, out=odd)
    for column, word in zip(order, (even[0], odd[0], even[1], odd[1]), strict=True):
        out[:, column] = word


def lane_of(words: list[Scalar], lane: Scalar) -> Scalar:
    """One of the four words of a block."""
    value = words[3]
    for k in (2, 1, 0):
        value = lane.equal(k).select(words[k], value)
    return value


def block_words(nest: NestBuilder, seed: Scalar, draw: Scalar, block: Scalar) -> list[Scalar]:
    """The same in a loop nest."""

    def halves(x: Scalar) -> tuple[Scalar, Scalar]:
        return (x & 0xFFFFFFFF).cast(dt.uint32), (x >> 32).cast(dt.uint32)

    (c0, c1), (c2, c3), (k0, k1) = halves(block), halves(draw), halves(seed)
    m0, m1 = (nest.constant(m, dt.uint32) for m in MULTIPLIERS)
    for _ in range(ROUNDS):
        high0, high1 = c0.apply("multiply_high", m0), c2.apply("multiply_high", m1)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, c2 * m1, high0 ^ c3 ^ k1, c0 * m0
        k0, k1 = k0 + WEYL[0], k1 + WEYL[1]
    return [c0, c1, c2, c3]
