"""Reductions along axes, and scans along one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nnc_core.base.dtype import accumulator, int64, is_float, uint8
from nnc_core.io.onnx.writing.dtypes import summed, wider
from nnc_core.io.onnx.writing.held import Held, Order
from nnc_core.io.onnx.writing.operators.movement import stored_axes
from nnc_core.io.onnx.writing.pointwise import held
from nnc_core.io.onnx.writing.table import says, writes
from nnc_core.operator.along import shifted
from nnc_core.symbol import Node

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter

REDUCTIONS = {"sum": "ReduceSum", "prod": "ReduceProd", "mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin",
              "all": "ReduceMin", "any": "ReduceMax", "logsumexp": "ReduceLogSumExp"}


def left_order(order: Order, axes: Sequence[int]) -> Order:
    """The order in which the axes lie that a reduction leaves."""
    left = [order[a] for a in range(len(order)) if a not in axes]
    return tuple([sorted(left).index(k) for k in left])


def _computing(node: Node) -> Any:
    """The dtype in which ONNX reduces; as uint8 truth has the extrema of nothing that it should have."""
    dtype, name = node.inputs[0].dtype, node.op.name
    if name in ("all", "any"):
        return uint8
    return wider(dtype) if name in ("max", "min") else summed(dtype)


@writes(*REDUCTIONS)
def _reduce(w: NodeWriter, node: Node) -> Held:
    (x,), (axes, keepdims) = node.inputs, node.attributes
    if not axes:
        return w.same(x)
    order, wide = w.order_of(x), _computing(node)
    name = w.cast(w.stored(x, order), x.dtype, wide)
    found = w.b.op(REDUCTIONS[node.op.name], name, w.b.integers(sorted(stored_axes(axes, order))),
                   keepdims=int(keepdims))
    return held(w.cast(found, wide, node.dtype), order if keepdims else left_order(order, axes))


NORMS = {1.0: "ReduceL1", 2.0: "ReduceL2"}


@writes("vector_norm", fits=lambda node: node.attributes[1] in NORMS and bool(node.attributes[0]))
def _vector_norm(w: NodeWriter, node: Node) -> str:
    (x,), (axes, order, keepdims) = node.inputs, node.attributes
    wide = accumulator(x.dtype)
    found = w.b.op(NORMS[order], w.cast(w.read(x), x.dtype, wide), w.b.integers(axes), keepdims=int(keepdims))
    return w.cast(found, wide, node.dtype)


@writes("argmax", "argmin", fits=lambda node: node.inputs[0].ndim > 0)
def _position(w: NodeWriter, node: Node) -> str:
    (x,), (axis, keepdims) = node.inputs, node.attributes
    name = "ArgMax" if node.op.name == "argmax" else "ArgMin"
    return w.b.op(name, w.cast(w.read(x), x.dtype, wider(x.dtype)), axis=axis, keepdims=int(keepdims))


# ---- scans
@writes("cumulative_sum")
def _cumulative_sum(w: NodeWriter, node: Node) -> str:
    (x,), (axis, reverse) = node.inputs, node.attributes
    wide = summed(x.dtype)
    name = w.cast(w.read(x), x.dtype, wide)
    return w.cast(w.b.op("CumSum", name, w.b.constant(axis, int64), reverse=int(reverse)), wide, node.dtype)


def _doubling(F: Any, x: Any, axis: int, reverse: bool, fill: float, combine: Any) -> Any:
    """Folds of 1, 2, 4 ... elements up to each; None for a length without a number."""
    length = x.shape[axis]
    if not isinstance(length, int):
        return None
    step = 1
    while step < length:
        x = combine(x, shifted(F, x, axis, -step if reverse else step, fill))
        step *= 2
    return x


@says("cumulative_prod")
def _cumulative_prod(F: Any, x: Any, axis: int, reverse: bool) -> Any:
    found = _doubling(F, F.cast(x, dtype=accumulator(x.dtype)), axis, reverse, 1, F.multiply)
    return None if found is None else F.cast(found, dtype=x.dtype)


@says("cummax")
def _cummax(F: Any, x: Any, axis: int, reverse: bool) -> Any:
    lowest = -float("inf") if is_float(x.dtype) else int(np.iinfo(x.dtype).min)
    return _doubling(F, x, axis, reverse, lowest, F.maximum)


@says("cummin")
def _cummin(F: Any, x: Any, axis: int, reverse: bool) -> Any:
    highest = float("inf") if is_float(x.dtype) else int(np.iinfo(x.dtype).max)
    return _doubling(F, x, axis, reverse, highest, F.minimum)


@says("argcummax")
def _argcummax(F: Any, x: Any, axis: int, reverse: bool) -> Any:
    return _place_so_far(F, x, axis, reverse, F.cummax, F.greater)


@says("argcummin")
def _argcummin(F: Any, x: Any, axis: int, reverse: bool) -> Any:
    return _place_so_far(F, x, axis, reverse, F.cummin, F.less)


def _place_so_far(F: Any, x: Any, axis: int, reverse: bool, scan: Any, beats: Any) -> Any:
    """The last place where an element was better than all before it, or the first NaN."""
    length = x.shape[axis]
    if not isinstance(length, int):
        return None
    if reverse:
        found = _place_so_far(F, F.flip(x, axes=(axis,)), axis, False, scan, beats)
        return F.flip(F.subtract(length - 1, found), axes=(axis,))
    wide = F.cast(x, dtype=accumulator(x.dtype))
    best = shifted(F, scan(wide, axis=axis, reverse=False), axis, 1, 0)
    new = F.logical_or(beats(wide, best), F.logical_and(F.not_equal(wide, wide), F.equal(best, best)))
    beside = tuple(length if a == axis else 1 for a in range(len(x.shape)))
    place = F.reshape(F.arange(size=length, dtype=int64), shape=beside)
    return F.cummax(F.where(F.logical_and(new, F.greater(place, 0)), place, 0), axis=axis, reverse=False)


@says("logcumsumexp")
def _logcumsumexp(F: Any, x: Any, axis: int, reverse: bool) -> Any:
    found = _doubling(F, F.cast(x, dtype=accumulator(x.dtype)), axis, reverse, -float("inf"), F.logaddexp)
    return None if found is None else F.cast(found, dtype=x.dtype)


@says("recurrence")
def _recurrence(F: Any, factor: Any, value: Any, axis: int, reverse: bool) -> Any:
    """Twice as many rounds at a time: their factors multiplied, their values added."""
    length = value.shape[axis]
    if not isinstance(length, int):
        return None
    wide = accumulator(value.dtype)
    rate, total, step = F.cast(factor, dtype=wide), F.cast(value, dtype=wide), 1
    while step < length:
        by = -step if reverse else step
        total = F.add(total, F.multiply(rate, shifted(F, total, axis, by, 0)))
        rate, step = F.multiply(rate, shifted(F, rate, axis, by, 0)), 2 * step
    return F.cast(total, dtype=value.dtype)
