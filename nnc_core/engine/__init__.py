"""Floor 8: from a graph to a program that runs on one device, and operators run one at a time."""

from __future__ import annotations

from nnc_core.engine.execute import Executor
from nnc_core.engine.layer import Engine
from nnc_core.engine.memory import MemoryPlan
from nnc_core.engine.profile import Profile
from nnc_core.engine.program import ComputationGraph
from nnc_core.engine.transfer import transfer

__all__ = ["ComputationGraph", "Engine", "Executor", "MemoryPlan", "Profile", "transfer"]
