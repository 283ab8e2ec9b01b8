"""Elements at indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnc_core.base.dtype import DType, int32, int64
from nnc_core.io.onnx.writing.dtypes import wider
from nnc_core.io.onnx.writing.held import Held
from nnc_core.io.onnx.writing.table import Written, says, writes
from nnc_core.symbol import Node
from nnc_core.type import DimLike

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter


def index_name(w: NodeWriter, indices: Node) -> str:
    """Indices as ONNX has them, int32 or int64."""
    name = w.read(indices)
    return name if indices.dtype in (int32, int64) else w.cast(name, indices.dtype, int64)


@writes("take")
def _take(w: NodeWriter, node: Node) -> Written:
    x, indices = node.inputs
    axis, batch = node.attributes
    if not batch:
        return w.b.op("Gather", w.read(x), index_name(w, indices), axis=axis)
    if batch == axis == x.ndim - 1 and indices.ndim == x.ndim and indices.shape[:-1] == x.shape[:-1]:
        ordered = _ordered(w, x, indices)
        if ordered is not None:
            return ordered
        return w.b.op("GatherElements", w.read(x), index_name(w, indices), axis=axis)
    return _taken_from_rows(w, node)


def _ordered(w: NodeWriter, x: Node, indices: Node) -> str | None:
    """The elements themselves where the indices are those of their order, which ONNX gives together."""
    if indices.op.name not in ("argsort", "arg_top_k") or indices.inputs[0] is not x:
        return None
    made = w.b.producer(w.held[indices].name)
    along_last = indices.attributes[0] == x.ndim - 1 and x.dtype == wider(x.dtype)
    return made.outputs[0] if made is not None and made.operator == "TopK" and along_last else None


def _taken_from_rows(w: NodeWriter, node: Node) -> Written:
    """The axis comes first behind those that are shared, and its place is taken by the indices' own axes."""
    x, indices = node.inputs
    axis, batch = node.attributes
    between = range(batch, axis)
    first = w.arranged(x, [*range(batch), axis, *between, *range(axis + 1, x.ndim)])
    tuples = w.unsqueezed(w.cast(w.read(indices), indices.dtype, int64), [indices.ndim])
    found = w.b.op("GatherND", first, tuples, batch_dims=batch)
    own = indices.ndim - batch
    order = [*range(batch), *[a + own for a in between], *range(batch, batch + own),
             *range(axis + own, node.ndim)]
    return Held(found).moved(order)


@says("one_hot")
def _one_hot(F: Any, indices: Any, depth: DimLike, dtype: DType) -> Any:
    """ONNX' OneHot counts negative indices from the end, ours has zeros there."""
    beside = F.reshape(F.cast(indices, dtype=int64), shape=(*indices.shape, 1))
    return F.cast(F.equal(beside, F.arange(size=depth, dtype=int64)), dtype=dtype)


@says("index_offset")
def _index_offset(F: Any, indices: Any, length: int, stride: int, size: int, signed: bool) -> Any:
    index = F.cast(indices, dtype=int64)
    near = F.where(F.less(index, 0), F.add(index, length), index) if signed else index
    inside = F.logical_and(F.greater_equal(near, 0), F.less(near, length))
    return F.where(inside, F.multiply(near, stride), -2 * size - 1)


@says("earlier")
def _earlier(F: Any, indices: Any) -> Any:
    """The largest position that is equal and lies before."""
    shape = indices.shape
    if shape[-1] == 0:
        return F.cast(indices, dtype=int64)
    place = F.arange(size=shape[-1], dtype=int64)
    before = F.less(place, F.reshape(place, shape=(shape[-1], 1)))
    equal = F.equal(F.reshape(indices, shape=(*shape, 1)), F.reshape(indices, shape=(*shape[:-1], 1, shape[-1])))
    return F.max(F.where(F.logical_and(equal, before), place, -1), axis=(len(shape),))
