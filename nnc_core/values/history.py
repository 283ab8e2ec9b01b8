"""The bound on what deferred code remembers: a loop that carries tensors forgets its early rounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakSet

from nnc_core.symbol import postorder
from nnc_core.values.value import RecentStep, Value

LONGEST_HISTORY = 256
"""Rounds of computing that a value can always be exported through; at most four times as many are kept."""
_forgotten: WeakSet[Value] = WeakSet()


class Round:
    """One evaluation: what it computes is one round later than the latest value that was there before.

    What is recorded and computed at once is one round, whatever its size.  Every `LONGEST_HISTORY` rounds of a chain
    its history is cut so many rounds back.  A value whose own history is no longer than that keeps it: it cannot grow.
    """

    __slots__ = ("bounded_at", "number")

    def __init__(self, values: Iterable[Value]) -> None:
        self.number = self.bounded_at = 0
        for v in values:
            step: Any = v.step
            if step.__class__ is RecentStep and v.array is not None:
                self.number = max(self.number, step.round)
                self.bounded_at = max(self.bounded_at, step.bounded_at)
        self.number += 1

    def stamp(self, step: Any) -> None:
        """Note that a step was computed in this round."""
        step.round, step.bounded_at = self.number, self.bounded_at

    @property
    def is_due(self) -> bool:
        """True if there are so many rounds that some are to be forgotten."""
        return self.number - self.bounded_at >= LONGEST_HISTORY

    def bound(self, computed: Iterable[Value]) -> None:
        """Cut the history of what was computed: of all that was, since what a gradient may be asked through, as a loss,
        hides what it was computed from."""
        latest = self.number - LONGEST_HISTORY

        def is_end(v: Value) -> bool:
            step: Any = v.step
            return v.tracked or (step.__class__ is RecentStep and step.round <= latest)

        for v in postorder(computed, leaf=is_end):
            step: Any = v.step
            if step.__class__ is not RecentStep:
                continue
            step.bounded_at = self.number
            if LONGEST_HISTORY < step.round <= latest and not v.tracked:
                _forgotten.add(v)
                v.step = None


def is_forgotten(v: Value) -> bool:
    """Tell whether the history of this value was cut, so that a graph through it would lack what came before."""
    return v in _forgotten
