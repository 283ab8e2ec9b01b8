"""Floor 10: what trains.

Minimisers (`SGD`, `Adam` ...) with `schedules`, groups, clipping, accumulation and running means of weights; the
training step as one compiled graph (`make_step`, `fit`); Owl's Optimise: `Params`, made of the options in the modules
`batch`, `checkpoint`, `clipping`, `gradient`, `learning_rate`, `loss`, `momentum`, `newton`, `regularisation` and
`stopping`, for `minimise_fun`, `minimise_weight` and `train`; and the neural compiler: `compile_training`,
`compile_gradients`, `compile_model`, and `model`, `evaluate` and `StateGraph` for what was trained or compiled.
"""

from __future__ import annotations

from nnc_core.optim import (
    batch,
    checkpoint,
    clipping,
    gradient,
    learning_rate,
    loss,
    momentum,
    newton,
    regularisation,
    schedules,
    stopping,
)
from nnc_core.optim.accumulate import Accumulated
from nnc_core.optim.adafactor import Adafactor
from nnc_core.optim.adam import Adam, Adamax, AdamW, AMSGrad, NAdam, RAdam
from nnc_core.optim.adaptive import Adadelta, Adagrad, RMSprop
from nnc_core.optim.asgd import ASGD
from nnc_core.optim.average import Average
from nnc_core.optim.combined import Combined
from nnc_core.optim.compiler import NetworkGraph, TrainingGraph, compile_gradients, compile_model, compile_training
from nnc_core.optim.descent import LBFGS, Descent
from nnc_core.optim.groups import Group
from nnc_core.optim.inference import Model, evaluate, model
from nnc_core.optim.large_batch import LAMB, LARS
from nnc_core.optim.minimise import minimise_fun, minimise_network, minimise_weight, train
from nnc_core.optim.minimiser import Minimiser
from nnc_core.optim.nonfinite import NonfiniteWarning
from nnc_core.optim.params import Params
from nnc_core.optim.patterns import groups_by_name
from nnc_core.optim.progress import Progress
from nnc_core.optim.progress_bar import ProgressBar
from nnc_core.optim.sgd import SGD
from nnc_core.optim.sign import Lion, Rprop
from nnc_core.optim.state_graph import StateGraph
from nnc_core.optim.training import fit, make_descent, make_step, run_epoch

__all__ = [
    "ASGD",
    "LAMB",
    "LARS",
    "LBFGS",
    "SGD",
    "AMSGrad",
    "Accumulated",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Average",
    "Combined",
    "Descent",
    "Group",
    "Lion",
    "Minimiser",
    "Model",
    "NAdam",
    "NetworkGraph",
    "NonfiniteWarning",
    "Params",
    "Progress",
    "ProgressBar",
    "RAdam",
    "RMSprop",
    "Rprop",
    "StateGraph",
    "TrainingGraph",
    "batch",
    "checkpoint",
    "clipping",
    "compile_gradients",
    "compile_model",
    "compile_training",
    "evaluate",
    "fit",
    "gradient",
    "groups_by_name",
    "learning_rate",
    "loss",
    "make_descent",
    "make_step",
    "minimise_fun",
    "minimise_network",
    "minimise_weight",
    "model",
    "momentum",
    "newton",
    "regularisation",
    "run_epoch",
    "schedules",
    "stopping",
    "train",
]
