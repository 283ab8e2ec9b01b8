"""Minimisers whose steps are in proportion to the norm of each parameter, for large batches."""

from __future__ import annotations

from typing import ClassVar, Unpack

from nnc_core.functions.elementwise import logical_and, sqrt, where
from nnc_core.optim.clipping import norm
from nnc_core.optim.minimisers.adam import Means
from nnc_core.optim.minimisers.minimiser import Common, Minimiser, Option, Parameters, Schedule
from nnc_core.optim.minimisers.parameter_update import ParameterUpdate, moved
from nnc_core.optim.settings import FLAG, NON_NEGATIVE, POSITIVE, Settings
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor


class LAMB(Means):
    """p - rate * |p| / |u| * u, where u is Adam's step plus weight_decay * p (You et al. 2020).

    Where one of the norms is 0 their quotient is 1.
    """

    decoupled: ClassVar[bool] = True

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule = 0.001, beta1: float = 0.9,
                 beta2: float = 0.999, epsilon: float = 1e-6, weight_decay: float = 0.0,
                 **common: Unpack[Common]) -> None:
        super().__init__(parameters, learning_rate, beta1, beta2, epsilon, weight_decay, **common)

    def rule(self, update: ParameterUpdate) -> Tensor:
        m, v = self.means(update)
        first, root = update.shared("correction.first"), sqrt(update.shared("correction.second"))
        u = m * update.fit(root / first) / (sqrt(v) + update.fit_floor(update.floor * root))
        u = u + update.p * update.decay if update.decay else u
        trust = _quotient(norm(update.p), norm(u))
        return moved(update.p, u, update.fit(trust * update.group_update.learning_rate))


class LARS(Minimiser):
    """p - v with v = momentum * v + rate * local * (g + weight_decay * p), where
    local = trust * |p| / (|g| + weight_decay * |p| + epsilon) (You, Gitman, Ginsburg 2017); 1 where a norm is 0.
    """

    settings: ClassVar[Settings] = {**Minimiser.settings, "momentum": NON_NEGATIVE, "trust": POSITIVE,
                                    "epsilon": NON_NEGATIVE, "nesterov": FLAG}
    decoupled: ClassVar[bool] = True

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule, momentum: float = 0.9,
                 weight_decay: float = 0.0, trust: float = 0.001, epsilon: float = 0.0, nesterov: bool = False,
                 **common: Unpack[Common]) -> None:
        super().__init__(parameters, learning_rate, momentum=momentum, weight_decay=weight_decay, trust=trust,
                         epsilon=epsilon, nesterov=nesterov, **common)

    def slots_for(self, option: Option, p: Cell) -> tuple[str, ...]:
        return ("velocity",)

    def rule(self, update: ParameterUpdate) -> Tensor:
        p, of_p, of_g = update.p, norm(update.p), norm(update.g)
        local = _quotient(of_p * update.trust, of_g + of_p * update.decay + update.epsilon, of_g)
        g = update.g + p * update.decay if update.decay else update.g
        move = g * update.fit(local * update.group_update.learning_rate)
        update["velocity"] = v = update["velocity"] * update.momentum + move
        new: Tensor = p - (move + v * update.momentum if update.nesterov else v)
        return new


def _quotient(above: Tensor, below: Tensor, other: Tensor | None = None) -> Tensor:
    """above / below, and 1 where one of them (or the other) is 0."""
    usable = logical_and(above > 0, (below if other is None else other) > 0)
    return where(usable, above / where(usable, below, 1.0), 1.0)
