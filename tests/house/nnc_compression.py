"""NNC's lossy compression of images in blocks of 4 x 4: the ends of a block's range, one of four for each number."""

from __future__ import annotations

from typing import Any

import numpy as np

import nnc_core as nnc
from tests.house.rows import Array

SIDE = 4


def _blocks(x: Any) -> Any:
    """(..., rows, columns, 16), where incomplete blocks are filled up with their first number."""
    *lead, height, width = x.shape
    rows, columns = -(-height // SIDE), -(-width // SIDE)
    inside = nnc.pad(nnc.ones(x.shape), (*[(0, 0)] * len(lead), (0, rows * SIDE - height), (0, columns * SIDE - width)))
    full = nnc.pad(x, (*[(0, 0)] * len(lead), (0, rows * SIDE - height), (0, columns * SIDE - width)))

    def cut(y: Any) -> Any:
        y = nnc.reshape(y, (*lead, rows, SIDE, columns, SIDE))
        return nnc.reshape(nnc.swapaxes(y, -3, -2), (*lead, rows, columns, SIDE * SIDE))

    blocks = cut(full)
    return nnc.where(cut(inside) == 1, blocks, blocks[..., :1])


def squeezed(x: Any) -> Any:
    """The smallest and the largest of each block (..., 2), and its numbers as two words of 16 bits (..., 2)."""
    blocks = _blocks(x)
    low, high = nnc.min(blocks, axis=-1, keepdims=True), nnc.max(blocks, axis=-1, keepdims=True)
    places = nnc.clip(nnc.round((blocks - low) * 3 / nnc.maximum(high - low, 1e-6)), 0, 3).astype(np.int32)
    shifts = nnc.asarray(np.arange(SIDE * SIDE, dtype=np.int32))
    words = [nnc.sum(nnc.bitwise_left_shift(bits, shifts), axis=-1) for bits in (places >> 1, places & 1)]
    return [nnc.concat([low, high], axis=-1), nnc.stack(words, axis=-1)]


def restored(x: Any) -> Any:
    """x after compression: exact where a block has two values, else the nearest of four."""
    ends, words = squeezed(x)
    shifts = nnc.asarray(np.arange(SIDE * SIDE))
    high, low = ((words[..., k : k + 1] >> shifts) & 1 for k in (0, 1))
    places = (2 * high + low).astype(np.float64)
    blocks = ends[..., :1] + (ends[..., 1:] - ends[..., :1]) * places / 3
    *lead, rows, columns, _ = blocks.shape
    image = nnc.swapaxes(nnc.reshape(blocks, (*lead, rows, columns, SIDE, SIDE)), -3, -2)
    return nnc.reshape(image, (*lead, rows * SIDE, columns * SIDE))[..., : x.shape[-2], : x.shape[-1]]


def squeezed_host(x: Array) -> Any:
    """The same by loops."""
    *lead, height, width = x.shape
    shape = (*lead, -(-height // SIDE), -(-width // SIDE), 2)
    ends, words = np.zeros(shape), np.zeros(shape, np.int64)
    for at in np.ndindex(shape[:-1]):
        *image, r, c = at
        rows, columns = range(r * SIDE, r * SIDE + SIDE), range(c * SIDE, c * SIDE + SIDE)
        picture = x[tuple(image)]
        block = [picture[i, j] if i < height and j < width else picture[r * SIDE, c * SIDE]
                 for i in rows for j in columns]
        low, high = min(block), max(block)
        ends[at] = low, high
        for k, number in enumerate(block):
            place = round((number - low) * 3 / max(high - low, 1e-6))
            words[at][0] |= (place >> 1) << k
            words[at][1] |= (place & 1) << k
    return [ends, words]
