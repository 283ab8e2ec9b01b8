"""The search: plans built by many rankings of the lifetimes, and by blends of the rankings that did best.

That is a random-key genetic algorithm: Bean, "Genetic Algorithms and Random Keys for Sequencing and Optimization"
(1994), as biased towards the elite by Gonçalves and Resende (2011), with `stacking` as what makes plans from keys.
The rankings that it starts from are the static preorderings of Moffitt, "MiniMalloc" (ASPLOS 2023), and others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nnc_core.engine.allocation.greedy import greedy_by_size, range_minimum
from nnc_core.engine.allocation.lifetime import Demand, IntArray
from nnc_core.engine.allocation.sections import Sections, most_members
from nnc_core.engine.allocation.stacking import CANDIDATES, NEVER, stack

ELITE = 12
BATCH = 16
MUTATED = 0.03
PLACEMENT_STEPS = 1 << 13
"""Python's own time for one placement of a batch."""

FloatArray = NDArray[np.float64]


def search(demand: Demand, steps: int) -> IntArray:
    """Offsets of the best plan found in that many steps; the first ranking is tried whatever it costs.

    The same demand and steps give the same plan on every machine, and more steps never a higher top.  The search
    ends early at the bound, and when half as many plans have been tried as there are pairs of lifetimes.
    """
    if not len(demand):
        return np.zeros(0, np.int64)
    sections = Sections.of(demand)
    if not sections.exact:  # more than 2**60 units: nothing that any device holds
        return greedy_by_size(demand)
    state = Search(sections, steps)
    state.run()
    return state.best * sections.unit


def least_steps(demand: Demand) -> int:
    """The cost of the first ranking."""
    return _cost(len(demand), most_members(demand), 1)


def _cost(count: int, members: int, plans: int) -> int:
    """The most steps that a batch of plans takes."""
    return count * (PLACEMENT_STEPS + plans * CANDIDATES * _look_steps(count, members))


def _look_steps(count: int, members: int) -> int:
    """Steps that a look at one candidate takes; members of sections go by four times as fast as what a step is."""
    return members // 4 + 3 * count


@dataclass(slots=True)
class Search:
    """The state of a search.

    keys: (elite, lifetimes) the best rankings so far as numbers from 0 to 1, best first, with their heights.
    best: offsets of the best plan, in units of the sections.
    spent, tried: steps and plans so far.
    """

    sections: Sections
    steps: int
    keys: FloatArray = field(init=False)
    heights: IntArray = field(init=False)
    best: IntArray = field(init=False)
    spent: int = 0
    tried: int = 0
    random: np.random.RandomState = field(default_factory=lambda: np.random.RandomState(0))
    """Not the newer generators: only this one's numbers are the same in every version of NumPy."""

    def __post_init__(self) -> None:
        count = len(self.sections.sizes)
        self.keys, self.heights = np.zeros((0, count)), np.zeros(0, np.int64)

    def run(self) -> None:
        """Batches until one is cut short: so more steps try all that fewer try, and then more."""
        static = static_ranks(self.sections)
        self._try(static[:1])
        more = self._try_affordable(static[1:])
        while more:
            more = self._try_affordable(rank_rows(self._blends()))

    def _try_affordable(self, ranks: IntArray) -> bool:
        """Try the rankings, or those first that the steps left allow; whether that was all of them."""
        most = self._affordable()
        self._try(ranks[:most])
        return len(ranks) <= most

    def _affordable(self) -> int:
        """The number of plans that may still be tried at once; none at the bound."""
        count, members = len(self.sections.sizes), self.sections.members.size
        if self.heights[0] == self.sections.bound:
            return 0
        one, two = (_cost(count, members, plans) for plans in (1, 2))
        left = self.steps - self.spent
        return max(0, min(count * count // 4 - self.tried, (left - one) // (two - one) + 1))

    def _try(self, ranks: IntArray) -> None:
        """Build the plans of some rankings, and keep the best of them and of those before."""
        if not len(ranks):
            return
        full = len(self.heights) == ELITE
        built = stack(self.sections, ranks, self.heights[-1] if full else NEVER)
        count, members = len(self.sections.sizes), self.sections.members.size
        self.spent += count * PLACEMENT_STEPS + built.looked * _look_steps(count, members)
        self.tried += len(ranks)
        winner = int(built.heights.argmin())
        if not len(self.heights) or built.heights[winner] < self.heights[0]:
            self.best = built.offsets[:, winner]
        whole = built.heights < NEVER
        heights = np.concatenate((self.heights, built.heights[whole]))
        keys = np.concatenate((self.keys, ranks[whole] / count))
        elite = np.argsort(heights, kind="stable")[:ELITE]
        self.heights, self.keys = heights[elite], keys[elite]

    def _blends(self) -> FloatArray:
        """Keys between those of two of the elite, nearer to the first, the better preferred; a few keys are new."""
        random, shape = self.random.random_sample, (BATCH, self.keys.shape[1])
        first = (random(BATCH) ** 2 * len(self.keys)).astype(np.int64)
        second = self.random.randint(0, len(self.keys), BATCH)
        share = 0.5 * random((BATCH, 1))
        keys = self.keys[first] * (1 - share) + self.keys[second] * share
        return np.where(random(shape) < MUTATED, 3 * random(shape) - 1, keys)


def static_ranks(sections: Sections) -> IntArray:
    """Rankings by what is known beforehand, those first that did best and complement each other best.

    size, length (sections lived through), area (their product), total (of the fullest section lived through),
    degree (overlapping lifetimes): the larger, the earlier; low: the earlier begun, high: the longer kept.
    """
    low, high, size = sections.low, -sections.high, -sections.sizes.astype(np.int64)
    length = sections.low - sections.high - 1
    area = size * -length
    total = range_minimum(-sections.totals, sections.low, sections.high)
    degree = -_overlapping(sections)
    orders = ((low, area), (high, size), (high, length), (low, size), (total, area, length), (total, length, area),
              (total, high, area), (length, area, total), (total, low, area), (degree, area, total))
    return np.stack([_rank(np.lexsort(keys[::-1])) for keys in orders])


def _overlapping(sections: Sections) -> IntArray:
    """Lifetimes that overlap each: all but those that end before it begins or begin after it ends."""
    ended = np.searchsorted(np.sort(sections.high), sections.low)
    begun = np.searchsorted(np.sort(sections.low), sections.high, side="right")
    return begun - ended


def _rank(order: IntArray) -> IntArray:
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank


def rank_rows(keys: FloatArray) -> IntArray:
    """The rank of each key in its row; equals in their order."""
    return np.argsort(np.argsort(keys, axis=1, kind="stable"), axis=1)
