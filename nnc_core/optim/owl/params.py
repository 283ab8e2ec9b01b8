"""The configuration of a run, with Owl's defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from nnc_core.base.errors import AttributeValueError
from nnc_core.optim.minimisers.minimiser import Minimiser, Parameters
from nnc_core.optim.minimisers.nonfinite import POLICIES
from nnc_core.optim.owl import batch as batches
from nnc_core.optim.owl import loss as losses
from nnc_core.optim.owl.checkpoint import Checkpoint
from nnc_core.optim.owl.descent import Descent
from nnc_core.optim.owl.gradient import GD, Gradient
from nnc_core.optim.owl.learning_rate import Const, LearningRate
from nnc_core.optim.owl.momentum import Momentum
from nnc_core.optim.owl.stopping import Stopping
from nnc_core.optim.settings import FLAG, FUNCTION_OR_NONE, POSITIVE, check, check_all, instance_of, one_of


@dataclass
class Params:
    """The configuration of a run: `Params(epochs=10, batch=batch.Mini(32), learning_rate=learning_rate.Adam())`.

    Owl's names and defaults.  Beside them: `compiled` makes one graph of each step (Owl's minimise_compiled_network),
    `nonfinite` is what a loss or gradients that are no numbers are: an "error", a reason to "skip" the update with a
    warning, or numbers like others ("propagate").  `make_minimiser` gives another minimiser than that of Owl's parts,
    such as `lambda parameters: optim.AdamW(parameters, 0.01)`; gradient, learning_rate, momentum and clipping are then
    its own, and so is `nonfinite="skip"`.
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
    make_minimiser: Callable[[Parameters], Minimiser] | None = None

    def __post_init__(self) -> None:
        check_all(self, epochs=POSITIVE, batch=instance_of(batches.Batch, what="one of optim.owl.batch"),
                  learning_rate=Descent.settings["learning_rate"], gradient=Descent.settings["gradient"],
                  momentum=Descent.settings["momentum"], regularisation=FUNCTION_OR_NONE, clipping=FUNCTION_OR_NONE,
                  stopping=instance_of(Stopping, type(None), what="one of optim.owl.stopping, or None"),
                  checkpoint=instance_of(Checkpoint, type(None), what="one of optim.owl.checkpoint, or None"),
                  verbosity=FLAG, compiled=FLAG, nonfinite=one_of(*POLICIES), make_minimiser=FUNCTION_OR_NONE)
        check("Params", "loss", self.loss, instance_of(Callable, what="a function of (target, prediction)"))  # type: ignore[arg-type]

        if self.make_minimiser is not None:
            self._check_not_both()

    def _check_not_both(self) -> None:
        """Settings that another minimiser would not hear of."""
        usual = (("gradient", GD()), ("learning_rate", Const()), ("momentum", None), ("clipping", None))
        given = [name for name, default in usual if getattr(self, name) != default]
        given += ["nonfinite"] * (self.nonfinite == "skip")
        if given:
            raise AttributeValueError(f"{', '.join(given)} would have no effect beside make_minimiser",
                                      operator="Params", hint="set it on the minimiser that make_minimiser makes")

    def minimiser(self, parameters: Parameters) -> Minimiser:
        """The minimiser that changes the parameters."""
        if self.make_minimiser is not None:
            return self.make_minimiser(parameters)
        policy = "skip" if self.nonfinite == "skip" else "propagate"  # errors are seen by the loss
        return Descent(parameters, self.learning_rate, self.gradient, self.momentum, clipping=self.clipping,
                       nonfinite=policy)

    def __str__(self) -> str:
        rows = [f"    {f.name:<15}: {getattr(self, f.name)}" for f in fields(self)]
        return "\n".join(["--- training config", *rows, "---"])
