"""Gathers and scatters; an index out of range is an error, raised before anything is written."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.errors import OutOfRangeError
from nnc_core.device import Launch
from nnc_cpu.memory import Array, same_start
from nnc_cpu.routine import Make, Routine, attributes_of, converting, in_order


def check_indices(operator: str, indices: Any, length: int) -> None:
    """OutOfRangeError unless -length <= index < length for all."""
    if indices.size == 0 or (indices.max() < length and (indices.dtype.kind == "u" or indices.min() >= -length)):
        return
    indices = np.asarray(indices)
    wrong = indices[(indices >= length) | (np.less(indices, -length))]
    raise OutOfRangeError(f"index {wrong.flat[0]} is out of range for an axis of length {length}", operator=operator,
                          hint=f"{-length} <= index < {length}")


def _positions(indices: Array) -> Array:
    """What NumPy takes as an index; the values are checked already."""
    return indices.astype(np.intp) if indices.dtype == np.uint64 else indices


def take(command: Command) -> Routine:
    (axis,) = attributes_of(command)
    length = command.inputs[0].shape[axis]

    def launch(x: Array, indices: Array, out: Array) -> None:
        check_indices("take", indices, length)
        np.take(x, _positions(indices), axis, out, "wrap")

    return Routine(lambda x, indices, out: partial(launch, x, indices, out))


def scatter(command: Command) -> Routine:
    axis, mode = attributes_of(command)
    length, before = command.inputs[0].shape[axis], (slice(None),) * axis

    def write(indices: Array, updates: Array, out: Array) -> None:
        where = (*before, _positions(indices))
        if mode == "set":
            out[where] = updates
        else:
            np.add.at(out, where, updates)

    def bind(x: Array, indices: Array, updates: Array, out: Array) -> Launch:
        steps: list[Launch] = [partial(check_indices, "scatter", indices, length)]
        if not same_start(x, out):
            steps.append(converting(x, out))
        return in_order([*steps, partial(write, indices, updates, out)])

    return Routine(bind)


def one_hot(command: Command) -> Routine:
    depth = attributes_of(command)[0]
    positions = np.arange(depth)
    return Routine(lambda indices, out: partial(np.equal, indices[..., None], positions, out=out))


MAKERS: dict[str, Make] = {"take": take, "scatter": scatter, "one_hot": one_hot}
