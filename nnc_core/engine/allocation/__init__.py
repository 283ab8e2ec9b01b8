"""Static memory planning over lifetimes alone: it knows no nodes and no devices."""

from __future__ import annotations

from nnc_core.engine.allocation.choose import BUDGET, PLANNERS, allocate, allocate_by
from nnc_core.engine.allocation.lifetime import ArenaAllocation, Lifetime
from nnc_core.engine.allocation.timeline import draw_timeline

__all__ = ["BUDGET", "PLANNERS", "ArenaAllocation", "Lifetime", "allocate", "allocate_by", "draw_timeline"]
