"""Operators that move elements; views are copied where the planner found no place for them as views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.device import Launch
from nnc_core.operator.packing import PACK
from nnc_cpu.memory import Array, same_start
from nnc_cpu.routine import Make, Routine, attributes_of, converting, in_order, prepared, scratch


def seen(view: Callable[..., Array]) -> Make:
    """Copy a view of the input."""
    return lambda command: Routine(lambda x, out: converting(view(x, *attributes_of(command)), out))


def slice_view(x: Array, start: Any, stop: Any, step: Any) -> Array:
    within: Any = (*map(slice, start, stop, step), ...)  # the ellipsis makes a view of 0-d arrays too
    part: Array = x[within]
    return part


def flip_view(x: Array, axes: Sequence[int]) -> Array:
    backwards: Any = (*[slice(None, None, -1 if i in axes else 1) for i in range(x.ndim)], ...)
    turned: Array = x[backwards]
    return turned


def reshape(command: Command) -> Routine:
    if command.output.contiguous:
        return Routine(lambda x, out: converting(x, out.reshape(x.shape)))
    return prepared(reshape)(command)


def spaced(low: Sequence[int], shape: Sequence[int], step: Sequence[int]) -> tuple[Any, ...]:
    """The slices of `shape` elements that begin at `low` and follow each other in steps."""
    return (*[slice(a, a + max((n - 1) * k + 1, 0), k) for a, n, k in zip(low, shape, step, strict=True)], ...)


def pad(command: Command) -> Routine:
    low, _, interior, value = attributes_of(command)
    within = spaced(low, command.inputs[0].shape, [k + 1 for k in interior])
    with np.errstate(all="ignore"):
        fill = np.asarray(value).astype(command.output.dtype)
    return Routine(lambda x, out: in_order([partial(np.copyto, out, fill), converting(x, out[within])]))


def concat(command: Command) -> Routine:
    (axis,) = attributes_of(command)
    return Routine(lambda *arrays: partial(np.concatenate, arrays[:-1], axis, arrays[-1]))


def update_slice(command: Command) -> Routine:
    start, step = attributes_of(command)
    within = spaced(start, command.inputs[1].shape, step)

    def bind(x: Array, value: Array, out: Array) -> Launch:
        update = converting(value, out[within])
        return update if same_start(x, out) else in_order([converting(x, out), update])

    return Routine(bind)


def pack(command: Command) -> Routine:
    """Blocks that have to be filled up are cut from a whole array beside."""
    (tiling,) = attributes_of(command)
    x = command.inputs[0]
    if tiling.whole(x.shape) == x.shape:
        return Routine(lambda x, out: converting(tiling.cut(x), out))
    part = tuple(map(slice, x.shape))

    def bind(x: Array, out: Array, whole: Array) -> Launch:
        fill = partial(np.copyto, whole, np.zeros((), whole.dtype))
        return in_order([fill, converting(x, whole[part]), converting(tiling.cut(whole), out)])

    return Routine(bind, (scratch(tiling.whole(x.shape), x.dtype),))


PACKING: dict[str, Make] = {PACK.name: prepared(pack)}
"""What the engine alone asks for."""
MAKERS: dict[str, Make] = {
    "reshape": reshape, "permute": seen(np.transpose), "slice": seen(slice_view), "flip": seen(flip_view),
    "broadcast_to": lambda command: Routine(converting), "pad": pad, "concat": concat, "update_slice": update_slice,
}  # fmt: skip
