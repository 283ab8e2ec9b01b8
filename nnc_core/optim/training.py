"""The training step as one graph, and a loop around it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any

import numpy as np

from nnc_core.base.errors import DataError
from nnc_core.dynamic.functions.creation import asarray
from nnc_core.dynamic.tensor import Tensor
from nnc_core.dynamic.traces.jit import jit
from nnc_core.dynamic.tree import tree_map
from nnc_core.optim.minimiser import Minimiser
from nnc_core.optim.nonfinite import NonfiniteWarning

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


def run_epoch(step: Step, batches: Iterable[tuple[Any, ...]]) -> float:
    """The mean loss of one pass over the batches, whose host arrays are uploaded.

    Losses are added up on the device and read once, so that the host prepares a batch while the device works.
    A NonfiniteWarning says that it is no finite number.
    """
    total, count = None, 0
    for batch in batches:
        loss = step(*tree_map(_uploaded, batch))
        total, count = loss if total is None else total + loss, count + 1
    if total is None:
        raise DataError("an epoch without batches", hint="give each epoch a fresh iterable, not one that is used up")
    mean = float(total) / count
    if not isfinite(mean):
        warnings.warn(f"the mean loss of an epoch of {count} batches is {mean}", NonfiniteWarning, stacklevel=2)
    return mean


def fit(step: Step, batches: Batches, epochs: int, *, first_epoch: int = 0,
        on_epoch: Callable[[int, float], object] | None = None) -> list[float]:
    """Train for epochs first_epoch … epochs - 1; the mean loss of each.

    `on_epoch(epoch, loss)` is called after each.
    """
    losses = []
    for epoch in range(first_epoch, epochs):
        losses.append(run_epoch(step, batches(epoch)))
        if on_epoch is not None:
            on_epoch(epoch, losses[-1])
    return losses


def _uploaded(x: Any) -> Any:
    return asarray(x) if isinstance(x, (np.ndarray, np.generic)) else x
