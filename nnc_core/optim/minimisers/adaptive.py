"""Minimisers with a learning rate for each element, from sums or means of squared gradients."""

from __future__ import annotations

from typing import ClassVar, Unpack

from nnc_core.functions.creation import full
from nnc_core.functions.elementwise import sqrt
from nnc_core.optim.minimisers.minimiser import Common, Minimiser, Option, Parameters, Schedule
from nnc_core.optim.minimisers.parameter_update import ParameterUpdate, moved
from nnc_core.optim.settings import FLAG, FRACTION, NON_NEGATIVE, Settings
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor


class Adagrad(Minimiser):
    """p - rate * g / (sqrt(sum of all g²) + epsilon) (Duchi, Hazan, Singer 2011).

    The sum begins at `first_sum`.  epsilon is raised to the smallest normal number of the parameter's dtype.
    """

    settings: ClassVar[Settings] = {**Minimiser.settings, "epsilon": NON_NEGATIVE, "first_sum": NON_NEGATIVE}

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule = 0.01, epsilon: float = 1e-10,
                 weight_decay: float = 0.0, first_sum: float = 0.0, **common: Unpack[Common]) -> None:
        super().__init__(parameters, learning_rate, epsilon=epsilon, weight_decay=weight_decay, first_sum=first_sum,
                         **common)

    def slots_for(self, option: Option, p: Cell) -> tuple[str, ...]:
        return ("squares",)

    def zeros_for(self, slot: str, p: Cell, option: Option) -> Tensor:
        return full(p.spec.shape, float(option("first_sum")), dtype=p.spec.dtype, device=p.device)

    def rule(self, update: ParameterUpdate) -> Tensor:
        update["squares"] = squares = update["squares"] + update.g * update.g
        # in this form the engine makes one command of it
        return update.p - update.g * update.rate / (sqrt(squares) + update.floor)


class RMSprop(Minimiser):
    """p - rate * g / (sqrt(v) + epsilon), with a running mean v of g² (Tieleman, Hinton 2012).

    `centred` takes the square of the running mean of g off v (Graves 2013); with momentum the quotient is added up in
    a velocity, by whose multiple p moves.
    """

    settings: ClassVar[Settings] = {**Minimiser.settings, "smoothing": FRACTION, "epsilon": NON_NEGATIVE,
                                    "momentum": NON_NEGATIVE, "centred": FLAG}

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule = 0.01, smoothing: float = 0.99,
                 epsilon: float = 1e-8, weight_decay: float = 0.0, momentum: float = 0.0, centred: bool = False,
                 **common: Unpack[Common]) -> None:
        super().__init__(parameters, learning_rate, smoothing=smoothing, epsilon=epsilon, weight_decay=weight_decay,
                         momentum=momentum, centred=centred, **common)

    def slots_for(self, option: Option, p: Cell) -> tuple[str, ...]:
        return ("squares", *(["mean"] * option("centred")), *(["velocity"] * bool(option("momentum"))))

    def rule(self, update: ParameterUpdate) -> Tensor:
        p, g = update.p, update.g
        update["squares"] = v = towards(update["squares"], g * g, update.smoothing)
        if update.centred:
            update["mean"] = mean = towards(update["mean"], g, update.smoothing)
            v = (v - mean * mean).clip(0)  # rounding may leave less than nothing
        if not update.momentum:
            return p - g * update.rate / (sqrt(v) + update.floor)
        update["velocity"] = velocity = update["velocity"] * update.momentum + g / (sqrt(v) + update.floor)
        return moved(p, velocity, update.rate)


class Adadelta(Minimiser):
    """p - rate * d, d = g * sqrt((u + epsilon) / (v + epsilon)), means v of g² and u of d² (Zeiler 2012)."""

    settings: ClassVar[Settings] = {**Minimiser.settings, "smoothing": FRACTION, "epsilon": NON_NEGATIVE}

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule = 1.0, smoothing: float = 0.9,
                 epsilon: float = 1e-6, weight_decay: float = 0.0, **common: Unpack[Common]) -> None:
        super().__init__(parameters, learning_rate, smoothing=smoothing, epsilon=epsilon, weight_decay=weight_decay,
                         **common)

    def slots_for(self, option: Option, p: Cell) -> tuple[str, ...]:
        return ("squares", "moves")

    def rule(self, update: ParameterUpdate) -> Tensor:
        g, epsilon = update.g, update.floor
        update["squares"] = v = towards(update["squares"], g * g, update.smoothing)
        move = g * sqrt((update["moves"] + epsilon) / (v + epsilon))
        update["moves"] = towards(update["moves"], move * move, update.smoothing)
        return moved(update.p, move, update.rate)


def towards(mean: Tensor, x: Tensor | float, beta: float) -> Tensor:
    """The next running mean."""
    next_: Tensor = mean * beta + x * (1 - beta)
    return next_
