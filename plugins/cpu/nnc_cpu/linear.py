"""Matrix products by BLAS, on packed matrices so that the call does not depend on strides."""

from __future__ import annotations

from functools import partial

import numpy as np

from nnc_core.base.command import Command
from nnc_core.device import Launch
from nnc_cpu.memory import Array
from nnc_cpu.routine import Make, Routine, attributes_of, converting, in_order, prepared, scratch


def turned(x: Array, transpose: object) -> Array:
    return x.swapaxes(-1, -2) if transpose else x


def _matmul(command: Command) -> Routine:
    ta, tb = attributes_of(command)
    a, b = command.inputs
    if bool(ta) == bool(tb) or a.shape != b.shape:
        return Routine(lambda a, b, out: partial(np.matmul, turned(a, ta), turned(b, tb), out))

    def bind(a: Array, b: Array, out: Array, other: Array) -> Launch:
        return in_order([converting(b, other), partial(np.matmul, turned(a, ta), turned(other, tb), out)])

    # NumPy multiplies a matrix by its own transpose in another way, with other bits: b must not be a.
    return Routine(bind, (scratch(b.shape, b.dtype),))


matmul = prepared(_matmul, wide=True)
MAKERS: dict[str, Make] = {"matmul": matmul}
