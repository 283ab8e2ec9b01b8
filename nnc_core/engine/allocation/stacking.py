"""Building many plans at once from the bottom up, each by its own ranking of the lifetimes.

The rules are those of Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning"
(ASPLOS 2023): lifetimes are placed at offsets that never decrease, none so high that another would fit below it,
and what a section must reach is known early: the lowest offset that its remaining lifetimes allow, and their sum.
Where that solver goes back, we look one placement ahead and go on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnc_core.engine.allocation.gaps import next_start
from nnc_core.engine.allocation.lifetime import IntArray
from nnc_core.engine.allocation.sections import Sections

CANDIDATES = 4
NEVER = 1 << 62
SPREAD = 1 / 4096  # what all sections exceed the bound by, against what the worst of them does


@dataclass(slots=True)
class Stacked:
    """heights: of each plan, in units of the sections, or `NEVER` for one that was given up.

    offsets: (lifetimes, plans), in the same unit.
    looked: placements that were compared.
    """

    heights: IntArray
    offsets: IntArray
    looked: int


@dataclass(slots=True)
class Partial:
    """Plans under construction, a column each: numpy goes through many short columns at once fastest.

    free: (lifetimes, columns) the lowest offset still allowed, or `_placed` for what has been placed.
    left: (sections, columns) sizes to be placed.
    height: (columns,) nothing that continues the column is lower.
    plan: (columns,) number of the plan.
    """

    free: IntArray
    left: IntArray
    height: IntArray
    plan: IntArray


@dataclass(slots=True)
class Moves:
    """Placements to choose from, column after column, as equally long arrays; smaller keys come first."""

    column: IntArray
    lifetime: IntArray
    offset: IntArray
    key: IntArray


def stack(sections: Sections, ranks: IntArray, limit: int) -> Stacked:
    """A plan for each row of ranks, (plans, lifetimes): at the lowest offset, lower ranks are placed first.

    Of the first few placements in that order, the one that leaves the lowest height possible is taken.  Plans that
    cannot stay below the limit are given up.
    """
    plans, count = ranks.shape
    done = Stacked(np.full(plans, NEVER), np.zeros((count, plans), np.int64), 0)
    narrow = sections.sizes.dtype
    partial = Partial(np.zeros((count, plans), narrow), np.tile(sections.totals.astype(narrow)[:, None], plans),
                      np.full(plans, sections.bound), np.arange(plans))
    for remaining in range(count, 0, -1):
        moves = _moves(sections, partial, ranks, min(CANDIDATES, remaining))
        done.looked += len(moves.key)
        after, reached = _look_ahead(sections, partial, moves)
        best = _best(sections, moves, after, reached, limit)
        partial = Partial(after.free[:, best], after.left[:, best], after.height[best], after.plan[best])
        done.offsets[moves.lifetime[best], partial.plan] = moves.offset[best]
    done.heights[partial.plan] = partial.height
    return done


def _placed(dtype: np.dtype[np.int64]) -> int:
    """An offset above all others, to which all sizes can be added."""
    return int(np.iinfo(dtype).max) // 2 + 1


def _moves(sections: Sections, partial: Partial, ranks: IntArray, most: int) -> Moves:
    """The lowest placements (equals: by rank) of each column, without those that leave room for another below."""
    lowest_top = (partial.free + sections.sizes[:, None]).min(axis=0)
    offsets = partial.free.T.astype(np.int64)
    keys = np.where(offsets < lowest_top[:, None], offsets * ranks.shape[1] + ranks[partial.plan], NEVER)
    few = np.argpartition(keys, most - 1, axis=1)[:, :most]
    key = np.take_along_axis(keys, few, axis=1)
    real = key < NEVER
    column, lifetime = np.nonzero(real)[0], few[real]
    return Moves(column, lifetime, partial.free[lifetime, column], key[real])


def _look_ahead(sections: Sections, partial: Partial, moves: Moves) -> tuple[Partial, IntArray]:
    """The state that each move leaves, a column for each, and what its sections must reach, (sections, columns)."""
    low, high = sections.low[moves.lifetime], sections.high[moves.lifetime]
    overlaps = (low <= sections.high[:, None]) & (sections.low[:, None] <= high)
    free = _raise_free(sections, partial, moves, overlaps)
    at = np.arange(len(partial.left), dtype=np.int32)[:, None]
    left = partial.left[:, moves.column] - ((low <= at) & (at <= high)) * sections.sizes[moves.lifetime]
    floor = free.take(sections.members, axis=0).min(axis=0)
    reached = np.where(left > 0, floor + left, 0)
    height = np.maximum(reached.max(axis=0), partial.height[moves.column])
    return Partial(free, left, height, partial.plan[moves.column]), reached


def _raise_free(sections: Sections, partial: Partial, moves: Moves, overlaps: NDArray[np.bool_]) -> IntArray:
    """The lowest offsets after each move: not below its own, and above its top for what overlaps."""
    top = moves.offset + sections.sizes[moves.lifetime]
    free = np.maximum(partial.free[:, moves.column], np.where(overlaps, top, moves.offset))
    placed = _placed(free.dtype)
    if sections.segment is not None:
        free = np.minimum(next_start(free, sections.sizes[:, None], sections.segment), placed)
    free[moves.lifetime, np.arange(len(top))] = placed
    return free


def _best(sections: Sections, moves: Moves, after: Partial, reached: IntArray, limit: int) -> IntArray:
    """The best move of each column, if it can stay below the limit."""
    excess = np.maximum(reached - sections.bound, 0).sum(axis=0, dtype=np.int64)
    order = np.lexsort((moves.key, after.height + SPREAD * excess, moves.column))
    best = order[np.flatnonzero(np.diff(moves.column, prepend=-1))]
    return best[after.height[best] < limit]
