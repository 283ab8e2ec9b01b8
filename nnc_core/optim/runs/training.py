"""The training step as one graph, and a loop around it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any

from nnc_core.base.errors import DataError, NonfiniteWarning
from nnc_core.base.line import users_frame
from nnc_core.optim.minimisers.minimiser import Minimiser
from nnc_core.optim.owl.checkpoint import Checkpoint
from nnc_core.optim.owl.stopping import Stopping
from nnc_core.optim.runs.progress import Progress
from nnc_core.optim.runs.rows import uploaded
from nnc_core.optim.runs.rules import Report, Rules
from nnc_core.tracing.jit import jit
from nnc_core.values.arguments import located
from nnc_core.values.modes import step_by_step
from nnc_core.values.tensor import Tensor

LossAndGradients = Callable[..., tuple[Any, Mapping[str, Tensor]]]
"""From a batch to (loss, gradients by the names of the parameters), such as nn.value_and_grad makes."""
Step = Callable[..., Any]
Batches = Callable[[int], Iterable[tuple[Any, ...]]]
"""From the number of an epoch to its batches, each the arguments of a step."""


def make_step(loss_and_gradients: LossAndGradients, minimiser: Minimiser, *, eager: bool = False) -> Step:
    """A function of a batch that trains on it and gives the loss.

    Forward, loss, backward and update are compiled into one graph, with dropout and the step count live;
    with `eager` the same code runs operator by operator.
    """

    def training_step(*batch: Any) -> Any:
        loss, gradients = loss_and_gradients(*batch)
        minimiser.update(gradients)
        return loss

    return training_step if eager else jit(training_step)


def make_descent(loss: Callable[..., Tensor], minimiser: Minimiser, *, eager: bool = False) -> Step:
    """A function of a batch that makes one update by loss(weights, *batch) and gives the loss before.

    `weights` are tensors by the names of the parameters.  For minimisers that evaluate the function too (Newton's
    methods, line searches), and for functions that are no modules.
    """

    def descent_step(*batch: Any) -> Tensor:
        return minimiser.descend(lambda weights: loss(weights, *batch))

    return descent_step if eager else jit(descent_step)


@located
def run_epoch(step: Step, batches: Iterable[tuple[Any, ...]]) -> float:
    """The mean loss of one pass over the batches, whose host arrays are uploaded.

    Losses are added up on the device and read once, so that the host prepares a batch while the device works.
    A NonfiniteWarning says that it is no finite number.
    """
    total, count = None, 0
    for batch in batches:
        loss = step(*uploaded(tuple(batch)))
        total, count = loss if total is None else total + loss, count + 1
    if total is None:
        raise DataError("an epoch without batches", hint="give each epoch a fresh iterable, not one that is used up")
    mean = float(total) / count
    if not isfinite(mean):
        warnings.warn(f"the mean loss of an epoch of {count} batches is {mean}", NonfiniteWarning,
                      stacklevel=users_frame())
    return mean


@located
def fit(step: Step, batches: Batches, epochs: int, *, state: Progress | None = None,
        validate: Callable[[], float] | None = None, stopping: Stopping | None = None,
        checkpoint: Checkpoint | None = None, report: Report | None = None) -> Progress:
    """Train by one's own step on one's own batches: how it went, with the mean loss of each epoch.

    `validate` measures the loss on other data, for stopping.Early.  Stopping, checkpoints and reports come after each
    epoch, and count epochs where they count batches elsewhere.  With the `state` of an earlier run it goes on from the
    epoch after, until there are `epochs` in all.
    """
    progress = Progress(None) if state is None else state
    rules = Rules(stopping, checkpoint, validate, report)
    progress.begin(epochs)
    while progress.goes_on:
        with step_by_step():
            loss = run_epoch(step, batches(progress.batch))
        progress.note(loss)
        rules.apply(progress)
    return progress
