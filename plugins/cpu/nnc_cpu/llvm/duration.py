"""Estimates of the time that loop nests take, to tell whether several threads are of use."""

from __future__ import annotations

from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen.work import touched, weight_of_point

OPERATION = 0.1e-9
"""Seconds of an operation on one element: less than this in a vector, more outside of one."""
BYTE = 0.1e-9
"""Seconds of a byte that is read or written in memory."""


def seconds(nest: LoopNest) -> float:
    """The time of one thread."""
    sizes = [argument.dtype.itemsize for argument in nest.arguments]
    moved = sum([count * sizes[number] for number, count in touched(nest).items()])
    return nest.points * weight_of_point(nest) * OPERATION + moved * BYTE
