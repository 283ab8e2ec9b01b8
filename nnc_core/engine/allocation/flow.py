"""NNC's planner: a graph of who hands how many bytes on to whom, from the start of the schedule to its end.

The rules are those of liuliu/ccv, lib/nnc/ccv_nnc_symbolic_graph_compile.c (2024), which differ from its document
(largest first instead of most overlaps first, no pairs, the tightest edge instead of the first).  There the order of
steps is partial; here it is total, as the schedule is.
"""

from __future__ import annotations

import numpy as np

from nnc_core.engine.allocation.blocks import lay_out
from nnc_core.engine.allocation.lifetime import Demand, IntArray, distinct

START = -1
END = -2
NO_EDGE = -1


def allocation_graph(demand: Demand) -> IntArray:
    """NNC's heuristic: the largest first, where the bytes lie idle for the shortest time, else in a new block.

    Among equals the one with most overlaps is tried first, and the next one if no edge can hold it.
    """
    graph, overlaps = AllocationGraph(demand), _overlaps(demand)
    for size in distinct(demand.sizes)[::-1]:
        largest = np.flatnonzero(demand.sizes == size)
        while largest.size:
            chosen, edge = graph.find(largest[np.argsort(-overlaps[largest], kind="stable")])
            graph.insert(chosen, edge)
            largest = largest[largest != chosen]
            overlaps[(demand.first <= demand.last[chosen]) & (demand.first[chosen] <= demand.last)] -= 1
    return lay_out(graph.block_of, graph.blocks, demand.segment) + graph.offset


def _overlaps(demand: Demand) -> IntArray:
    """Lifetimes that each overlaps, itself among them."""
    ended = np.searchsorted(np.sort(demand.last), demand.first)
    return np.searchsorted(np.sort(demand.first), demand.last, side="right") - ended


class AllocationGraph:
    """Edges (giver, taker, bytes, offset in their block) between lifetimes, `START` and `END`; the sizes of blocks."""

    def __init__(self, demand: Demand) -> None:
        self.demand = demand
        self.edges = np.empty((4, 2 * len(demand)), np.int64)
        self.count = 0
        self.block_of = [0] * len(demand)
        self.offset = np.zeros(len(demand), np.int64)
        self.blocks: list[int] = []
        self.length = int(demand.first.max(initial=0)) - int(demand.first.min(initial=0)) + 1
        self.stuck = np.zeros(len(demand), np.bool_)

    def find(self, lifetimes: IntArray) -> tuple[int, int]:
        """The first lifetime that an edge can hold and that edge, or else the first lifetime and `NO_EDGE`."""
        for i in lifetimes[~self.stuck[lifetimes]].tolist():
            edge = self._tightest(i)
            if edge != NO_EDGE:
                return i, edge
            self.stuck[i] = True
        return int(lifetimes[0]), NO_EDGE

    def insert(self, i: int, edge: int) -> None:
        """Split an edge by a lifetime, or open a block for it."""
        size = int(self.demand.sizes[i])
        giver, taker, offset = START, END, 0
        if edge == NO_EDGE:  # what found no edge before may find one now
            self.block_of[i] = len(self.blocks)
            self.blocks.append(size)
            self.stuck[:] = False
        else:
            giver, taker, _, offset = self.edges[:, edge].tolist()
            self.edges[2:, edge] += -size, size
            self.block_of[i] = self.block_of[taker if giver == START else giver]
        self.offset[i] = offset
        self.edges[:, self.count:self.count + 2] = [[giver, i], [i, taker], [size, size], [offset, offset]]
        self.count += 2

    def _tightest(self, i: int) -> int:
        """The edge with enough bytes, and as few steps as possible from its giver's end to its taker's beginning.

        From the start or to the end counts as the whole schedule.
        """
        first, last = self.demand.first, self.demand.last
        giver, taker, free, _ = self.edges[:, :self.count]
        before = np.where(giver == START, self.length, first[i] - last[giver])
        after = np.where(taker == END, self.length, first[taker] - last[i])
        fits = np.flatnonzero((free >= self.demand.sizes[i]) & (before > 0) & (after > 0))
        if not fits.size:
            return NO_EDGE
        return int(fits[np.lexsort((before[fits], taker[fits] != END, (before + after)[fits]))[0]])
