"""Regularisation: functions of weights by name that are added to a loss, and have gradients as it has.

`loss + L2(1e-4)(weights)`, where weights are tensors, or Parameters such as `network.named_parameters()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add

from nnc_core.base.errors import OperandError
from nnc_core.functions.elementwise import abs as abs_
from nnc_core.functions.elementwise import sqrt, where
from nnc_core.functions.reduction import sum as sum_
from nnc_core.optim.settings import FLAG, NON_NEGATIVE, check_all
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor

Weights = Mapping[str, Tensor] | Mapping[str, Cell]


@dataclass(frozen=True)
class Regularisation:
    """The base of all: the terms of the arrays are added up."""

    def __call__(self, weights: Weights) -> Tensor:
        terms = [self.term(w.read() if isinstance(w, Cell) else w) for w in weights.values()]
        if not terms:
            raise OperandError("no weights to regularise", operator=type(self).__name__)
        return reduce(add, terms)

    def term(self, w: Tensor) -> Tensor:
        """That of one array."""
        raise NotImplementedError(f"{type(self).__name__} has no term")


@dataclass(frozen=True)
class L1(Regularisation):
    """a * sum |w|; its gradient at 0 is 0."""

    a: float

    def __post_init__(self) -> None:
        check_all(self, a=NON_NEGATIVE)

    def term(self, w: Tensor) -> Tensor:
        term: Tensor = sum_(abs_(w)) * self.a
        return term


@dataclass(frozen=True)
class L2(Regularisation):
    """a * sum w²; squared=False is Owl's a * the norm of each array, whose gradient at 0 is 0."""

    a: float
    squared: bool = True

    def __post_init__(self) -> None:
        check_all(self, a=NON_NEGATIVE, squared=FLAG)

    def term(self, w: Tensor) -> Tensor:
        term: Tensor = _length(w, self.squared) * self.a
        return term


@dataclass(frozen=True)
class ElasticNet(Regularisation):
    """a * sum |w| + b * sum w² (Zou, Hastie 2005); squared=False as in L2."""

    a: float
    b: float
    squared: bool = True

    def __post_init__(self) -> None:
        check_all(self, a=NON_NEGATIVE, b=NON_NEGATIVE, squared=FLAG)

    def term(self, w: Tensor) -> Tensor:
        term: Tensor = sum_(abs_(w)) * self.a + _length(w, self.squared) * self.b
        return term


def _length(w: Tensor, squared: bool) -> Tensor:
    squares = sum_(w * w)
    return squares if squared else safe_root(squares)


def safe_root(x: Tensor) -> Tensor:
    """sqrt(x), with a gradient of 0 at 0."""
    positive = x > 0
    return where(positive, sqrt(where(positive, x, 1.0)), 0.0)
