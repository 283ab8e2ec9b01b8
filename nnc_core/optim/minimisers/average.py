"""Running means of weights, for evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from nnc_core.base.dtype import float64
from nnc_core.base.errors import OperandError
from nnc_core.base.fields import is_number
from nnc_core.functions.creation import asarray
from nnc_core.optim.minimisers.groups import Cells, named, with_names
from nnc_core.optim.minimisers.stateful import Stateful
from nnc_core.optim.settings import SHARE, Check, check
from nnc_core.values.arguments import constructor
from nnc_core.values.cell import Cell, guarded
from nnc_core.values.modes import no_grad
from nnc_core.values.tensor import Tensor

DECAY = Check(lambda x: callable(x) or (is_number(x) and SHARE.holds(x)), "a number from 0 to 1, or a function")


class Average(Stateful):
    """mean * decay + p * (1 - decay) of each parameter, which `update` takes, best right after the minimiser's.

    It begins with the weights as they are.  `decay` may be a function of the number of updates before:
    `lambda t: t / (t + 1)` is the plain mean of the weights after each update (stochastic weight averaging), and
    `lambda t: nnc.minimum(0.999, (1 + t) / (10 + t))` forgets the beginning sooner.
    """

    @constructor
    def __init__(self, parameters: Cells, decay: float | Callable[[Tensor], Any] = 0.999) -> None:
        check("Average", "decay", decay, DECAY)
        self.parameters, self.decay = named(with_names(parameters)), decay
        if not self.parameters:
            raise OperandError("no parameters to average",
                               hint="module.named_parameters(), which leaves frozen ones out")
        first = next(iter(self.parameters.values()))
        self.step = Cell(asarray(np.int64(0), device=first.device), "step")
        self.means = {name: Cell(p.read().detach(), f"mean.{name}") for name, p in self.parameters.items()}

    def update(self) -> None:
        """Take the weights of now into the means."""
        guarded(self._read_decay)
        with no_grad():
            decay = self.decay(self._live_step()) if callable(self.decay) else self.decay
            new = {name: self._mean(mean.read(), self.parameters[name].read(), decay)
                   for name, mean in self.means.items()}
            count = self.step.read() + 1
        for name, tensor in new.items():
            self.means[name].write(tensor)
        self.step.write(count)

    def _mean(self, mean: Tensor, p: Tensor, decay: Any) -> Tensor:
        kept = decay.astype(p.dtype) if isinstance(decay, Tensor) else decay
        new: Tensor = mean * kept + p * (1 - kept)
        return new

    def _live_step(self) -> Tensor:
        wide = any(p.spec.dtype == float64 for p in self.parameters.values())
        return self.step.read().astype("float64" if wide else "float32")

    def _read_decay(self) -> Any:
        return self.decay

    def swap(self) -> None:
        """Exchange the weights and their means."""
        for name, mean in self.means.items():
            p = self.parameters[name]
            weight, average = p.read().detach(), mean.read()
            p.write(average)
            mean.write(weight)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The parameters hold the means until the end of the block however it ends."""
        self.swap()
        try:
            yield
        finally:
            self.swap()

    def cells(self) -> dict[str, Cell]:
        """The number of updates, and the mean of each parameter."""
        return {"step": self.step, **{f"mean.{name}": cell for name, cell in self.means.items()}}

    def __repr__(self) -> str:
        return f"Average({len(self.parameters)} parameters, decay={self.decay!r})"
