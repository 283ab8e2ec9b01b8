"""The greedy planners of Pisarchyk and Lee.

"Efficient Memory Management for Deep Neural Net Inference" (2020).
"""

from __future__ import annotations

import numpy as np

from nnc_core.engine.allocation.gaps import place_in_order
from nnc_core.engine.allocation.lifetime import Demand, IntArray


def greedy_by_size(demand: Demand) -> IntArray:
    """Largest first (equals: earliest first), each in the lowest gap that holds it."""
    return place_in_order(demand, np.lexsort((demand.first, -demand.sizes)), tightest=False)


def greedy_by_breadth(demand: Demand) -> IntArray:
    """From the widest step (most bytes alive) on: what lives there, largest first, in the tightest gap."""
    order = np.lexsort((demand.first, -demand.sizes, widest_step(demand)))
    return place_in_order(demand, order, tightest=True)


def widest_step(demand: Demand) -> IntArray:
    """The rank (0 is the widest) of the widest step each lifetime lives through; earlier steps win ties."""
    by_breadth = np.argsort(-demand.breadth, kind="stable")
    rank = np.empty_like(by_breadth)
    rank[by_breadth] = np.arange(len(rank))
    low = np.searchsorted(demand.births, demand.first)
    high = np.searchsorted(demand.births, demand.last, side="right") - 1
    return range_minimum(rank, low, high)


def range_minimum(values: IntArray, low: IntArray, high: IntArray) -> IntArray:
    """min(values[low[i]:high[i] + 1]) for each i, from minima over windows of 1, 2, 4 … values."""
    result = np.empty(len(low), np.int64)
    level = np.frexp(high - low + 1)[1] - 1
    window = values
    for k in range(int(level.max(initial=-1)) + 1):
        here = np.flatnonzero(level == k)
        result[here] = np.minimum(window[low[here]], window[high[here] - (1 << k) + 1])
        window = np.minimum(window[:-(1 << k)], window[1 << k:])
    return result
