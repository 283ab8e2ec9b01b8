"""Averaged gradient descent."""

from __future__ import annotations

from typing import ClassVar, Unpack

from nnc_core.functions.elementwise import maximum
from nnc_core.optim.minimisers.minimiser import Common, Minimiser, Option, Parameters, Schedule
from nnc_core.optim.minimisers.turn import Turn, moved
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

    def rule(self, turn: Turn) -> Tensor:
        t, first = turn.step, turn.round.learning_rate
        rate = first / (1 + turn.shrink * first * t) ** turn.power
        new = moved(turn.p * turn.fit(1 - turn.shrink * rate), turn.g, turn.fit(rate))
        share = turn.fit(1 / maximum(t + 1 - turn.start, 1.0))
        turn["average"] = turn["average"] + (new - turn["average"]) * share
        return new
