"""Memory planners on the eleven instances of minimalloc: peak over bound, milliseconds.

The peer is the capacity that each instance was published with, which the minimalloc solver meets by search
(github.com/google/minimalloc, Apache-2.0, licence beside the data).  All our planners but the search take one pass;
the search gets multiples of its default budget: `python -m benchmarks.allocation 1 10 100`.
"""

from __future__ import annotations

import csv
import math
import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._measure import show
from nnc_core.engine.allocation import BUDGET, PLANNERS, Lifetime, allocate, allocate_by
from nnc_core.engine.allocation.lifetime import make_demand

INSTANCES = Path(__file__).parent / "data" / "minimalloc"
ALIGNMENT = 64
ONE_PASS = [name for name in PLANNERS if name != "search"]


def read_instance(path: Path) -> list[Lifetime]:
    """Rows of id, lower, upper, size; `upper` is the first step at which the buffer is no longer needed."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [Lifetime(int(row["size"]), int(row["lower"]), int(row["upper"]) - 1) for row in rows]


def instances() -> Iterator[tuple[str, int, list[Lifetime]]]:
    """Name, published capacity in bytes, lifetimes; the files are called NAME.CAPACITY.csv."""
    for path in sorted(INSTANCES.glob("*.csv")):
        name, capacity, _ = path.name.split(".")
        yield name, int(capacity), read_instance(path)


def network_like(count: int) -> list[Lifetime]:
    """A training step: some values of the first half wait for their backward step, the others die soon."""
    draw = random.Random(0)
    common, rare = [256 * 4 ** k for k in range(7)], [64 * draw.randrange(1, 5000) for _ in range(200)]
    sizes = common * 8 + rare

    def last(step: int) -> int:
        return count - step if 2 * step < count and draw.random() < 0.15 else step + draw.randrange(1, 6)

    return [Lifetime(draw.choice(sizes), step, last(step)) for step in range(count)]


@dataclass(frozen=True, slots=True)
class Run:
    """What one planner made of one list of lifetimes, and how long it took."""

    ratio: float
    peak: int
    bound: int
    milliseconds: float

    def __str__(self) -> str:
        return cell(self.ratio, self.milliseconds)


def measure(planner: str | None, lifetimes: list[Lifetime], alignment: int, budget: int = BUDGET) -> Run:
    """Run one planner, or for None all that the budget allows."""
    begin = time.perf_counter()
    plan = (allocate_by(planner, lifetimes, alignment=alignment, budget=budget) if planner
            else allocate(lifetimes, alignment=alignment, budget=budget))
    return Run(plan.ratio, plan.peak, plan.bound, 1e3 * (time.perf_counter() - begin))


def cell(ratio: float, milliseconds: float) -> str:
    return f"{ratio:.3f} {milliseconds:.1f}"


def geomean(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def quality() -> list[list[str]]:
    """A row per instance: each planner, the best of them, the published capacity over the bound."""
    rows, table, peers = [], [], []
    for name, capacity, lifetimes in instances():
        runs = [measure(planner, lifetimes, 1) for planner in (*ONE_PASS, None)]
        table.append(runs)
        peers.append(capacity / runs[0].bound)
        rows.append([name, str(len(lifetimes)), *map(str, runs), f"{peers[-1]:.3f}"])
    columns = list(zip(*table, strict=True))
    means = [cell(geomean(run.ratio for run in runs), sum(run.milliseconds for run in runs))
             for runs in columns]
    return [*rows, ["mean, sum", "", *means, f"{geomean(peers):.3f}"]]


def searches(multiples: Sequence[int]) -> list[list[str]]:
    """A row per instance: the search with each multiple of the default budget; how many meet their capacity."""
    cases = list(instances())
    columns = [[measure("search", lifetimes, 1, multiple * BUDGET) for _, _, lifetimes in cases]
               for multiple in multiples]
    rows = [[name, *map(str, runs)] for (name, _, _), *runs in zip(cases, *columns, strict=True)]
    means = [cell(geomean(run.ratio for run in runs), sum(run.milliseconds for run in runs)) for runs in columns]
    solved = [str(sum(run.peak <= capacity for run, (_, capacity, _) in zip(runs, cases, strict=True)))
              for runs in columns]
    return [*rows, ["geomean, sum", *means], ["capacities met", *solved]]


def speed() -> list[list[str]]:
    """A row per count of lifetimes; a planner alone only where the budget of `allocate` has room for it."""
    rows = []
    for count in (5_111, 50_000, 600_000):
        lifetimes = network_like(count)
        afforded = affordable(lifetimes)
        runs = [str(measure(planner, lifetimes, ALIGNMENT)) if planner in afforded else "-"
                for planner in ONE_PASS]
        rows.append([f"{count:,}", *runs, str(measure(None, lifetimes, ALIGNMENT))])
    return rows


def affordable(lifetimes: list[Lifetime]) -> set[str]:
    demand = make_demand(lifetimes, alignment=ALIGNMENT)
    return {name for name, planner in PLANNERS.items() if planner.steps(demand, BUDGET) <= BUDGET}


def main(multiples: Sequence[int] = (1,)) -> None:
    planners = [name.replace("_", " ") for name in (*ONE_PASS, "allocate")]
    show("minimalloc A-K: peak / bound, ms", ["", "buffers", *planners, "published"], quality())
    show("the search by its budget: peak / bound, ms", ["instance", *(f"budget x {k}" for k in multiples)],
         searches(multiples))
    show("lifetimes like those of a training step: peak / bound, ms", ["lifetimes", *planners], speed())


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or (1,))
