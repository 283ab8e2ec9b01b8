"""Owl's losses: functions of (target, prediction), sums over all elements of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nnc_core.base.errors import AttributeValueError
from nnc_core.dynamic.functions.classification import cross_entropy
from nnc_core.dynamic.functions.elementwise import abs as abs_
from nnc_core.dynamic.functions.elementwise import log, maximum, where
from nnc_core.dynamic.functions.reduction import sum as sum_
from nnc_core.dynamic.tensor import Tensor
from nnc_core.optim.regularisation import safe_root

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Hinge:
    """sum max(0, 1 - target * prediction), for targets -1 and 1."""

    def __call__(self, target: Tensor, prediction: Tensor) -> Tensor:
        return sum_(maximum(1 - target * prediction, 0.0))


@dataclass(frozen=True)
class L1Norm:
    """sum |target - prediction|"""

    def __call__(self, target: Tensor, prediction: Tensor) -> Tensor:
        return sum_(abs_(target - prediction))


@dataclass(frozen=True)
class L2Norm:
    """sqrt(sum (target - prediction)²), with a gradient of 0 where they are equal."""

    def __call__(self, target: Tensor, prediction: Tensor) -> Tensor:
        error = target - prediction
        return safe_root(sum_(error * error))


@dataclass(frozen=True)
class Quadratic:
    """sum (target - prediction)²"""

    def __call__(self, target: Tensor, prediction: Tensor) -> Tensor:
        error = target - prediction
        return sum_(error * error)


@dataclass(frozen=True)
class CrossEntropy:
    """-sum target * log(prediction), of probabilities; 0 where the target is 0."""

    def __call__(self, target: Tensor, prediction: Tensor) -> Tensor:
        counts = target != 0
        return -sum_(where(counts, target * log(where(counts, prediction, 1.0)), 0.0))


@dataclass(frozen=True)
class SoftmaxCrossEntropy:
    """-sum log(softmax(prediction)) at the target, a class for each row: CrossEntropy of a network without softmax,
    in the form that loses no digits."""

    def __call__(self, target: Tensor, prediction: Tensor) -> Tensor:
        total: Tensor = cross_entropy(prediction, target, reduction="sum")
        return total


@dataclass(frozen=True)
class Custom:
    """A function of (target, prediction) that gives a scalar."""

    f: Loss

    def __post_init__(self) -> None:
        if not callable(self.f):
            raise AttributeValueError(f"f is {self.f!r}, expected a function of target and prediction",
                                      operator="Custom")

    def __call__(self, target: Tensor, prediction: Tensor) -> Tensor:
        return self.f(target, prediction)
