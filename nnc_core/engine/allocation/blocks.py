"""Owl's planner: blocks that serve one lifetime after another, each as large as the largest of them."""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from nnc_core.engine.allocation.lifetime import Demand, IntArray


def pebble(demand: Demand) -> IntArray:
    """Owl's heuristic: in order of use, the smallest free block that fits, else the largest one enlarged.

    Blocks of equal size are taken by number; a new block is opened when none is free.
    """
    return lay_out(*assign_blocks(demand), demand.segment)


def assign_blocks(demand: Demand) -> tuple[list[int], list[int]]:
    """The block of each lifetime, and the size of each block."""
    sizes = demand.sizes.tolist()
    block_of = [0] * len(sizes)
    blocks: list[int] = []
    free: list[tuple[int, int]] = []  # (size, block), sorted
    for i, ended in demand.in_order_of_use():
        for j in ended:
            insort(free, (blocks[block_of[j]], block_of[j]))
        block_of[i] = _take(free, sizes[i], blocks)
        blocks[block_of[i]] = max(blocks[block_of[i]], sizes[i])
    return block_of, blocks


def _take(free: list[tuple[int, int]], size: int, blocks: list[int]) -> int:
    if free:
        fitting = bisect_left(free, (size, 0))
        return free.pop(min(fitting, len(free) - 1))[1]
    blocks.append(0)
    return len(blocks) - 1


def lay_out(block_of: list[int], blocks: list[int], segment: int | None) -> IntArray:
    """Offsets with the blocks one after another; a block that would straddle opens a new segment."""
    starts, end = [], 0
    for size in blocks:
        if segment is not None and end % segment + size > segment:
            end += -end % segment
        starts.append(end)
        end += size
    return np.array(starts, np.int64)[block_of]
