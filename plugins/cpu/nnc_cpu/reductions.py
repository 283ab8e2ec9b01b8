"""Reductions, on packed arrays so that the order of a sum does not depend on strides."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.device import Launch
from nnc_cpu.memory import Array
from nnc_cpu.routine import Make, Routine, attributes_of, in_order, prepared, scratch

_NARROW, _WIDE = 64, 1024
"""Rows of fewer elements than the first are folded until they have about as many as the second."""
_FEW = 4096
"""Elements up to which all axes are summed at once, on both sides of a kept one too."""


def reducing(function: np.ufunc) -> Make:
    """A reduction whose order does not matter."""

    def make(command: Command) -> Routine:
        axis, keepdims = attributes_of(command)
        reduce: Any = function.reduce
        dtype = command.output.dtype
        return Routine(lambda x, out: partial(reduce, x, axis, dtype, out, keepdims))

    return make


def row_folds(shape: tuple[int, ...], axis: Any) -> int:
    """The number of times to add the upper half of the rows to the lower, when summing few columns over many rows.

    NumPy adds row by row, which is slow when rows are short: so rows are made long."""
    kept = shape[len(axis):]
    columns, rows = prod(kept), prod(shape[: len(axis)])
    if not kept or tuple(axis) != tuple(range(len(axis))) or not 0 < columns < _NARROW:
        return 1
    folds = 1
    while columns * folds < _WIDE and rows % (2 * folds) == 0:
        folds *= 2
    return folds


def apart(axis: tuple[int, ...], shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The axes of a sum before those that it keeps, and those behind; None where they are not on both sides, or a
    second pass takes longer.

    NumPy goes through both at once in many short steps: the first alone are added row by row."""
    ndim = behind = len(shape)
    if prod(shape) <= _FEW:
        return None
    while behind - 1 in axis:
        behind -= 1
    before = tuple([a for a in axis if a < behind])
    return (before, tuple(range(behind, ndim))) if before and behind < ndim else None


def sum_in_two(x: Array, axes: tuple[tuple[int, ...], tuple[int, ...]], out: Array, middle: Array) -> list[Launch]:
    """The steps of such a sum into an array that keeps all dimensions."""
    before, behind = axes
    return [partial(np.add.reduce, x, before, middle.dtype, middle, True),
            partial(np.add.reduce, middle, behind, out.dtype, out, True)]


def kept(shape: tuple[int, ...], axis: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with ones for the axes that are folded."""
    return tuple([1 if a in axis else n for a, n in enumerate(shape)])


def _sum(command: Command) -> Routine:
    axis, keepdims = attributes_of(command)
    out, shape = command.output, command.inputs[0].shape
    parts = apart(axis, shape)
    if parts is not None:
        whole = kept(shape, axis)
        return Routine(lambda x, out, middle: in_order(sum_in_two(x, parts, out.reshape(whole), middle)),
                       (scratch(kept(shape, parts[0]), out.dtype),))
    folds = row_folds(command.inputs[0].shape, axis)
    if folds == 1:
        return Routine(lambda x, out: partial(np.add.reduce, x, axis, out.dtype, out, keepdims))
    return Routine(_bind_folded, (scratch((folds, out.size), out.dtype),))


def _bind_folded(x: Array, out: Array, partial_sums: Array) -> Launch:
    rows, flat, total = x.reshape(-1, partial_sums.size), partial_sums.reshape(-1), out.reshape(-1)
    return in_order([partial(np.add.reduce, rows, 0, out.dtype, flat),
                     partial(np.add.reduce, partial_sums, 0, out.dtype, total)])


sum = prepared(_sum, wide=True)


def _prod(command: Command) -> Routine:
    axis, keepdims = attributes_of(command)
    return Routine(lambda x, out: partial(np.multiply.reduce, x, axis, out.dtype, out, keepdims))


def position(function: Any) -> Make:
    """argmax or argmin."""

    def make(command: Command) -> Routine:
        axis, keepdims = attributes_of(command)
        return Routine(lambda x, out: partial(function, x, axis=axis, out=out, keepdims=keepdims))

    return prepared(make)


MAKERS: dict[str, Make] = {
    "sum": sum, "prod": prepared(_prod, wide=True), "max": reducing(np.maximum), "min": reducing(np.minimum),
    "all": reducing(np.logical_and), "any": reducing(np.logical_or),
    "argmax": position(np.argmax), "argmin": position(np.argmin),
}  # fmt: skip
