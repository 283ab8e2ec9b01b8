"""Gradients of several batches in one update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from nnc_core.control.constructs import cond
from nnc_core.functions.creation import asarray, zeros_like
from nnc_core.optim.minimisers.minimiser import Loss, Minimiser, zeros_of
from nnc_core.optim.settings import COUNT, Settings
from nnc_core.values.arguments import constructor
from nnc_core.values.cell import Cell, guarded
from nnc_core.values.modes import no_grad
from nnc_core.values.tensor import Tensor


class Accumulated(Minimiser):
    """A minimiser that updates on every so many calls of `update`, by the mean of the gradients since the last one.

    The batches count alike, so `Accumulated(minimiser, 4)` on quarters does what the minimiser does on whole batches
    of a mean loss.  Compiled, one graph serves all calls, and the minimiser's part of it runs when its turn comes.
    """

    settings: ClassVar[Settings] = {"every": COUNT}

    @constructor
    def __init__(self, minimiser: Minimiser, every: int) -> None:
        self.minimiser, self.every = minimiser, every
        self.parameters, self.step = minimiser.parameters, minimiser.step
        self.groups = ()
        self.count = Cell(asarray(np.int64(0), device=self.step.device), "count")
        self.slots = {"sum": {name: Cell(zeros_of(p), f"sum.{name}") for name, p in self.parameters.items()}}

    def update(self, gradients: Mapping[str, Tensor], loss: Loss | None = None) -> None:
        """Add to the sums, and every so often update.  A minimiser that asks for the loss gets that of its call."""
        self._check(gradients)
        guarded(self._read_settings)
        cells = self.slots["sum"]
        with no_grad():
            sums = {name: cells[name].read() + g for name, g in gradients.items()}
            count = self.count.read() + 1

            def update(sums: dict[str, Tensor], count: Tensor) -> tuple[()]:
                self.minimiser.update({name: s / self.every for name, s in sums.items()}, loss)
                frozen = {name: zeros_of(p) for name, p in self.parameters.items() if name not in sums}
                return self._keep(frozen | {name: zeros_like(s) for name, s in sums.items()}, count * 0)

            # what branches use is handed to them, so that it is computed in them
            cond(count >= self.every, update, self._keep, sums, count)

    def _keep(self, sums: Mapping[str, Tensor], count: Tensor) -> tuple[()]:
        for name, s in sums.items():
            self.slots["sum"][name].write(s)
        self.count.write(count)
        return ()

    def cells(self) -> dict[str, Cell]:
        """The sums, the count, and the minimiser's state."""
        sums = {f"sum.{name}": cell for name, cell in self.slots["sum"].items()}
        return {**self.minimiser.cells(), **sums, "count": self.count}

    def numbers(self) -> dict[str, float]:
        return {**self.minimiser.numbers(), "every": self.every}

    def take_numbers(self, saved: Mapping[str, float]) -> None:
        self.minimiser.take_numbers(saved)
        self.every = saved.get("every", self.every)  # type: ignore[assignment]

    def configuration(self) -> dict[str, str]:
        inner = {f"minimiser.{name}": x for name, x in self.minimiser.configuration().items()}
        return {"class": "Accumulated", "every": "a number", **inner}

    def __repr__(self) -> str:
        return f"Accumulated({self.minimiser!r}, every={self.every})"
