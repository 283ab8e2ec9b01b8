"""Averaged gradient descent."""

from __future__ import annotations

from typing import ClassVar, Unpack

from nnc_core.functions.elementwise import maximum
from nnc_core.optim.minimisers.minimiser import Common, Minimiser, Option, Parameters, Schedule
from nnc_core.optim.minimisers.parameter_update import ParameterUpdate, moved
from nnc_core.optim.settings import NON_NEGATIVE, Settings
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor


class ASGD(Minimiser):
    """Descent at rate / (1 + shrink * rate * t)**power, with p multiplied by 1 - shrink * that rate, whose average from
    update `start` on is kept (Polyak, Juditsky 1992).

    The average is `minimiser.slots["average"]`, by the names of the parameters; t counts the updates made before.
    """

    settings: ClassVar[Settings] = {**Minimiser.settings, "shrink": NON_NEGATIVE, "power": NON_NEGATIVE,
                                    "start": NON_NEGATIVE}

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule = 0.01, shrink: float = 1e-4,
                 power: float = 0.75, start: float = 1e6, weight_decay: float = 0.0,
                 **common: Unpack[Common]) -> None:
        super().__init__(parameters, learning_rate, shrink=shrink, power=power, start=start,
                         weight_decay=weight_decay, **common)

    def slots_for(self, option: Option, p: Cell) -> tuple[str, ...]:
        return ("average",)

    def rule(self, update: ParameterUpdate) -> Tensor:
        t, first = update.step, update.group_update.learning_rate
        rate = first / (1 + update.shrink * first * t) ** update.power
        new = moved(update.p * update.fit(1 - update.shrink * rate), update.g, update.fit(rate))
        share = update.fit(1 / maximum(t + 1 - update.start, 1.0))
        update["average"] = update["average"] + (new - update["average"]) * share
        return new
