"""Pooling: one pass over the image for each position in the window, on strided views; no windows are gathered.

Choices by the index are made by bits, as in `elementwise.where`: a value is kept or becomes zero bits.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import is_float
from nnc_core.base.layout import Layout
from nnc_core.device import Launch
from nnc_cpu.elementwise import as_bits, spread
from nnc_cpu.memory import Array
from nnc_cpu.routine import Make, Routine, attributes_of, converting, in_order, prepared, scratch
from nnc_cpu.windows import Geometry

_BYTES = np.dtype(np.uint8)
_TRUTH = np.dtype(np.bool_)


def _lowest(x: Layout) -> Any:
    """The value that padding holds when maxima are sought."""
    return -np.inf if is_float(x.dtype) else np.iinfo(x.dtype).min


def _pooled(command: Command) -> Geometry:
    return Geometry.of(command.inputs[0], command.output, *attributes_of(command))


def _unpooled(command: Command) -> Geometry:
    """The windows of operators that go back to the image's size, which is their first attribute."""
    return Geometry.of(command.output, command.inputs[0], *attributes_of(command)[1:])


def _seen(at: Geometry, x: Array, room: list[Array], fill: Any) -> tuple[list[Launch], list[Array]]:
    """The steps that pad x, and what lies at each position of the windows; takes its scratch from `room`."""
    if not at.padded:
        return [], at.taps(at.last(x))
    padded = room.pop(0)
    return at.padding_steps(x, padded, fill), at.taps(at.last(padded))


def _folding(function: np.ufunc, taps: list[Array], out: Array) -> list[Launch]:
    """out = function over all taps."""
    return [converting(taps[0], out), *[partial(function, out, tap, out=out) for tap in taps[1:]]]


def _max_pool(command: Command) -> Routine:
    at, fill = _pooled(command), _lowest(command.inputs[0])

    def bind(x: Array, out: Array, *room: Array) -> Launch:
        steps, taps = _seen(at, x, list(room), fill)
        return in_order([*steps, *_folding(np.maximum, taps, at.last(out))])

    return Routine(bind, at.padded_scratch(command.output.dtype))


def _sum_pool(command: Command) -> Routine:
    at = _pooled(command)

    def bind(x: Array, out: Array, *room: Array) -> Launch:
        steps, taps = _seen(at, x, list(room), 0)
        return in_order([*steps, *_folding(np.add, taps, at.last(out))])

    return Routine(bind, at.padded_scratch(command.output.dtype))


def _max_pool_index(command: Command) -> Routine:
    """Counts, in each window, the positions before the first that holds the maximum."""
    at, x, out = _pooled(command), command.inputs[0], command.output
    fill, size = _lowest(x), prod(at.window)
    counter = _BYTES if size < 256 else out.dtype
    rooms = [scratch(out.shape, dtype) for dtype in (x.dtype, counter, counter, _TRUTH, _TRUTH)]

    def bind(x: Array, out: Array, *room: Array) -> Launch:
        *pads, maximum, count, other, before, differs = room
        steps, taps = _seen(at, x, pads, fill)
        seen = [at.last(r) for r in (maximum, count, other, before, differs)]
        search = _search(taps, seen, size, is_float(x.dtype))
        return in_order([*steps, *_folding(np.maximum, taps, seen[0]), search, converting(count, out)])

    return Routine(bind, (*at.padded_scratch(x.dtype), *rooms))


def _search(taps: list[Array], room: list[Array], size: int, may_be_nan: bool) -> Launch:
    maximum, count, other, before, differs = room

    def launch() -> None:
        _count_while(np.not_equal, taps, maximum, count, before, differs)
        if may_be_nan and count.size and count.max() == size:  # a maximum that equals nothing is NaN
            _count_while(np.equal, taps, None, other, before, differs)
            np.minimum(count, other, out=count)

    return launch


def _count_while(relation: np.ufunc, taps: list[Array], against: Array | None, count: Array, before: Array,
                 holds: Array) -> None:
    """The number of taps, in each window, before the first whose relation to `against` (or itself) does not hold."""
    before.fill(True)
    count.fill(0)
    flags = before.view(_BYTES) if count.dtype == _BYTES else before
    for tap in taps:
        relation(tap, tap if against is None else against, out=holds)
        np.logical_and(before, holds, out=before)
        np.add(count, flags, out=count)


