"""Owl's losses: functions of (target, prediction), sums over all elements of a batch.

Target and prediction have one shape, but for `SoftmaxCrossEntropy`, whose targets are class numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nnc_core.base.dtype import is_integer
from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.functions.classification import cross_entropy
from nnc_core.functions.creation import asarray
from nnc_core.functions.elementwise import abs as abs_
from nnc_core.functions.elementwise import log, maximum, where
from nnc_core.functions.reduction import sum as sum_
from nnc_core.optim.owl.regularisation import safe_root
from nnc_core.symbol import show_line, user_line
from nnc_core.values.tensor import Tensor

Loss = Callable[[Tensor, Tensor], Tensor]


class _OfOneShape:
    """A loss whose target has the shape of the prediction.

    Others would be broadcast, and class numbers against the scores of all classes without an error wherever a batch has
    as many rows as there are classes.
    """

    def __call__(self, target: Any, prediction: Any) -> Tensor:
        target, prediction = _tensors(target, prediction)
        if target.shape != prediction.shape:
            raise ShapeError(f"the target is {target.spec}, expected the shape of the prediction {prediction.spec}",
                             operator=type(self).__name__, line=show_line(user_line()), hint=_hint(target, prediction))
        return self.total(target, prediction)

    def total(self, target: Tensor, prediction: Tensor) -> Tensor:
        """The loss of all elements together."""
        raise NotImplementedError(f"{type(self).__name__} has no total")


def _tensors(*xs: Any) -> list[Tensor]:
    """Host arrays as tensors where the others are."""
    device = next((x.device for x in xs if isinstance(x, Tensor)), None)
    return [x if isinstance(x, Tensor) else asarray(x, device=device) for x in xs]


def _hint(target: Tensor, prediction: Tensor) -> str:
    if is_integer(target.dtype) and prediction.ndim > 1:
        return ("optim.owl.loss.SoftmaxCrossEntropy() takes class numbers, one for each row, and scores before "
                f"softmax; others take nnc.one_hot(labels, {prediction.shape[-1]})")
    return "reshape one of them"


@dataclass(frozen=True)
class Hinge(_OfOneShape):
    """sum max(0, 1 - target * prediction), for targets -1 and 1."""

    def total(self, target: Tensor, prediction: Tensor) -> Tensor:
        return sum_(maximum(1 - target * prediction, 0.0))


@dataclass(frozen=True)
class L1Norm(_OfOneShape):
    """sum |target - prediction|"""

    def total(self, target: Tensor, prediction: Tensor) -> Tensor:
        return sum_(abs_(target - prediction))


@dataclass(frozen=True)
class L2Norm(_OfOneShape):
    """sqrt(sum (target - prediction)²), with a gradient of 0 where they are equal."""

    def total(self, target: Tensor, prediction: Tensor) -> Tensor:
        error = target - prediction
        return safe_root(sum_(error * error))


@dataclass(frozen=True)
class Quadratic(_OfOneShape):
    """sum (target - prediction)²"""

    def total(self, target: Tensor, prediction: Tensor) -> Tensor:
        error = target - prediction
        return sum_(error * error)


@dataclass(frozen=True)
class CrossEntropy(_OfOneShape):
    """-sum target * log(prediction), of probabilities; 0 where the target is 0."""

    def total(self, target: Tensor, prediction: Tensor) -> Tensor:
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
