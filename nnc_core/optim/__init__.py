"""Floor 16: what trains.

- `minimisers` (`SGD`, `Adam` ...) with `schedules`, groups, `clipping`, accumulation and running means of weights;
- `runs`: the training step as one compiled graph (`make_step`, `fit`), and Owl's Optimise (`minimise_fun`,
  `minimise_weight`, `train`), configured by `owl.Params`, whose options are the modules of `owl`;
- `compiled`: the neural compiler (`compile_training`, `compile_gradients`, `compile_model`), and `model`, `evaluate`
  and `StateGraph` for what was trained or compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnc_core.base.errors import NonfiniteWarning
from nnc_core.base.unknown_names import answers
from nnc_core.optim import clipping, owl, schedules
from nnc_core.optim.compiled.compiler import (
    NetworkGraph,
    TrainingGraph,
    compile_gradients,
    compile_model,
    compile_training,
)
from nnc_core.optim.compiled.inference import Model, evaluate, model
from nnc_core.optim.compiled.state_graph import StateGraph
from nnc_core.optim.minimisers.accumulate import Accumulated
from nnc_core.optim.minimisers.adafactor import Adafactor
from nnc_core.optim.minimisers.adam import Adam, Adamax, AdamW, AMSGrad, NAdam, RAdam
from nnc_core.optim.minimisers.adaptive import Adadelta, Adagrad, RMSprop
from nnc_core.optim.minimisers.asgd import ASGD
from nnc_core.optim.minimisers.average import Average
from nnc_core.optim.minimisers.combined import Combined
from nnc_core.optim.minimisers.groups import Group, groups_by_name
from nnc_core.optim.minimisers.large_batch import LAMB, LARS
from nnc_core.optim.minimisers.minimiser import Minimiser
from nnc_core.optim.minimisers.sgd import SGD
from nnc_core.optim.minimisers.sign import Lion, Rprop
from nnc_core.optim.owl.descent import LBFGS
from nnc_core.optim.runs.minimise import minimise_fun, minimise_network, minimise_weight, train
from nnc_core.optim.runs.progress import Progress
from nnc_core.optim.runs.progress_bar import ProgressBar
from nnc_core.optim.runs.training import fit, make_descent, make_step, run_epoch
from nnc_core.optim.spellings import ADVICE, CLIPPING, SCHEDULES

if not TYPE_CHECKING:
    __getattr__ = answers(__name__, {**SCHEDULES, **CLIPPING, **ADVICE})

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
    "Group",
    "Lion",
    "Minimiser",
    "Model",
    "NAdam",
    "NetworkGraph",
    "NonfiniteWarning",
    "Progress",
    "ProgressBar",
    "RAdam",
    "RMSprop",
    "Rprop",
    "StateGraph",
    "TrainingGraph",
    "clipping",
    "compile_gradients",
    "compile_model",
    "compile_training",
    "evaluate",
    "fit",
    "groups_by_name",
    "make_descent",
    "make_step",
    "minimise_fun",
    "minimise_network",
    "minimise_weight",
    "model",
    "owl",
    "run_epoch",
    "schedules",
    "train",
]
