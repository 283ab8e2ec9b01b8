"""The configuration of a run, with Owl's defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from nnc_core.optim import batch as batches
from nnc_core.optim import loss as losses
from nnc_core.optim.checkpoint import Checkpoint
from nnc_core.optim.descent import Descent
from nnc_core.optim.gradient import GD, Gradient
from nnc_core.optim.learning_rate import Const, LearningRate
from nnc_core.optim.minimiser import Parameters
from nnc_core.optim.momentum import Momentum
from nnc_core.optim.nonfinite import POLICIES
from nnc_core.optim.settings import FLAG, FUNCTION_OR_NONE, POSITIVE, check, check_all, instance_of, one_of
from nnc_core.optim.stopping import Stopping


@dataclass
class Params:
    """How to minimise: `Params(epochs=10, batch=batch.Mini(32), learning_rate=learning_rate.Adam())`.

    Owl's names and defaults.  Beside them: `compiled` makes one graph of each step (Owl's minimise_compiled_network),
    `nonfinite` is what a loss or gradients that are no numbers are: an "error", a reason to "skip" the update with a
    warning, or numbers like others ("propagate").
    """

    epochs: float = 1.0
    batch: batches.Batch = field(default_factory=batches.Sample)
    gradient: Gradient = field(default_factory=GD)
    loss: Callable[..., Any] = field(default_factory=losses.CrossEntropy)
    learning_rate: float | LearningRate | Callable[..., Any] = field(default_factory=Const)
    regularisation: Callable[..., Any] | None = None
    momentum: Momentum | None = None
    clipping: Callable[..., Any] | None = None
    stopping: Stopping | None = None
    checkpoint: Checkpoint | None = None
    verbosity: bool = True
    compiled: bool = True
    nonfinite: str = "error"

    def __post_init__(self) -> None:
        check_all(self, epochs=POSITIVE, batch=instance_of(batches.Batch, what="one of optim.batch"),
                  learning_rate=Descent.settings["learning_rate"], gradient=Descent.settings["gradient"],
                  momentum=Descent.settings["momentum"], regularisation=FUNCTION_OR_NONE, clipping=FUNCTION_OR_NONE,
                  stopping=instance_of(Stopping, type(None), what="one of optim.stopping, or None"),
                  checkpoint=instance_of(Checkpoint, type(None), what="one of optim.checkpoint, or None"),
                  verbosity=FLAG, compiled=FLAG, nonfinite=one_of(*POLICIES))
        check("Params", "loss", self.loss, instance_of(Callable, what="a function of (target, prediction)"))  # type: ignore[arg-type]

    def minimiser(self, parameters: Parameters) -> Descent:
        """What changes the parameters."""
        policy = "skip" if self.nonfinite == "skip" else "propagate"  # errors are seen by the loss
        return Descent(parameters, self.learning_rate, self.gradient, self.momentum, clipping=self.clipping,
                       nonfinite=policy)

    def __str__(self) -> str:
        rows = [f"    {f.name:<15}: {getattr(self, f.name)}" for f in fields(self)]
        return "\n".join(["--- training config", *rows, "---"])
