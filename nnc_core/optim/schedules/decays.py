"""Rates that fall smoothly."""

from __future__ import annotations

from dataclasses import dataclass

from nnc_core.functions.elementwise import exp, minimum
from nnc_core.optim.settings import COUNT, NON_NEGATIVE, POSITIVE, check_all
from nnc_core.values.tensor import Tensor


@dataclass(frozen=True)
class Constant:
    """The same rate always; a tensor, so that it can be combined with others."""

    rate: float

    def __post_init__(self) -> None:
        check_all(self, rate=NON_NEGATIVE)

    def __call__(self, t: Tensor) -> Tensor:
        return t * 0 + self.rate


@dataclass(frozen=True)
class Exponential:
    """rate * factor**t"""

    rate: float
    factor: float

    def __post_init__(self) -> None:
        check_all(self, rate=NON_NEGATIVE, factor=POSITIVE)

    def __call__(self, t: Tensor) -> Tensor:
        rate: Tensor = self.rate * self.factor ** t
        return rate


@dataclass(frozen=True)
class ExponentialDecay:
    """rate * exp(-decay * t) (Owl's Exp_decay)"""

    rate: float
    decay: float

    def __post_init__(self) -> None:
        check_all(self, rate=NON_NEGATIVE, decay=NON_NEGATIVE)

    def __call__(self, t: Tensor) -> Tensor:
        rate: Tensor = self.rate * exp(t * -self.decay)
        return rate


@dataclass(frozen=True)
class InverseTime:
    """rate / (1 + decay * t) (Owl's Decay)"""

    rate: float
    decay: float

    def __post_init__(self) -> None:
        check_all(self, rate=NON_NEGATIVE, decay=NON_NEGATIVE)

    def __call__(self, t: Tensor) -> Tensor:
        rate: Tensor = self.rate / (1 + self.decay * t)
        return rate


@dataclass(frozen=True)
class Linear:
    """In a straight line from `first` to `last` within `steps` updates; `last` from then on."""

    first: float
    last: float
    steps: int

    def __post_init__(self) -> None:
        check_all(self, first=NON_NEGATIVE, last=NON_NEGATIVE, steps=COUNT)

    def __call__(self, t: Tensor) -> Tensor:
        rate: Tensor = self.first + (self.last - self.first) * progress(t, self.steps)
        return rate


@dataclass(frozen=True)
class Polynomial:
    """last + (rate - last) * (1 - t / steps)**power; `last` from t = steps on."""

    rate: float
    steps: int
    power: float = 1.0
    last: float = 0.0

    def __post_init__(self) -> None:
        check_all(self, rate=NON_NEGATIVE, steps=COUNT, power=POSITIVE, last=NON_NEGATIVE)

    def __call__(self, t: Tensor) -> Tensor:
        rate: Tensor = self.last + (self.rate - self.last) * (1 - progress(t, self.steps)) ** self.power
        return rate


def progress(t: Tensor, steps: float) -> Tensor:
    """The share of the way from 0 to `steps` at t: at most 1."""
    return minimum(t / steps, 1.0)
