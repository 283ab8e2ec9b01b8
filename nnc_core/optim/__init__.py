"""Floor 10: minimisers, and the training step as one compiled graph."""

from __future__ import annotations

from nnc_core.optim.adaptive import Adagrad, Adam
from nnc_core.optim.minimiser import Minimiser
from nnc_core.optim.sgd import SGD
from nnc_core.optim.training import fit, make_step, run_epoch

__all__ = ["SGD", "Adagrad", "Adam", "Minimiser", "fit", "make_step", "run_epoch"]
