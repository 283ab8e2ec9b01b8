"""Minimisers that look at the signs of gradients."""

from __future__ import annotations

from typing import ClassVar, Unpack

from nnc_core.base.errors import AttributeValueError
from nnc_core.functions.creation import full
from nnc_core.functions.elementwise import clip, sign, where
from nnc_core.optim.minimisers.adam import decayed
from nnc_core.optim.minimisers.adaptive import towards
from nnc_core.optim.minimisers.minimiser import Common, Minimiser, Option, Parameters, Schedule, zeros_of
from nnc_core.optim.minimisers.parameter_update import ParameterUpdate, moved
from nnc_core.optim.settings import FRACTION, POSITIVE, Settings
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor


class Lion(Minimiser):
    """p - rate * sign(beta1 * m + (1 - beta1) * g), with a running mean m of g at beta2 and decoupled weight decay
    (Chen et al. 2023)."""

    settings: ClassVar[Settings] = {**Minimiser.settings, "beta1": FRACTION, "beta2": FRACTION}
    decoupled: ClassVar[bool] = True

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule = 1e-4, beta1: float = 0.9,
                 beta2: float = 0.99, weight_decay: float = 0.0, **common: Unpack[Common]) -> None:
        super().__init__(parameters, learning_rate, beta1=beta1, beta2=beta2, weight_decay=weight_decay, **common)

    def slots_for(self, option: Option, p: Cell) -> tuple[str, ...]:
        return ("mean",)

    def rule(self, update: ParameterUpdate) -> Tensor:
        direction = sign(towards(update["mean"], update.g, update.beta1))
        update["mean"] = towards(update["mean"], update.g, update.beta2)
        return moved(decayed(update), direction, update.rate)


class Rprop(Minimiser):
    """Each element moves against the sign of its gradient by a size of its own (Riedmiller, Braun 1993; iRprop-).

    The size begins at the learning rate, grows by `growth` while the sign stays, and shrinks by `shrinkage` when it
    changes, where the element does not move; it stays between `smallest` and `largest`.  For full batches.  The
    learning rate is read once, when the minimiser is made, and is no schedule.
    """

    settings: ClassVar[Settings] = {**Minimiser.settings, "growth": POSITIVE, "shrinkage": FRACTION,
                                    "smallest": POSITIVE, "largest": POSITIVE}

    def __init__(self, parameters: Parameters, learning_rate: float = 0.01, growth: float = 1.2,
                 shrinkage: float = 0.5, smallest: float = 1e-6, largest: float = 50.0,
                 **common: Unpack[Common]) -> None:
        if callable(learning_rate):
            raise AttributeValueError("the learning rate is where sizes begin, not a schedule", operator="Rprop",
                                      hint="give a number")
        super().__init__(parameters, learning_rate, growth=growth, shrinkage=shrinkage, smallest=smallest,
                         largest=largest, **common)

    def slots_for(self, option: Option, p: Cell) -> tuple[str, ...]:
        if option("growth") <= 1 or option("smallest") > option("largest"):
            raise AttributeValueError(f"growth {option('growth')} should be above 1, and smallest "
                                      f"{option('smallest')} not above largest {option('largest')}", operator="Rprop")
        return ("before", "size")

    def zeros_for(self, slot: str, p: Cell, option: Option) -> Tensor:
        if slot == "before":
            return zeros_of(p)
        return full(p.spec.shape, float(option("learning_rate")), dtype=p.spec.dtype, device=p.device)

    def rule(self, update: ParameterUpdate) -> Tensor:
        agreement, size = update.g * update["before"], update["size"]
        size = where(agreement > 0, size * update.growth, where(agreement < 0, size * update.shrinkage, size))
        update["size"] = size = clip(size, update.smallest, update.largest)
        update["before"] = g = where(agreement < 0, 0.0, update.g)
        return update.p - sign(g) * size
