"""Composites that are claimed whole: fewer launches, and halves computed in float32."""

from __future__ import annotations

from functools import partial

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.layout import Layout
from nnc_core.device import Launch
from nnc_cpu.memory import Array
from nnc_cpu.routine import Make, Routine, attributes_of, in_order, prepared, scratch


def _nothing() -> None:
    return None


def _unless_empty(make: Make) -> Make:
    """There is no maximum of nothing."""
    return lambda command: make(command) if command.output.size else Routine(lambda *arrays: _nothing)


def _along(command: Command) -> tuple[int, Layout]:
    """The axis, and the layout of what is reduced over it."""
    axis = attributes_of(command)[0]
    out = command.output
    return axis, scratch((*out.shape[:axis], 1, *out.shape[axis + 1 :]), out.dtype)


def _subtract_maximum(x: Array, axis: int, out: Array, row: Array) -> list[Launch]:
    return [partial(np.maximum.reduce, x, axis, None, row, True), partial(np.subtract, x, row, out)]


def _softmax(command: Command) -> Routine:
    axis, row = _along(command)

    def bind(x: Array, out: Array, row: Array) -> Launch:
        return in_order([*_subtract_maximum(x, axis, out, row), partial(np.exp, out, out),
                         partial(np.add.reduce, out, axis, None, row, True), partial(np.true_divide, out, row, out)])

    return Routine(bind, (row,))


def _log_softmax(command: Command) -> Routine:
    axis, row = _along(command)

    def bind(x: Array, out: Array, row: Array, e: Array) -> Launch:
        return in_order([*_subtract_maximum(x, axis, out, row), partial(np.exp, out, e),
                         partial(np.add.reduce, e, axis, None, row, True), partial(np.log, row, row),
                         partial(np.subtract, out, row, out)])

    return Routine(bind, (row, scratch(command.output.shape, command.output.dtype)))


MAKERS: dict[str, Make] = {
    "softmax": prepared(_unless_empty(_softmax), wide=True),
    "log_softmax": prepared(_unless_empty(_log_softmax), wide=True),
}  # fmt: skip
