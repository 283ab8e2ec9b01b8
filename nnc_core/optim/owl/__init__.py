"""Owl's Optimise: the options of a run by its names, the minimiser that they make, and `Params`, which holds them.

`optim.train`, `minimise_fun` and `minimise_weight` take `Params`.  The options are the modules `batch`, `checkpoint`,
`gradient`, `learning_rate`, `line_search`, `loss`, `momentum`, `newton`, `regularisation` and `stopping`, and
`optim.clipping`, which all minimisers share.  `Descent` is their minimiser, beside those of `optim.minimisers`.
"""

from __future__ import annotations

from nnc_core.optim import clipping
from nnc_core.optim.owl import (
    batch,
    checkpoint,
    gradient,
    learning_rate,
    line_search,
    loss,
    momentum,
    newton,
    regularisation,
    stopping,
)
from nnc_core.optim.owl.descent import LBFGS, Descent
from nnc_core.optim.owl.params import Params
from nnc_core.optim.owl.position import Position

__all__ = [
    "LBFGS",
    "Descent",
    "Params",
    "Position",
    "batch",
    "checkpoint",
    "clipping",
    "gradient",
    "learning_rate",
    "line_search",
    "loss",
    "momentum",
    "newton",
    "regularisation",
    "stopping",
]
