"""Schedules made of schedules."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Several
from dataclasses import dataclass
from typing import Any

from nnc_core.base.errors import AttributeValueError
from nnc_core.optim.schedules.decays import progress
from nnc_core.optim.schedules.steps import chosen, increasing
from nnc_core.optim.settings import COUNT, NON_NEGATIVE, RATE, SHARE, check, check_all
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor

Rate = float | Callable[[Tensor], Any]


@dataclass(frozen=True)
class Scaled:
    """rate * f(t) for a function f of the user's (LambdaLR)."""

    rate: float
    f: Callable[[Tensor], Any]

    def __post_init__(self) -> None:
        check_all(self, rate=NON_NEGATIVE)
        if not callable(self.f):
            raise AttributeValueError(f"f is {self.f!r}, expected a function of the step", operator="Scaled")

    def __call__(self, t: Tensor) -> Any:
        return self.rate * self.f(t)


@dataclass(frozen=True)
class WarmUp:
    """A rate or a schedule times first + (1 - first) * (t + 1) / steps, as long as that is below 1."""

    rate: Rate
    steps: int
    first: float = 0.0

    def __post_init__(self) -> None:
        check_all(self, rate=RATE, steps=COUNT, first=SHARE)

    def __call__(self, t: Tensor) -> Any:
        return value(self.rate, t) * (self.first + (1 - self.first) * progress(t + 1, self.steps))

    def cells(self) -> dict[str, Cell]:
        return carried([self.rate])


@dataclass(frozen=True)
class Sequence:
    """One schedule after another: each of the `milestones` is where the next begins, at its own t = 0."""

    schedules: Several[Rate]
    milestones: Several[int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "schedules", _checked("Sequence", self.schedules))
        object.__setattr__(self, "milestones", increasing("Sequence", self.milestones))
        if len(self.schedules) != len(self.milestones) + 1:
            raise AttributeValueError(f"{len(self.schedules)} schedules with {len(self.milestones)} milestones",
                                      operator="Sequence", hint="a milestone for each schedule but the first")

    def __call__(self, t: Tensor) -> Tensor:
        later = [(m, value(s, t - m)) for m, s in zip(self.milestones, self.schedules[1:], strict=True)]
        return chosen(t, value(self.schedules[0], t), later)

    def cells(self) -> dict[str, Cell]:
        return carried(self.schedules)


@dataclass(frozen=True)
class Chain:
    """The product of schedules: a rate, and factors that change it."""

    schedules: Several[Rate]

    def __post_init__(self) -> None:
        object.__setattr__(self, "schedules", _checked("Chain", self.schedules))

    def __call__(self, t: Tensor) -> Any:
        product: Any = 1.0
        for schedule in self.schedules:
            product = value(schedule, t) * product
        return product

    def cells(self) -> dict[str, Cell]:
        return carried(self.schedules)


def value(rate: Rate, t: Tensor) -> Any:
    return rate(t) if callable(rate) else rate


def carried(schedules: Several[Rate]) -> dict[str, Cell]:
    """The state of schedules that have some, by position and name."""
    return {f"{i}.{name}": cell for i, s in enumerate(schedules) if hasattr(s, "cells")
            for name, cell in s.cells().items()}


def _checked(owner: str, schedules: Several[Rate]) -> tuple[Rate, ...]:
    found = tuple(schedules)
    if not found:
        raise AttributeValueError("no schedules", operator=owner, hint="give at least one")
    for i, schedule in enumerate(found):
        check(owner, f"schedule {i}", schedule, RATE)
    return found
