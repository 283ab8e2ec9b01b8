"""Gathers and scatters; an index out of range is an error, raised before anything is written."""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import accumulator
from nnc_core.base.moved_axes import moved
from nnc_core.device import Launch
from nnc_core.operator.indexing import check_indices, indices_first, positions
from nnc_core.operator.scattering import COMBINE, scatter_into
from nnc_cpu.combining import combining
from nnc_cpu.memory import Array, same_start
from nnc_cpu.routine import Make, Routine, attributes_of, converting, in_order, prepared

__all__ = ["MAKERS", "check_indices"]

CHUNK = 1 << 16
"""Elements whose positions are worked out at once."""
FEW = 256
"""Elements of updates that NumPy combines before machine code has been called."""
LONG = 1 << 12
"""Elements of a row from which on rows are combined one by one."""


def take(command: Command) -> Routine:
    axis, batch = attributes_of(command)
    length = command.inputs[0].shape[axis]

    def launch(x: Array, indices: Array, out: Array) -> None:
        check_indices("take", indices, length)
        if batch:
            indices_first(out, indices, axis, batch)[...] = moved(x, axis, batch)[positions(indices, batch)]
        else:
            np.take(x, indices.astype(np.intp, copy=False), axis, out, "wrap")

    return Routine(lambda x, indices, out: partial(launch, x, indices, out))


def combine(out: Array, indices: Array, updates: Array, axis: int, mode: str, batch: int) -> None:
    """Combine elements as `scatter_into` does, in the same order.  NumPy is several times as quick for
    positions of single elements as for those of rows."""
    rows = moved(out, axis, batch)
    if not rows.flags.c_contiguous or not out.size or not indices.size:
        return scatter_into(out, indices, updates, axis, mode, batch)
    length, width = rows.shape[batch], prod(rows.shape[batch + 1 :])
    near = indices.astype(np.intp)
    near[near < 0] += length
    first = np.arange(prod(indices.shape[:batch])) * length
    places = (near.reshape(len(first), -1) + first[:, None]).ravel()
    new = np.ascontiguousarray(indices_first(updates, indices, axis, batch)).reshape(len(places), width)
    flat, ufunc = rows.reshape(-1, width), COMBINE[mode]
    if width > LONG:
        for place, row in zip(places.tolist(), new, strict=True):
            ufunc(flat[place], row, out=flat[place])
        return None
    step = max(1, CHUNK // max(width, 1))
    for begin in range(0, len(places), step):
        at = places[begin : begin + step, None] * width + np.arange(width)
        ufunc.at(flat.reshape(-1), at.ravel(), new[begin : begin + step].ravel())
    return None


def scatter(command: Command) -> Routine:
    axis, mode, batch = attributes_of(command)
    length = command.inputs[0].shape[axis]

    def write(indices: Array, updates: Array, out: Array) -> None:
        if mode != "set":
            combine(out, indices, updates, axis, mode, batch)
        else:
            scatter_into(out, indices, updates, axis, mode, batch)

    kernel = combining(command, write)

    def bind(x: Array, indices: Array, updates: Array, out: Array) -> Launch:
        steps: list[Launch] = [partial(check_indices, "scatter", indices, length)]
        if not same_start(x, out):
            steps.append(converting(x, out))
        change = partial(write, indices, updates, out) if kernel is None else kernel.bind([indices, updates, out])
        return in_order([*steps, change])

    few = axis == batch == 0 and prod(command.inputs[2].shape) <= FEW
    return Routine(bind, fresh=partial(_few_scattered, mode) if few else None)


def _few_scattered(mode: str, x: Array, indices: Array, updates: Array) -> Array:
    """NumPy looks at the indices itself, and what it has written by then is seen by nobody."""
    out, at = np.array(x, order="C"), indices.astype(np.intp, copy=False)
    try:
        if mode == "set":
            out[at] = updates
        else:
            COMBINE[mode].at(out, at, updates)
    except IndexError:
        check_indices("scatter", indices, len(x))
        raise
    return out


def _wide_sums(command: Command) -> Routine:
    """Halves are added and multiplied in float32."""
    dtype = command.output.dtype
    narrow = attributes_of(command)[1] in ("add", "multiply") and accumulator(dtype) != dtype
    return (prepared(scatter, wide=True) if narrow else scatter)(command)


def one_hot(command: Command) -> Routine:
    depth = attributes_of(command)[0]
    positions = np.arange(depth)
    return Routine(lambda indices, out: partial(np.equal, indices[..., None], positions, out=out))


MAKERS: dict[str, Make] = {"take": take, "scatter": _wide_sums, "one_hot": one_hot}
