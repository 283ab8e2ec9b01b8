"""A report of the planner's decisions: figures, a table of storages, a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nnc_core.engine.allocation import ArenaAllocation, Lifetime, draw_timeline
from nnc_core.engine.plan_types import Plan
from nnc_core.engine.program_tree import PlannedCommand


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes of the arena; inputs, constants and outputs are not in it."""

    peak: int
    bound: int
    """The largest sum of sizes that live at the same time: no plan can be smaller."""
    total: int
    """The sum of all sizes, as if nothing were shared."""
    planner: str
    commands: int
    aliases: int
    overwrites: int
    donated: int
    joined: int
    """Values that are computed straight into their part of a larger one."""
    copies: int
    """Commands that only copy: for what has to lie elsewhere as well, and what no view can give."""
    allocation: ArenaAllocation
    lifetimes: Sequence[Lifetime]
    labels: Sequence[str]

    @staticmethod
    def of(plan: Plan) -> MemoryPlan:
        a = plan.allocation
        lifetimes = [Lifetime(s.nbytes, s.first, s.last) for s in plan.arena]
        return MemoryPlan(a.peak, a.bound, a.total, a.planner, len(plan.steps), plan.aliases, plan.overwrites,
                          len(plan.donated), plan.joined, sum(_copies(s) for s in plan.steps), a, lifetimes,
                          [s.label for s in plan.arena])

    @property
    def ratio(self) -> float:
        """peak / bound; 1.0 is optimal."""
        return self.allocation.ratio

    def draw(self, path: str | Path) -> Path:
        """A picture of time against memory; the ending of the path says the format."""
        return draw_timeline(self.lifetimes, self.allocation, Path(path), self.labels)

    def __str__(self) -> str:
        sizes = f"peak {_size(self.peak)}, bound {_size(self.bound)} (ratio {self.ratio:.3f}), sum {_size(self.total)}"
        shared = f"{self.aliases} aliases, {self.overwrites} in place, {self.donated} donated, {self.joined} joined"
        return f"{sizes}; {self.commands} commands ({self.copies} copy), {shared}; planned by {self.planner}"


def _copies(step: PlannedCommand) -> bool:
    return step.group.op.view is not None or step.group.op.name in ("copy", "concat")


def _size(nbytes: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if nbytes < 1024:
            return f"{nbytes:.4g} {unit}"
        nbytes /= 1024
    return f"{nbytes:.4g} GiB"
