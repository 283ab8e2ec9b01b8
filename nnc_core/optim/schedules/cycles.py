"""Rates that follow a cosine, once or in cycles."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

from nnc_core.base.errors import AttributeValueError
from nnc_core.functions.elementwise import clip, cos, remainder, where
from nnc_core.optim.schedules.decays import progress
from nnc_core.optim.schedules.steps import chosen
from nnc_core.optim.settings import COUNT, NON_NEGATIVE, POSITIVE, SHARE, check_all
from nnc_core.values.tensor import Tensor

_LATEST = 2**31
"""Restarts are known up to this update."""


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from `rate` to `last` within `steps` updates; `last` from then on (Loshchilov, Hutter 2017)."""

    rate: float
    steps: int
    last: float = 0.0

    def __post_init__(self) -> None:
        check_all(self, rate=NON_NEGATIVE, steps=COUNT, last=NON_NEGATIVE)

    def __call__(self, t: Tensor) -> Tensor:
        return between(self.rate, self.last, progress(t, self.steps))


@dataclass(frozen=True)
class CosineRestarts:
    """Half cosines from `rate` to `last`, the first of `steps` updates, each `factor` times as long as the one before
    (Loshchilov, Hutter 2017)."""

    rate: float
    steps: int
    factor: int = 1
    last: float = 0.0

    def __post_init__(self) -> None:
        check_all(self, rate=NON_NEGATIVE, steps=COUNT, factor=COUNT, last=NON_NEGATIVE)

    def __call__(self, t: Tensor) -> Tensor:
        if self.factor == 1:
            return between(self.rate, self.last, remainder(t, self.steps) / self.steps)
        starts, length = [0], self.steps
        while starts[-1] + length < _LATEST:
            starts.append(starts[-1] + length)
            length *= self.factor
        start = chosen(t, 0.0, [(s, float(s)) for s in starts[1:]])
        # the lengths of all cycles before, from the first one, add up to the start
        return between(self.rate, self.last, (t - start) / (start * (self.factor - 1) + self.steps))


@dataclass(frozen=True)
class OneCycle:
    """From highest / `first_divisor` up to `highest` in the share `warm` of all updates, then down to the first rate /
    `last_divisor`, both along half a cosine (Smith, Topin 2019); the last rate from then on."""

    highest: float
    steps: int
    warm: float = 0.3
    first_divisor: float = 25.0
    last_divisor: float = 1e4

    def __post_init__(self) -> None:
        check_all(self, highest=NON_NEGATIVE, steps=COUNT, warm=SHARE, first_divisor=POSITIVE, last_divisor=POSITIVE)
        if not 0 < self.warm * self.steps - 1 < self.steps - 1:
            raise AttributeValueError(f"of {self.steps} updates the share {self.warm} leaves none to rise or fall in",
                                      operator="OneCycle", hint="more updates, or another share")

    def __call__(self, t: Tensor) -> Tensor:
        first, top, end = self.highest / self.first_divisor, self.warm * self.steps - 1, self.steps - 1
        rising = between(first, self.highest, clip(t / top, 0.0, 1.0))
        falling = between(self.highest, first / self.last_divisor, clip((t - top) / (end - top), 0.0, 1.0))
        return where(t <= top, rising, falling)


def between(first: float, last: float, share: Tensor) -> Tensor:
    """Half a cosine from `first` at 0 to `last` at 1."""
    rate: Tensor = last + (first - last) * (1 + cos(share * pi)) / 2
    return rate
