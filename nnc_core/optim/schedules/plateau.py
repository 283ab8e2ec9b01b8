"""A rate that is lowered when a measure has stopped to improve."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.errors import AttributeValueError
from nnc_core.functions.creation import asarray
from nnc_core.functions.elementwise import abs as abs_
from nnc_core.functions.elementwise import maximum, minimum, where
from nnc_core.optim.settings import FRACTION, NON_NEGATIVE, WHOLE, check, one_of
from nnc_core.values.arguments import constructor
from nnc_core.values.cell import Cell
from nnc_core.values.modes import no_grad
from nnc_core.values.tensor import Tensor

LARGEST = float(np.finfo(np.float32).max)


class ReduceOnPlateau:
    """`rate`, times `factor` whenever `observe` has seen no improvement more than `patience` times in a row.

    An improvement is a measure below the best one, or above it with mode "max", by more than threshold * |best|.
    After a reduction `cooldown` observations count as no failure; the rate does not fall below `least`.  State is in
    cells, which the minimiser saves and moves with its own, so `observe` may be part of a compiled step.
    """

    @constructor
    def __init__(self, rate: float, factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
                 cooldown: int = 0, least: float = 0.0, mode: str = "min", device: Any = None) -> None:
        for name, x, rule in (("rate", rate, NON_NEGATIVE), ("factor", factor, FRACTION),
                              ("threshold", threshold, NON_NEGATIVE), ("least", least, NON_NEGATIVE),
                              ("mode", mode, one_of("min", "max")), ("patience", patience, WHOLE),
                              ("cooldown", cooldown, WHOLE)):
            check("ReduceOnPlateau", name, x, rule)
        if not factor:
            raise AttributeValueError("factor 0 would stop all training", operator="ReduceOnPlateau")
        self.rate, self.factor, self.patience, self.threshold = rate, factor, patience, threshold
        self.cooldown, self.least, self.mode = cooldown, least, mode
        worst = np.inf if mode == "min" else -np.inf
        first = {"best": worst, "failures": 0, "cooling": 0, "reductions": 0}
        self._cells = {name: Cell(asarray(np.float32(x), device=device), name) for name, x in first.items()}

    def cells(self) -> dict[str, Cell]:
        """The best measure, failures in a row, observations left to cool down, reductions made."""
        return dict(self._cells)

    def __call__(self, t: Tensor) -> Tensor:
        reductions = self._cells["reductions"].read().astype(t.dtype)
        return maximum(self.rate * self.factor ** reductions, self.least)

    def observe(self, measure: Any) -> None:
        """Take note of a loss or another scalar."""
        cells = self._cells
        with no_grad():
            best, cooling = cells["best"].read(), cells["cooling"].read()
            x = asarray(measure, device=cells["best"].device).astype("float32")
            better = self._is_better(x, best)
            failures = where(better, 0.0, cells["failures"].read() + 1)
            failures = where(cooling > 0, 0.0, failures)
            reduced = failures > self.patience
            written = {"best": where(better, x, best), "failures": where(reduced, 0.0, failures),
                       "cooling": where(reduced, float(self.cooldown), maximum(cooling - 1, 0.0)),
                       "reductions": cells["reductions"].read() + reduced.astype("float32")}
        for name, tensor in written.items():
            cells[name].write(tensor)

    def _is_better(self, x: Tensor, best: Tensor) -> Tensor:
        margin = minimum(abs_(best), LARGEST) * self.threshold  # a number before the first observation too
        return x < best - margin if self.mode == "min" else x > best + margin

    def __repr__(self) -> str:
        return f"ReduceOnPlateau({self.rate}, factor={self.factor}, patience={self.patience})"