def _pool_take(command: Command) -> Routine:
    """The bits of the chosen element, or-ed together with zeros from all others."""
    at, x, out = _pooled(command), command.inputs[0], command.output
    bits = np.dtype(f"i{x.dtype.itemsize}")

    def bind(x: Array, index: Array, out: Array, *room: Array) -> Launch:
        *pads, chosen, mask, kept = room
        steps, taps = _seen(at, x, pads, 0)
        target, named, hit, mask, kept = (at.last(r) for r in (as_bits(out), index, chosen, mask, kept))
        steps.append(partial(target.fill, 0))
        for k, tap in enumerate(taps):
            steps += [*_chosen(named, k, hit, mask), partial(np.bitwise_and, as_bits(tap), mask, out=kept),
                      partial(np.bitwise_or, target, kept, out=target)]
        return in_order(steps)

    rooms = [scratch(out.shape, dtype) for dtype in (_TRUTH, bits, bits)]
    return Routine(bind, (*at.padded_scratch(x.dtype), *rooms))


def _chosen(index: Array, k: int, hit: Array, mask: Array) -> list[Launch]:
    """A mask of the windows whose index is k."""
    return [partial(np.equal, index, k, out=hit), spread(hit, mask)]


def _overlapping(at: Geometry) -> bool:
    """Tell whether an element of the image may lie in two windows."""
    return any(s < (k - 1) * d + 1 for s, k, d in zip(at.strides, at.window, at.dilation, strict=True))


def _onto_image(at: Geometry, out: Array, room: list[Array]) -> tuple[Array, list[Launch], list[Launch]]:
    """A zeroed image (channels last, padded) to write to, and the steps before and after."""
    if not at.padded:
        return at.last(out), [partial(np.copyto, out, 0)], []
    padded = room.pop(0)
    image = at.last(padded)
    return image, [partial(np.copyto, padded, 0)], [converting(at.middle(image), at.last(out))]


def _pool_put(command: Command) -> Routine:
    at, g = _unpooled(command), command.inputs[0]
    bits = np.dtype(f"i{g.dtype.itemsize}")
    apart = not _overlapping(at)

    def bind(g: Array, index: Array, out: Array, *room: Array) -> Launch:
        *pads, hit, mask, kept = room
        image, before, after = _onto_image(at, out, pads)
        given, named, hit, mask, kept = (at.last(r) for r in (g, index, hit, mask, kept))
        steps = []
        for k, tap in enumerate(at.taps(image)):
            steps += _chosen(named, k, hit, mask)
            if apart:
                steps.append(partial(np.bitwise_and, as_bits(given), mask, out=as_bits(tap)))
            else:
                steps += [partial(np.bitwise_and, as_bits(given), mask, out=as_bits(kept)),
                          partial(np.add, tap, kept, out=tap)]
        return in_order([*before, *steps, *after])

    rooms = [scratch(g.shape, dtype) for dtype in (_TRUTH, bits, g.dtype)]
    return Routine(bind, (*at.padded_scratch(g.dtype), *rooms))


def _sum_pool_gradient(command: Command) -> Routine:
    at = _unpooled(command)

    def bind(g: Array, out: Array, *room: Array) -> Launch:
        image, before, after = _onto_image(at, out, list(room))
        given = at.last(g)
        return in_order([*before, *[partial(np.add, tap, given, out=tap) for tap in at.taps(image)], *after])

    return Routine(bind, at.padded_scratch(command.output.dtype))


def _columns(at: Geometry, y: Array) -> Array:
    """The windows that a pixel's channels stand for: a view (n, count, window, c)."""
    if at.channels_last:
        return y.reshape(len(y), *at.count, *at.window, at.channels)
    rank = len(at.window)
    apart = y.reshape(len(y), at.channels, *at.window, *at.count)
    return apart.transpose(0, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank), 1)


def _unfold(command: Command) -> Routine:
    at = _pooled(command)

    def bind(x: Array, out: Array, *room: Array) -> Launch:
        steps = at.padding_steps(x, room[0], 0) if at.padded else []
        image = at.last(room[0] if at.padded else x)
        return in_order([*steps, converting(at.windows(image), _columns(at, out))])

    return Routine(bind, at.padded_scratch(command.output.dtype))


def _fold(command: Command) -> Routine:
    at = _unpooled(command)

    def bind(y: Array, out: Array, *room: Array) -> Launch:
        image, before, after = _onto_image(at, out, list(room))
        columns, lead = _columns(at, y), (slice(None),) * (len(at.window) + 1)
        steps = [partial(np.add, tap, columns[lead + k], out=tap)
                 for k, tap in zip(at.positions(), at.taps(image), strict=True)]
        return in_order([*before, *steps, *after])

    return Routine(bind, at.padded_scratch(command.output.dtype))


MAKERS: dict[str, Make] = {
    "max_pool": _max_pool, "max_pool_index": _max_pool_index, "pool_take": _pool_take,
    "pool_put": prepared(_pool_put, wide=True), "sum_pool": prepared(_sum_pool, wide=True),
    "sum_pool_gradient": prepared(_sum_pool_gradient, wide=True), "unfold": prepared(_unfold),
    "fold": prepared(_fold, wide=True),
}  # fmt: skip
