"""Elements changed at indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnc_core.base.dtype import accumulator, int64
from nnc_core.io.onnx.writing.dtypes import UNSIGNED_INTEGERS
from nnc_core.io.onnx.writing.held import Held, inverse
from nnc_core.io.onnx.writing.table import writes
from nnc_core.symbol import Node

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter

MODES = {"set": "none", "add": "add", "multiply": "mul", "min": "min", "max": "max"}


def _wrapped(w: NodeWriter, indices: Node, node: Node) -> str:
    """Indices as int64, negative ones counted from the end of the axis."""
    name = w.cast(w.read(indices), indices.dtype, int64)
    if indices.dtype in UNSIGNED_INTEGERS:
        return name
    behind = w.b.op("Add", name, w.scalar(node.inputs[0].shape[node.attributes[0]], int64))
    return w.b.op("Where", w.b.op("Less", name, w.b.constant(0, int64)), behind, name)


def _one_index_an_element(node: Node) -> bool:
    axis, _, batch = node.attributes
    x, indices, _ = node.inputs
    return bool(batch == axis == x.ndim - 1 and indices.ndim == x.ndim)


@writes("scatter", fits=lambda node: not node.attributes[2] or _one_index_an_element(node))
def _scatter(w: NodeWriter, node: Node) -> Held:
    """Halves are added and multiplied as float32."""
    x, indices, updates = node.inputs
    axis, mode, batch = node.attributes
    wide = accumulator(x.dtype) if mode in ("add", "multiply") else x.dtype
    order = (*range(batch), axis, *[a for a in range(batch, x.ndim) if a != axis])
    own = range(axis, axis + indices.ndim - batch)
    among = [*range(batch), *own, *[a for a in range(batch, updates.ndim) if a not in own]]
    into = w.cast(w.arranged(x, order), x.dtype, wide)
    new = w.cast(w.arranged(updates, among), updates.dtype, wide)
    found = _wrapped(w, indices, node)
    if batch:
        made = w.b.op("ScatterElements", into, found, new, axis=axis, reduction=MODES[mode])
    else:
        made = w.b.op("ScatterND", into, w.unsqueezed(found, [indices.ndim]), new, reduction=MODES[mode])
    return Held(w.cast(made, wide, x.dtype)).moved(inverse(order))
