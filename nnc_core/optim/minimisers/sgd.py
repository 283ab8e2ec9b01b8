"""Gradient descent."""

from __future__ import annotations

from typing import ClassVar, Unpack

from nnc_core.base.errors import AttributeValueError
from nnc_core.optim.minimisers.minimiser import Common, Minimiser, Option, Parameters, Schedule
from nnc_core.optim.minimisers.parameter_update import ParameterUpdate, moved
from nnc_core.optim.settings import FLAG, FRACTION, NON_NEGATIVE, Settings
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor


class SGD(Minimiser):
    """p - rate * v with v = momentum * v + (1 - dampening) * g (Polyak 1964); nesterov: p - rate * (g + momentum * v).

    `weight_decay` adds that multiple of p to its gradient.  Without momentum there is no state but the step count.
    """

    settings: ClassVar[Settings] = {**Minimiser.settings, "momentum": NON_NEGATIVE, "nesterov": FLAG,
                                    "dampening": FRACTION}
    takes_complex: ClassVar[bool] = True

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule, momentum: float = 0.0,
                 nesterov: bool = False, weight_decay: float = 0.0, dampening: float = 0.0,
                 **common: Unpack[Common]) -> None:
        super().__init__(parameters, learning_rate, momentum=momentum, nesterov=nesterov, weight_decay=weight_decay,
                         dampening=dampening, **common)

    def slots_for(self, option: Option, p: Cell) -> tuple[str, ...]:
        if option("nesterov") and not option("momentum"):
            raise AttributeValueError("nesterov needs a momentum above 0", operator="SGD")
        if option("dampening") and (option("nesterov") or not option("momentum")):
            raise AttributeValueError("dampening needs a momentum above 0 and nesterov=False", operator="SGD")
        return ("velocity",) if option("momentum") else ()

    def rule(self, update: ParameterUpdate) -> Tensor:
        p, g, momentum = update.p, update.g, update.momentum
        if momentum:
            kept = g * (1 - update.dampening) if update.dampening else g
            update["velocity"] = v = update["velocity"] * momentum + kept
            g = g + v * momentum if update.nesterov else v
        return moved(p, g, update.rate)
