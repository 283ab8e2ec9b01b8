"""Rates that change in steps, taken from a table that is computed on the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from nnc_core.base.errors import AttributeValueError
from nnc_core.functions.elementwise import floor_divide, minimum, remainder, where
from nnc_core.optim.settings import COUNT, FLAG, NON_NEGATIVE, POSITIVE, check, check_all
from nnc_core.type import plain
from nnc_core.values.tensor import Tensor


@dataclass(frozen=True)
class Step:
    """rate * factor**(t // every)"""

    rate: float
    every: int
    factor: float = 0.1

    def __post_init__(self) -> None:
        check_all(self, rate=NON_NEGATIVE, every=COUNT, factor=POSITIVE)

    def __call__(self, t: Tensor) -> Tensor:
        rate: Tensor = self.rate * self.factor ** floor_divide(t, self.every)
        return rate


@dataclass(frozen=True)
class MultiStep:
    """The rate times `factor` for each of the `milestones` that t has reached."""

    rate: float
    milestones: Sequence[int]
    factor: float = 0.1

    def __post_init__(self) -> None:
        check_all(self, rate=NON_NEGATIVE, factor=POSITIVE)
        object.__setattr__(self, "milestones", increasing("MultiStep", self.milestones))

    def __call__(self, t: Tensor) -> Tensor:
        rates = [self.rate * self.factor ** k for k in range(1, len(self.milestones) + 1)]
        return chosen(t, self.rate, list(zip(self.milestones, rates, strict=True)))


@dataclass(frozen=True)
class Listed:
    """The rates of a list, one for each update, over and over (Owl's Schedule, but that it begins with the first); or
    the last one from the end on."""

    rates: Sequence[float]
    repeat: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "rates", plain(tuple(self.rates)))
        check_all(self, repeat=FLAG)
        if not self.rates:
            raise AttributeValueError("the list is empty", operator="Listed", hint="give at least one rate")
        for i, rate in enumerate(self.rates):
            check("Listed", f"rate {i}", rate, NON_NEGATIVE)

    def __call__(self, t: Tensor) -> Tensor:
        at = remainder(t, len(self.rates)) if self.repeat else minimum(t, len(self.rates) - 1)
        return chosen(at, self.rates[0], list(enumerate(self.rates))[1:])


def chosen(t: Tensor, first: float | Tensor, later: Sequence[tuple[int, float | Tensor]]) -> Tensor:
    """`first`, and each of the others from its time on."""
    rate = t * 0 + first
    for time, value in later:
        rate = where(t >= time, value, rate)
    return rate


def increasing(owner: str, milestones: Sequence[int]) -> tuple[int, ...]:
    """Times as a tuple; AttributeValueError unless they are whole numbers of updates, each above the one before."""
    times: tuple[int, ...] = plain(tuple(milestones))
    for i, time in enumerate(times):
        check(owner, f"milestone {i}", time, COUNT)
    if any(b <= a for a, b in pairwise(times)):
        raise AttributeValueError(f"milestones {times} should increase", operator=owner)
    return times
