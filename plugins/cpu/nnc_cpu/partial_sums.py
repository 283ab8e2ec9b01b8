"""The sums of loop nests that are folded as partial ones on this device, whoever computes them."""

from __future__ import annotations

from math import prod

from nnc_core.base.dtype import is_float
from nnc_core.base.loopnest import SPLIT, LoopNest, Reduction, Stage

FEW = 16
"""Outer points that are too few to fold a dot of each by itself."""


def in_parts(reduction: Reduction, stage: Stage, nest: LoopNest) -> bool:
    """Tell whether a reduction is folded as PARTS partial ones.  It depends on nothing that a fused nest could have
    otherwise, so that an operator gives the same bits wherever it runs."""
    if stage.running or not is_float(reduction.dtype) or prod(stage.axes) <= 1:
        return False
    if reduction.kind == "dot":
        return nest.points < FEW
    return reduction.kind in SPLIT
