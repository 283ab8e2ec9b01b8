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
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    c0, c1 = block & low, block >> half
    c2, c3 = np.full_like(block, draw & 0xFFFFFFFF), np.full_like(block, draw >> 32)
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(ROUNDS):
        p0, p1 = c0 * np.uint64(MULTIPLIERS[0]), c2 * np.uint64(MULTIPLIERS[1])
        c0, c1, c2, c3 = (p1 >> half) ^ c1 ^ np.uint64(k0), p1 & low, (p0 >> half) ^ c3 ^ np.uint64(k1), p0 & low
        k0, k1 = (k0 + WEYL[0]) & 0xFFFFFFFF, (k1 + WEYL[1]) & 0xFFFFFFFF
    for lane, word in enumerate((c0, c1, c2, c3)):
        out[:, lane] = word


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
