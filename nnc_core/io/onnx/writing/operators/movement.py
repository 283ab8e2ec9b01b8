"""Operators that move elements; transpositions of axes are put off until somebody reads the value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnc_core.base.dtype import uint8
from nnc_core.io.onnx.writing.held import Held
from nnc_core.io.onnx.writing.pointwise import common_order, held
from nnc_core.io.onnx.writing.table import says, writes
from nnc_core.operator import CONSTANT
from nnc_core.symbol import Node
from nnc_core.type import Dims

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter

_END = 2**63 - 1


def stored_axes(axes: Any, order: Any) -> list[int]:
    """The axes of the array that are axes of ours."""
    return [order[axis] for axis in axes]


@writes("reshape")
def _reshape(w: NodeWriter, node: Node) -> str:
    (x,) = node.inputs
    return w.read(x) if x.shape == node.shape else w.reshaped(w.flat(x), node.shape)


@writes("permute")
def _permute(w: NodeWriter, node: Node) -> Held:
    (x,), (axes,) = node.inputs, node.attributes
    return Held(w.arranged(x, axes)) if x.op is CONSTANT else w.held[x].moved(axes)


@writes("broadcast_to")
def _broadcast_to(w: NodeWriter, node: Node) -> str:
    (x,) = node.inputs
    return w.read(x) if x.shape == node.shape else w.expanded(w.read(x), node.shape)


@writes("slice")
def _slice(w: NodeWriter, node: Node) -> Held:
    (x,), (start, stop, step) = node.inputs, node.attributes
    order = w.order_of(x)
    cut = [a for a, n in enumerate(x.shape) if (start[a], stop[a], step[a]) != (0, n, 1)]
    name = w.stored(x, order)
    if not cut:
        return held(name, order)
    ranges = [w.shape([of[a] for a in cut]) for of in (start, stop)]
    return held(w.b.op("Slice", name, *ranges, w.b.integers(stored_axes(cut, order)),
                       w.b.integers([step[a] for a in cut])), order)


@writes("flip")
def _flip(w: NodeWriter, node: Node) -> Held:
    (x,), (axes,) = node.inputs, node.attributes
    order = w.order_of(x)
    name = w.stored(x, order)
    if not axes:
        return held(name, order)
    every = [w.b.integers([n] * len(axes)) for n in (-1, -_END, -1)]
    return held(w.b.op("Slice", name, every[0], every[1], w.b.integers(stored_axes(axes, order)), every[2]), order)


@writes("pad", fits=lambda node: not any(node.attributes[2]))
def _pad(w: NodeWriter, node: Node) -> Held:
    (x,), (low, high, _, value) = node.inputs, node.attributes
    order = w.order_of(x)
    name = w.stored(x, order)
    if not any(n != 0 for n in (*low, *high)):
        return held(name, order)
    axes = [order.index(k) for k in range(x.ndim)]
    amounts = w.shape([of[a] for of in (low, high) for a in axes])
    return held(w.b.op("Pad", name, amounts, w.b.constant(value, x.dtype), mode="constant"), order)


@says("pad")
def _pad_between(F: Any, x: Any, low: Dims, high: Dims, interior: tuple[int, ...], value: float) -> Any:
    """Elements between neighbours: as an axis of their own, behind each of them."""
    for axis, between in enumerate(interior):
        if between:
            x = _spaced(F, x, axis, between, value)
    return F.pad(x, low=low, high=high, interior=(0,) * len(interior), value=value)


def _spaced(F: Any, x: Any, axis: int, between: int, value: float) -> Any:
    shape = x.shape
    none = (0,) * (len(shape) + 1)
    beside = F.reshape(x, shape=(*shape[: axis + 1], 1, *shape[axis + 1 :]))
    high = tuple(between if a == axis + 1 else 0 for a in range(len(none)))
    wide = F.pad(beside, low=none, high=high, interior=none, value=value)
    length = shape[axis] * (between + 1)
    flat = F.reshape(wide, shape=(*shape[:axis], length, *shape[axis + 1 :]))
    if shape[axis] == 0:
        return flat
    stop = (*shape[:axis], length - between, *shape[axis + 1 :])
    return F.slice(flat, start=(0,) * len(shape), stop=stop, step=(1,) * len(shape))


@writes("concat")
def _concat(w: NodeWriter, node: Node) -> Held:
    order = common_order(w, node)
    names = [w.stored(x, order) for x in node.inputs]
    return held(w.b.op("Concat", *names, axis=order[node.attributes[0]]), order)


@says("update_slice")
def _update_slice(F: Any, x: Any, value: Any, start: Dims, step: tuple[int, ...]) -> Any:
    """Chosen by a mask that is padded like the value."""
    def end(a: int) -> Any:
        count = value.shape[a]
        return x.shape[a] - start[a] - ((count - 1) * step[a] + 1 if count != 0 else 0)

    if 0 in value.shape:
        return x
    around: Any = {"low": start, "high": tuple([end(a) for a in range(len(start))]),
                   "interior": tuple([k - 1 for k in step])}
    changed = F.pad(F.full(shape=value.shape, value=1, dtype=uint8), **around)
    return F.where(F.equal(changed, 1), F.pad(value, **around), x)
