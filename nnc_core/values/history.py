"""The memory of deferred code: how values were computed, not the values, and only the late rounds of a loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar
from weakref import WeakSet

from nnc_core.symbol import postorder
from nnc_core.type import Op
from nnc_core.values.modes import RECENT, lazy
from nnc_core.values.value import PassingStep, RecentStep, Remembered, Step, Value, is_snapshot

LONGEST_HISTORY = 256
"""Rounds of computing that a value can always be exported through; at most four times as many are kept."""
_forgotten: WeakSet[Value] = WeakSet()


class Round:
    """One evaluation: what it computes is one round later than the latest value that was there before.

    What is recorded and computed at once is one round, whatever its size.  Every `LONGEST_HISTORY` rounds of a chain
    its history is cut so many rounds back.  A value whose own history is no longer than that keeps it: it cannot grow.
    """

    __slots__ = ("bounded_at", "number")
    made: ClassVar[int] = 0
    """Another number after each evaluation: while it stays, nothing has been computed."""

    def __init__(self, values: Iterable[Value]) -> None:
        Round.made += 1
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

    def settle(self, v: Value) -> None:
        """Have the step of a value that has been computed in this round keep what its mode remembers."""
        step: Any = v.step
        if step.__class__ is RecentStep:
            self.stamp(step)
            if not v.tracked:
                release_inputs(step)
        elif step.__class__ is PassingStep and not v.tracked:
            v.step = None

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
                _forget(v)


def _forget(v: Value) -> None:
    """Cut the history of a value, and of what other histories hold of it."""
    for x in (v, getattr(v, "remembered", None)):
        if x is not None:
            _forgotten.add(x)
            x.step = None


def cut(v: Value) -> None:
    """Take the history of a computed value away: to histories it is an array that was there from the beginning."""
    v.step = None
    held = getattr(v, "remembered", None)
    if held is not None:
        held.array, held.step = v.array, None


def renamed(v: Value, identity: Op) -> Step:
    """The step of a value that is another one, of the same round."""
    if lazy.get() != RECENT:
        return Step(identity, (v,), (), None)
    step, before = RecentStep(identity, (v,), (), None), v.step
    if before.__class__ is RecentStep:
        step.round, step.bounded_at = before.round, before.bounded_at
    return step


def was_computed(v: Value) -> bool:
    """Tell whether a value was computed in deferred mode: not if it was there before, or is renamed only."""
    step = v.step
    return step.__class__ is RecentStep and v.array is not None and not any([x.array is v.array for x in step.inputs])


def release_inputs(step: RecentStep) -> None:
    """Hold no arrays any more after the step has been computed: those of its inputs go with their last tensor."""
    step.inputs = tuple([_remembered(x) for x in step.inputs])
    step.released = True


def hold_inputs(order: Iterable[Value]) -> None:
    """Before a value that was let go is computed again: have each step hold what it reads until it has run."""
    for v in order:
        if v.array is None and v.step is not None:
            v.step.inputs = v.inputs  # `released` stays, and is without effect


def _remembered(v: Value) -> Value:
    """The stand-in that a history holds of a value, or the value itself."""
    if v.__class__ is Value:
        known: Value | None = getattr(v, "remembered", None)
        if known is not None:
            return known
        if _may_go(v):
            return _remembered_with_all_before(v) if v.tracked else Remembered(v, v.step)  # type: ignore[arg-type]
    return v


def _remembered_with_all_before(v: Value) -> Value:
    """The same of a tracked value: its own step holds what gradients need, so that histories have steps for it and all
    tracked ones before it."""
    for x in postorder([v], leaf=lambda x: not (x.tracked and _may_go(x)) or hasattr(x, "remembered")):
        if x.tracked and not hasattr(x, "remembered") and _may_go(x):
            step: Any = x.step
            copy = RecentStep(step.op, tuple([_remembered(i) for i in step.inputs]), step.attributes, step.line)
            if step.__class__ is RecentStep:
                copy.round, copy.bounded_at = step.round, step.bounded_at
            copy.released = True
            Remembered(x, copy)
    return v.remembered


def _may_go(v: Value) -> bool:
    """Tell whether the array of a value could be computed again.

    Not what has no step or may have changed since (a copy of borrowed memory), nor what the host did, which may have
    been seen.  Steps that were recorded to be kept, in a trace or with `keep_graph`, keep arrays too.
    """
    step = v.step
    if step.__class__ is not RecentStep and not (v.tracked and step.__class__ is Step and not is_snapshot(v)):
        return False
    op = step.op
    return not (v.array is None or v.trace is not None or op.host or op.data_dependent or op.bodies)


def is_forgotten(v: Value) -> bool:
    """Tell whether the history of this value was cut, so that a graph through it would lack what came before."""
    return v in _forgotten
