"""Scans along an axis, written straight into the output."""

from __future__ import annotations

from functools import partial

import numpy as np

from nnc_core.base.command import Command
from nnc_core.device import Launch
from nnc_cpu.memory import Array
from nnc_cpu.routine import Make, Routine, attributes_of, prepared


def _accumulating(function: np.ufunc) -> Make:
    def make(command: Command) -> Routine:
        axis, reverse = attributes_of(command)

        def bind(x: Array, out: Array) -> Launch:
            source, target = (np.flip(x, axis), np.flip(out, axis)) if reverse else (x, out)
            return partial(function.accumulate, source, axis, target.dtype, target)

        return Routine(bind)

    return make


MAKERS: dict[str, Make] = {
    "cumulative_sum": prepared(_accumulating(np.add), wide=True),
    "cumulative_prod": prepared(_accumulating(np.multiply), wide=True),
    "logcumsumexp": prepared(_accumulating(np.logaddexp), wide=True),
    "cummax": prepared(_accumulating(np.maximum)), "cummin": prepared(_accumulating(np.minimum)),
}  # fmt: skip
