"""Adam's second moments at the price of a row and a column."""

from __future__ import annotations

from typing import ClassVar, Unpack

from nnc_core.functions.creation import zeros
from nnc_core.functions.elementwise import maximum, minimum, sqrt
from nnc_core.functions.reduction import mean
from nnc_core.optim.minimisers.adam import decayed
from nnc_core.optim.minimisers.minimiser import Common, Minimiser, Option, Parameters, Schedule
from nnc_core.optim.minimisers.parameter_update import ParameterUpdate, Rate
from nnc_core.optim.settings import FLAG, NON_NEGATIVE, POSITIVE, Settings
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor


class Adafactor(Minimiser):
    """Adafactor (Shazeer, Stern 2018), without momentum.

    Of a parameter with two dimensions or more, the running mean of g² + epsilon is kept as its means over the last and
    the last but one dimension, whose product over their mean stands for it; its decay is 1 - t**-`decay_power`.  The
    step u = g / sqrt(v) is shortened to a root mean square of at most `threshold`.  It is taken at
    max(least_scale, rms(p)) * min(rate, 1 / sqrt(t)), or, unless `relative`, at the rate as it is.  Weight decay is
    decoupled.
    """

    settings: ClassVar[Settings] = {**Minimiser.settings, "decay_power": POSITIVE, "epsilon": NON_NEGATIVE,
                                    "least_scale": NON_NEGATIVE, "threshold": POSITIVE, "relative": FLAG}
    decoupled: ClassVar[bool] = True

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule = 0.01, decay_power: float = 0.8,
                 epsilon: float = 1e-30, least_scale: float = 1e-3, threshold: float = 1.0, relative: bool = True,
                 weight_decay: float = 0.0, **common: Unpack[Common]) -> None:
        super().__init__(parameters, learning_rate, decay_power=decay_power, epsilon=epsilon, least_scale=least_scale,
                         threshold=threshold, relative=relative, weight_decay=weight_decay, **common)

    def slots_for(self, option: Option, p: Cell) -> tuple[str, ...]:
        return ("row", "column") if len(p.spec.shape) > 1 else ("squares",)

    def zeros_for(self, slot: str, p: Cell, option: Option) -> Tensor:
        *outer, n, m = (1, 1, *p.spec.shape)
        shape = {"row": (*outer[2:], n), "column": (*outer[2:], m)}.get(slot, p.spec.shape)
        return zeros(shape, dtype=p.spec.dtype, device=p.device)

    def rule(self, update: ParameterUpdate) -> Tensor:
        g, t = update.g, update.step + 1
        u = g / sqrt(self._squares(update, update.fit(t ** -update.decay_power)))
        u = u / maximum(_rms(u) / update.threshold, 1.0)
        rate = update.rate
        if update.relative:
            relative = minimum(update.group_update.learning_rate, t ** -0.5)
            rate = update.fit(relative) * maximum(_rms(update.p), update.least_scale)
        return decayed(update) - u * rate

    def _squares(self, update: ParameterUpdate, fresh: Rate) -> Tensor:
        """The mean of squares whose root divides g; `fresh` is the share of the new g² in it."""
        squares = update.g * update.g + update.floor
        if "squares" in update.held:
            update["squares"] = v = update["squares"] * (1 - fresh) + squares * fresh
            return v
        update["row"] = row = update["row"] * (1 - fresh) + mean(squares, axis=-1) * fresh
        update["column"] = column = update["column"] * (1 - fresh) + mean(squares, axis=-2) * fresh
        scale = row / mean(row, axis=-1, keepdims=True)
        product: Tensor = scale.reshape((*scale.shape, 1)) * column.reshape((*column.shape[:-1], 1, column.shape[-1]))
        return product


def _rms(x: Tensor) -> Tensor:
    return sqrt(mean(x * x))
