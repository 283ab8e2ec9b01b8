"""Sorting and searching: ONNX orders equal elements as they come, as we do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnc_core.base.dtype import int64, is_float
from nnc_core.io.onnx.writing.dtypes import wider
from nnc_core.io.onnx.writing.table import says, writes
from nnc_core.symbol import Node

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter


def top(w: NodeWriter, name: str, count: str, axis: int, largest: bool) -> tuple[str, ...]:
    """The first elements in order and their positions."""
    return w.b.ops("TopK", name, count, count=2, axis=axis, largest=int(largest), sorted=1)


def _sortable(w: NodeWriter, x: Node) -> str:
    return w.cast(w.read(x), x.dtype, wider(x.dtype))


@writes("argsort", "sort", fits=lambda node: node.ndim > 0)
def _sort(w: NodeWriter, node: Node) -> str:
    (x,), (axis, descending) = node.inputs, node.attributes
    values, positions = top(w, _sortable(w, x), w.shape([x.shape[axis]]), axis, descending)
    if node.op.name == "argsort":
        return positions
    return w.cast(values, wider(x.dtype), x.dtype)


@writes("arg_top_k", fits=lambda node: node.ndim > 0)
def _arg_top_k(w: NodeWriter, node: Node) -> str:
    (x,), (axis, k, largest) = node.inputs, node.attributes
    return top(w, _sortable(w, x), w.shape([k]), axis, largest)[1]


@says("searchsorted")
def _searchsorted(F: Any, x: Any, values: Any, right: bool) -> Any:
    """The number of elements that lie before each value, NaN above all others."""
    beside = F.reshape(values, shape=(*values.shape, 1))
    before = F.less_equal(x, beside) if right else F.less(x, beside)
    if is_float(x.dtype):
        at_end = F.not_equal(beside, beside)
        before = F.logical_or(before, F.logical_and(at_end, True if right else F.equal(x, x)))
    return F.sum(F.cast(before, dtype=int64), axis=(len(values.shape),))
