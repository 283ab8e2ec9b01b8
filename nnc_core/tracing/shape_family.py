"""Calls that differ in sizes alone: what they share."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

from nnc_core.base.errors import Error
from nnc_core.tracing.compilation import Compilation
from nnc_core.tracing.dimensions import Axis, Shapes, Sizes, axes_of, named
from nnc_core.tracing.traced import Traced

EXAMPLES = 8
"""Shapes, and traces with names, that are remembered."""
NEEDED = 2
"""An axis whose number the code has asked for in so many traces gets no name any more."""


class ShapeFamily:
    """Traces for calls of one signature but for the sizes.

    The first call is traced with numbers.  One with other sizes is traced with names for what has changed; the
    following ones specialise that trace, unless it found out that it does not hold for them.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.shapes: list[Shapes] = []
        self.traces: list[Traced] = []
        self.hopeless = False
        """The code fails on names."""
        self._needs: Counter[Axis] = Counter()

    def specialised(self, shapes: Shapes) -> Compilation | None:
        """A trace with names that holds for these shapes, compiled for them."""
        for traced in reversed(self.traces):
            numbers = traced.numbers_for(shapes)
            if numbers is None or not traced.is_current():
                continue
            try:
                found = Compilation.of(traced, numbers)
            except (Error, ZeroDivisionError):
                continue  # an operator does not take this size; tracing it tells the user why, if it has to be so
            return found
        return None

    def named(self, shapes: Shapes, labels: Sequence[str]) -> tuple[Shapes, Sizes] | None:
        """The shapes with names for what has changed, and the numbers of the names this time."""
        if self.hopeless or not self.shapes:
            return None
        fixed = frozenset(axis for axis, count in self._needs.items() if count >= NEEDED)
        return named(self.shapes, shapes, labels, fixed, f"@{len(self.traces)}" if self.traces else "")

    def keep(self, shapes: Shapes, traced: Traced) -> None:
        """Remember a trace and the shapes it was made for."""
        if shapes not in self.shapes:
            self.shapes = [*self.shapes, shapes][-EXAMPLES:]
        if traced.sizes is None:
            return
        self._needs.update(axes_of(traced.shapes, traced.sizes.needed))
        if traced.sizes.names - traced.sizes.pinned:
            self.traces = [*self.traces, traced][-EXAMPLES:]
