"""Minimisers with a learning rate for each element."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from nnc_core.base.errors import AttributeValueError
from nnc_core.dynamic.cell import Cell
from nnc_core.dynamic.functions.creation import asarray
from nnc_core.dynamic.functions.elementwise import sqrt
from nnc_core.dynamic.tensor import Tensor
from nnc_core.optim.minimiser import Minimiser, Schedule, Updates, representable


class Adagrad(Minimiser):
    """p - rate * g / (sqrt(sum of all g²) + epsilon) (Duchi, Hazan, Singer 2011).

    epsilon is raised to the smallest normal number of the parameter's dtype.
    """

    settings: ClassVar[tuple[str, ...]] = ("learning_rate", "epsilon")

    def __init__(self, parameters: Mapping[str, Cell] | Iterable[Cell], learning_rate: float | Schedule = 0.01,
                 epsilon: float = 1e-10) -> None:
        super().__init__(parameters, learning_rate)
        self.epsilon = epsilon
        self.slot("squares")

    def changes(self, gradients: Mapping[str, Tensor]) -> Updates:
        updates: Updates = []
        for name, cell in self.parameters.items():
            p, g, held = cell.read(), gradients[name], self.slots["squares"][name]
            rate, epsilon = self.rate_for(p), representable(self.epsilon, p.dtype)
            squares = held.read() + g * g
            # in this form the engine makes one command of it
            updates += [(held, squares), (cell, p - g * rate / (sqrt(squares) + epsilon))]
        return updates


class Adam(Minimiser):
    """p - rate * m / (sqrt(v) + epsilon), with running means m of g and v of g² freed of their bias (Kingma, Ba 2015).

    The corrections 1 - beta**step are kept as running means of 1, which loses no digits as the power in float32 does.
    epsilon is raised to the smallest normal number of the parameter's dtype.
    """

    settings: ClassVar[tuple[str, ...]] = ("learning_rate", "beta1", "beta2", "epsilon")

    def __init__(self, parameters: Mapping[str, Cell] | Iterable[Cell], learning_rate: float | Schedule = 0.001,
                 beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8) -> None:
        super().__init__(parameters, learning_rate)
        if not (0 <= beta1 < 1 and 0 <= beta2 < 1):
            raise AttributeValueError(f"beta1 {beta1} and beta2 {beta2} should be at least 0 and below 1",
                                      operator="Adam")
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self.slot("first")
        self.slot("second")
        wide = any(p.spec.dtype == np.float64 for p in self.parameters.values())
        zero = np.zeros((), np.float64 if wide else np.float32)
        self.slots["correction"] = {name: Cell(asarray(zero, device=self.step.device), f"correction.{name}")
                                    for name in ("first", "second")}

    def changes(self, gradients: Mapping[str, Tensor]) -> Updates:
        corrections = self.slots["correction"]
        first = _towards(corrections["first"].read(), 1.0, self.beta1)
        second = _towards(corrections["second"].read(), 1.0, self.beta2)
        updates: Updates = [(corrections["first"], first), (corrections["second"], second)]
        for name, cell in self.parameters.items():
            p, g = cell.read(), gradients[name]
            m = _towards(self.slots["first"][name].read(), g, self.beta1)
            v = _towards(self.slots["second"][name].read(), g * g, self.beta2)
            epsilon = representable(self.epsilon, p.dtype)
            mean, square = m / first.astype(p.dtype), v / second.astype(p.dtype)
            new = p - mean * self.rate_for(p) / (sqrt(square) + epsilon)
            updates += [(self.slots["first"][name], m), (self.slots["second"][name], v), (cell, new)]
        return updates


def _towards(mean: Tensor, x: Tensor | float, beta: float) -> Tensor:
    """The next running mean."""
    moved: Tensor = mean * beta + x * (1 - beta)
    return moved
