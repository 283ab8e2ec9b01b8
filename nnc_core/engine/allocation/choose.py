"""Running the planners and keeping the best plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nnc_core.base.errors import AttributeValueError
from nnc_core.engine.allocation.blocks import pebble
from nnc_core.engine.allocation.greedy import greedy_by_breadth, greedy_by_size
from nnc_core.engine.allocation.lifetime import Allocation, Demand, IntArray, Lifetime, make_demand
from nnc_core.engine.allocation.size_classes import size_classes

BUDGET = 1 << 28
PYTHON_STEPS = 500


@dataclass(frozen=True, slots=True)
class Planner:
    """place: offsets in bytes, in the order of the demand.  steps: how much work that is; 0 runs always."""

    place: Callable[[Demand], IntArray]
    steps: Callable[[Demand], int]


def _square(demand: Demand) -> int:
    return len(demand) ** 2


def _times_distinct_sizes(demand: Demand) -> int:
    """Python's own time for a lifetime, and what an insertion into the sorted list of free blocks moves."""
    return len(demand) * (PYTHON_STEPS + len(np.unique(demand.sizes)))


PLANNERS: dict[str, Planner] = {  # cheapest first: what comes later must be better to be taken
    "size_classes": Planner(size_classes, lambda demand: 0),
    "pebble": Planner(pebble, _times_distinct_sizes),
    "greedy_by_size": Planner(greedy_by_size, _square),
    "greedy_by_breadth": Planner(greedy_by_breadth, _square),
}


def allocate(lifetimes: Sequence[Lifetime], *, alignment: int, segment: int | None = None,
             budget: int = BUDGET) -> Allocation:
    """The plan with the smallest peak among those of the planners that the budget allows.

    alignment: bytes that every offset is a multiple of.
    segment: bytes of the largest single allocation, a multiple of the alignment; no lifetime straddles a
        multiple of it.  None if the arena may be one piece of any size.
    budget: steps (one is about one lifetime looked at, some nanoseconds) that all planners may take together;
        not seconds, so that the same input gives the same plan on every machine.

    Planners later in `PLANNERS` are left out once a plan meets the bound.

    Raises DeviceMemoryError if a lifetime is larger than a segment, AttributeValueError for malformed input.
    """
    demand = make_demand(lifetimes, alignment=alignment, segment=segment)
    total = sum(item[0] for item in lifetimes)
    best: Allocation | None = None
    for name, planner in PLANNERS.items():
        steps = planner.steps(demand)
        if best and (best.peak == best.bound or steps > budget):
            continue
        budget -= steps
        plan = _finish(name, planner.place(demand), demand, len(lifetimes), total)
        best = plan if best is None or plan.peak < best.peak else best
    assert best is not None
    return best


def allocate_by(name: str, lifetimes: Sequence[Lifetime], *, alignment: int,
                segment: int | None = None) -> Allocation:
    """The plan of one planner, chosen by its name in `PLANNERS`, whatever it costs.  Errors as `allocate`."""
    if name not in PLANNERS:
        raise AttributeValueError(f"no memory planner {name!r}", hint=f"one of {', '.join(PLANNERS)}")
    demand = make_demand(lifetimes, alignment=alignment, segment=segment)
    total = sum(item[0] for item in lifetimes)
    return _finish(name, PLANNERS[name].place(demand), demand, len(lifetimes), total)


def _finish(name: str, placed: IntArray, demand: Demand, count: int, total: int) -> Allocation:
    offsets = np.zeros(count, np.int64)
    offsets[demand.index] = placed
    segments = _segments(placed, demand)
    return Allocation(tuple(offsets.tolist()), sum(segments), demand.bound, total, name, segments)


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
