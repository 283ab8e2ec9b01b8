"""Gradient descent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from nnc_core.base.errors import AttributeValueError, StateError
from nnc_core.dynamic.cell import Cell
from nnc_core.dynamic.tensor import Tensor
from nnc_core.optim.minimiser import Minimiser, Schedule, Updates


class SGD(Minimiser):
    """p - rate * v with v = momentum * v + g (Polyak 1964); nesterov: p - rate * (g + momentum * v).

    `weight_decay` adds that multiple of p to its gradient.  Without momentum there is no state but the step count.
    """

    settings: ClassVar[tuple[str, ...]] = ("learning_rate", "momentum", "nesterov", "weight_decay")

    def __init__(self, parameters: Mapping[str, Cell] | Iterable[Cell], learning_rate: float | Schedule,
                 momentum: float = 0.0, nesterov: bool = False, weight_decay: float = 0.0) -> None:
        super().__init__(parameters, learning_rate)
        if nesterov and not momentum:
            raise AttributeValueError("nesterov needs a momentum above 0", operator="SGD")
        self.momentum, self.nesterov, self.weight_decay = momentum, nesterov, weight_decay
        if momentum:
            self.slot("velocity")

    def changes(self, gradients: Mapping[str, Tensor]) -> Updates:
        if self.momentum and "velocity" not in self.slots:
            raise StateError("this SGD was made without momentum and has no velocities", hint="make a new one")
        updates: Updates = []
        for name, cell in self.parameters.items():
            p, g = cell.read(), gradients[name]
            if self.weight_decay:
                g = g + p * self.weight_decay
            if "velocity" in self.slots:
                velocity = self.slots["velocity"][name]
                v = velocity.read() * self.momentum + g
                updates.append((velocity, v))
                g = g + v * self.momentum if self.nesterov else v
            updates.append((cell, p - g * self.rate_for(p)))
        return updates
