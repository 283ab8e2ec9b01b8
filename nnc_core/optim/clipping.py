"""Clipping of gradients.  Each is a function of gradients by name; what is not a number stays so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from nnc_core.base.errors import AttributeValueError
from nnc_core.base.fields import is_number
from nnc_core.base.unknown_names import answers
from nnc_core.functions.elementwise import clip, maximum, sqrt
from nnc_core.functions.reduction import sum as sum_
from nnc_core.optim.settings import POSITIVE, check_all
from nnc_core.optim.spellings import CLIPPING
from nnc_core.values.tensor import Tensor

Gradients = Mapping[str, Tensor]
Clipping = Callable[[Gradients], Mapping[str, Tensor]]

if not TYPE_CHECKING:
    __getattr__ = answers(__name__, CLIPPING)


@dataclass(frozen=True)
class Norm:
    """Each gradient alone is shortened to a Euclidean norm of at most `limit` (Owl's L2norm)."""

    limit: float = 1.0

    def __post_init__(self) -> None:
        check_all(self, limit=POSITIVE)

    def __call__(self, gradients: Gradients) -> dict[str, Tensor]:
        return {name: _shortened(g, norm(g), self.limit) for name, g in gradients.items()}


@dataclass(frozen=True)
class GlobalNorm:
    """All gradients are scaled alike, so that the norm over all of them is at most `limit`."""

    limit: float = 1.0

    def __post_init__(self) -> None:
        check_all(self, limit=POSITIVE)

    def __call__(self, gradients: Gradients) -> dict[str, Tensor]:
        length = global_norm(gradients)
        return {name: _shortened(g, length, self.limit) for name, g in gradients.items()}


@dataclass(frozen=True)
class Value:
    """Each element is brought between `low` and `high`; one number alone, `Value(0.5)`, is the largest magnitude.

    (Owl's default, 0 to 1, drops what is negative.)
    """

    low: float = -1.0
    high: float | None = None

    def __post_init__(self) -> None:
        low, high = self.low, self.high
        if high is None and is_number(low):
            low, high = -abs(low), abs(low)
            object.__setattr__(self, "low", low)
            object.__setattr__(self, "high", high)
        if high is None or not (is_number(low) and is_number(high) and low < high):
            raise AttributeValueError(f"low {self.low!r} should be a number below high {high!r}", operator="Value")

    def __call__(self, gradients: Gradients) -> dict[str, Tensor]:
        return {name: clip(g, self.low, self.high) for name, g in gradients.items()}


def norm(x: Tensor) -> Tensor:
    """The Euclidean norm of all elements; of half precision in float32, where squares do not overflow."""
    return sqrt(_squares(x))


def global_norm(gradients: Gradients) -> Tensor:
    """The Euclidean norm over the elements of all tensors."""
    squares = [_squares(g) for g in gradients.values()]
    dtype = "float64" if any(s.dtype.itemsize == 8 for s in squares) else "float32"
    return sqrt(reduce(add, [s.astype(dtype) for s in squares]))


def _squares(x: Tensor) -> Tensor:
    x = x.astype("float32") if x.dtype.itemsize < 4 else x
    return sum_(x * x)


def _shortened(g: Tensor, length: Tensor, limit: float) -> Tensor:
    return g * (limit / maximum(length, limit)).astype(g.dtype)
