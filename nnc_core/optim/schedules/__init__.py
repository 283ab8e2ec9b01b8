"""Learning rates that change: functions of t, the number of updates made before, evaluated in the graph.

A schedule is given in place of a number, `optim.Adam(parameters, schedules.Cosine(0.1, 1000))`; compiled training is
not traced again when t moves on.  Any other function of t will do as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnc_core.base.unknown_names import answers
from nnc_core.optim.schedules.combined import Chain, Scaled, Sequence, WarmUp
from nnc_core.optim.schedules.cycles import Cosine, CosineRestarts, OneCycle
from nnc_core.optim.schedules.decays import Constant, Exponential, ExponentialDecay, InverseTime, Linear, Polynomial
from nnc_core.optim.schedules.plateau import ReduceOnPlateau
from nnc_core.optim.schedules.steps import Listed, MultiStep, Step
from nnc_core.optim.spellings import SCHEDULES

if not TYPE_CHECKING:
    __getattr__ = answers(__name__, SCHEDULES)

__all__ = [
    "Chain", "Constant", "Cosine", "CosineRestarts", "Exponential", "ExponentialDecay", "InverseTime", "Linear",
    "Listed", "MultiStep", "OneCycle", "Polynomial", "ReduceOnPlateau", "Scaled", "Sequence", "Step", "WarmUp",
]
