"""Running the planners and keeping the best plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nnc_core.base.errors import AttributeValueError
from nnc_core.engine.allocation.blocks import pebble
from nnc_core.engine.allocation.flow import allocation_graph
from nnc_core.engine.allocation.greedy import greedy_by_breadth, greedy_by_size
from nnc_core.engine.allocation.lifetime import ArenaAllocation, Demand, IntArray, Lifetime, distinct, make_demand
from nnc_core.engine.allocation.search import least_steps, search
from nnc_core.engine.allocation.size_classes import size_classes

BUDGET = 1 << 28
"""The default of `config.memory_steps`."""
PYTHON_STEPS = 500
NUMPY_STEPS = 1 << 14


@dataclass(frozen=True, slots=True)
class ArenaPlanner:
    """place: offsets in bytes, in the order of the demand, found in that many steps.

    steps: how much of a budget the planner takes for a demand; 0 runs always, what is above the budget never.
    """

    place: Callable[[Demand, int], IntArray]
    steps: Callable[[Demand, int], int]


def one_pass(place: Callable[[Demand], IntArray], steps: Callable[[Demand], int]) -> ArenaPlanner:
    """A planner that takes as many steps as it takes."""
    return ArenaPlanner(lambda demand, _: place(demand), lambda demand, _: steps(demand))


def _square(demand: Demand) -> int:
    return len(demand) ** 2


def _times_distinct_sizes(demand: Demand) -> int:
    """Python's own time for a lifetime, and what an insertion into the sorted list of free blocks moves."""
    return len(demand) * (PYTHON_STEPS + len(distinct(demand.sizes)))


def _times_edges(demand: Demand) -> int:
    """NumPy's own time for a lifetime, and what it looks at: two edges for each other one, some eight numbers each."""
    return len(demand) * (NUMPY_STEPS + 16 * len(demand))


def _all(demand: Demand, budget: int) -> int:
    """The whole budget of steps; more than that if it is too small."""
    return budget if least_steps(demand) <= budget else budget + 1


SEARCH = "search"
PLANNERS: dict[str, ArenaPlanner] = {  # cheapest first: what comes later must be better to be taken
    "size_classes": one_pass(size_classes, lambda demand: 0),
    "pebble": one_pass(pebble, _times_distinct_sizes),
    "greedy_by_size": one_pass(greedy_by_size, _square),
    "greedy_by_breadth": one_pass(greedy_by_breadth, _square),
    "allocation_graph": one_pass(allocation_graph, _times_edges),
    SEARCH: ArenaPlanner(search, _all),
}


def allocate(lifetimes: Sequence[Lifetime], *, alignment: int, segment: int | None = None,
             budget: int = BUDGET) -> ArenaAllocation:
    """The plan with the smallest peak among those of the planners that the budget allows.

    alignment: bytes that every offset is a multiple of.
    segment: bytes of the largest single allocation, a multiple of the alignment; no lifetime straddles a
        multiple of it.  None if the arena may be one piece of any size.
    budget: steps (one is about one lifetime looked at, some nanoseconds) that all planners may take together;
        not seconds, so that the same input gives the same plan on every machine.  The search has half of it, which
        is about a second by default, the others the other half, cheap ones before dear ones: a larger budget
        never gives a larger plan.

    Planners later in `PLANNERS` are left out once a plan meets the bound.

    Raises DeviceMemoryError if a lifetime is larger than a segment, AttributeValueError for malformed input.
    """
    demand = make_demand(lifetimes, alignment=alignment, segment=segment)
    total = sum(item[0] for item in lifetimes)
    best: ArenaAllocation | None = None
    for name, steps in _affordable(demand, budget).items():
        if best and best.peak == best.bound:
            break
        plan = _finish(name, PLANNERS[name].place(demand, steps), demand, len(lifetimes), total)
        best = plan if best is None or plan.peak < best.peak else best
    assert best is not None
    return best


def _affordable(demand: Demand, budget: int) -> dict[str, int]:
    """The planners that a budget allows, in the order of `PLANNERS`, with the steps for each."""
    half = budget // 2
    steps = {name: planner.steps(demand, half) for name, planner in PLANNERS.items()}
    left = budget - half
    allowed = {SEARCH} if steps[SEARCH] <= half else set()
    for name in sorted([name for name in steps if name != SEARCH], key=steps.__getitem__):
        left -= steps[name]
        if left >= 0:
            allowed.add(name)
    return {name: n for name, n in steps.items() if name in allowed}


def allocate_by(name: str, lifetimes: Sequence[Lifetime], *, alignment: int,
                segment: int | None = None, budget: int = BUDGET) -> ArenaAllocation:
    """The plan of one planner, chosen by its name in `PLANNERS`, whatever it costs.  Errors as `allocate`.

    budget: as for `allocate`; it matters to the search only, which has half of it.
    """
    if name not in PLANNERS:
        raise AttributeValueError(f"no memory planner {name!r}", hint=f"one of {', '.join(PLANNERS)}")
    demand = make_demand(lifetimes, alignment=alignment, segment=segment)
    total = sum(item[0] for item in lifetimes)
    planner = PLANNERS[name]
    return _finish(name, planner.place(demand, planner.steps(demand, budget // 2)), demand, len(lifetimes), total)


def _finish(name: str, placed: IntArray, demand: Demand, count: int, total: int) -> ArenaAllocation:
    offsets = np.zeros(count, np.int64)
    offsets[demand.index] = placed
    segments = _segments(placed, demand)
    return ArenaAllocation(tuple(offsets.tolist()), sum(segments), demand.bound, total, name, segments)


def _segments(placed: IntArray, demand: Demand) -> tuple[int, ...]:
    """Bytes used of each segment."""
    if not len(demand):
        return ()
    if demand.segment is None:
        return (int((placed + demand.sizes).max()),)
    which, inside = np.divmod(placed, demand.segment)
    used = np.zeros(int(which.max()) + 1, np.int64)
    np.maximum.at(used, which, inside + demand.sizes)
    return tuple(used.tolist())
