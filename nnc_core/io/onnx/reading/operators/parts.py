"""Parts of tensors: slices, pieces, triangles."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.lanes import Host, Lane, Numbers, is_host
from nnc_core.io.onnx.reading.operators.counts import counted_slice
from nnc_core.io.onnx.reading.registry import on_host, operator
from nnc_core.io.onnx.reading.run import NodeCall
from nnc_core.type import Dim
from nnc_core.values.tensor import Tensor


@operator("Slice")
def slice_first(x: Tensor, *, starts: tuple[int, ...], ends: tuple[int, ...],
                axes: tuple[int, ...] | None = None) -> Tensor:
    return x[_key(x.shape, starts, ends, axes, None)]


@operator("Slice", since=10)
def slice_of(x: Tensor, starts: Numbers, ends: Numbers, axes: Host | None = None, steps: Host | None = None, *,
             call: NodeCall) -> Tensor:
    at = list(range(len(starts))) if axes is None else axes.tolist()
    by = [1] * len(starts) if steps is None else steps.tolist()
    counted = [any(isinstance(n, Tensor) for n in bounds) for bounds in zip(starts, ends, strict=True)]
    known = [[n for n, late in zip(side, counted, strict=True) if not late] for side in (starts, ends, at, by)]
    y = x[_key(x.shape, *known)]
    for start, end, axis, step, late in zip(starts, ends, at, by, counted, strict=True):
        y = counted_slice(y, start, end, axis, step, call) if late else y
    return y


@on_host("Slice")
def _slice_host(x: Host, *given: Host | None, starts: Any = None, ends: Any = None, axes: Any = None) -> Host:
    parts = [None if a is None else a.tolist() for a in given] or [starts, ends, axes]
    return x[_key(x.shape, *parts, *[None] * (4 - len(parts)))]


def _key(shape: tuple[Any, ...], starts: Any, ends: Any, axes: Any, steps: Any) -> tuple[slice, ...]:
    key = [slice(None)] * len(shape)
    steps = steps or [1] * len(starts)
    for axis, start, end, step in zip(range(len(starts)) if axes is None else axes, starts, ends, steps, strict=False):
        key[axis] = slice(_bound(start, shape[axis], step, True), _bound(end, shape[axis], step, False), step)
    return tuple(key)


def _bound(n: Any, size: Any, step: int, is_start: bool) -> Any:
    """A bound as Python has it, which does not bring a start below the first element up to it when going down."""
    if isinstance(n, Dim):
        return n
    if isinstance(size, Dim):
        below, above = n <= -FAR, n >= FAR
    else:
        below, above = n < -size, n >= size
    if step < 0:
        return n if not (below or above) else None if above == is_start else 0 if below else -1
    return n if not (below or above) else None if below == is_start else 0 if below else size


FAR = 2**31 - 1
"""Distance beyond every size, which exporters write for "to the end"."""


@operator("Split")
def split_first(x: Any, sizes_given: Host | None = None, *, axis: int = 0, split: tuple[int, ...] | None = None,
                call: Any) -> tuple[Lane, ...]:
    parts = split or (None if sizes_given is None else tuple(map(int, sizes_given)))
    return _split(x, axis, parts, call.outputs)


@operator("Split", since=13)
def split(x: Any, split: Host | None = None, *, axis: int = 0, num_outputs: int | None = None,
          call: Any) -> tuple[Lane, ...]:
    return _split(x, axis, None if split is None else tuple(split.tolist()), num_outputs or call.outputs)


def _split(x: Lane, axis: int, parts: tuple[Any, ...] | None, count: int) -> tuple[Lane, ...]:
    """Parts of these sizes; without them `count` alike, the last one smaller where they do not fit."""
    if parts is None:
        size = x.shape[axis]
        each = -(-size // count) if not isinstance(size, Dim) else size // count
        parts = (*[each] * (count - 1), size - each * (count - 1))
    bounds = np.cumsum(np.asarray(parts[:-1], object)).tolist()
    if not bounds:
        return (x,)
    if any(isinstance(n, Dim) for n in bounds):
        ahead = (slice(None),) * (axis % x.ndim)
        return tuple(x[(*ahead, slice(low, high))] for low, high in pairwise([0, *bounds, x.shape[axis]]))
    return tuple(np.split(x, bounds, axis) if is_host(x) else nnc.split(x, bounds, axis=axis))


@operator("Trilu")
def triangle(x: Tensor, k: Host | None = None, *, upper: int = 1) -> Tensor:
    return (nnc.triu if upper else nnc.tril)(x, k=0 if k is None else int(k.reshape(())))
