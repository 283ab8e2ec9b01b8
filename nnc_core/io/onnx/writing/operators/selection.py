"""Operators whose results have as many rows as the data say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnc_core.base.dtype import DType, bfloat16, float16, float32, int64, is_float, uint64
from nnc_core.io.onnx.writing.held import Held
from nnc_core.io.onnx.writing.table import Written, writes
from nnc_core.symbol import Node

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter


def _counted(w: NodeWriter, node: Node, name: str, axis: int = 0) -> str:
    """A value whose length later sizes are read from."""
    w.sizes.learn(name, (*(1,) * axis, node.shape[0]))
    return name


@writes("nonzero", fits=lambda node: node.inputs[0].ndim > 0)
def _nonzero(w: NodeWriter, node: Node) -> Held:
    return Held(_counted(w, node, w.b.op("NonZero", w.read(node.inputs[0])), axis=1), (1, 0))


UNIQUE = {"unique_index": 1, "unique_inverse": 2, "unique_counts": 3}
"""The results of Unique by their places."""


def _told_apart(dtype: DType) -> DType:
    """A dtype that implementations have of Unique."""
    if dtype in (bfloat16, float16):
        return float32
    return dtype if is_float(dtype) or dtype == uint64 else int64


@writes(*UNIQUE)
def _unique(w: NodeWriter, node: Node) -> Written:
    (x,) = node.inputs
    found = w.b.ops("Unique", w.cast(w.read(x), x.dtype, _told_apart(x.dtype)), count=4, sorted=1)[UNIQUE[node.op.name]]
    return w.reshaped(found, node.shape) if node.op.name == "unique_inverse" else _counted(w, node, found)


@writes("bin_range")
def _bin_range(w: NodeWriter, node: Node) -> str:
    """Up to the largest, which is -1 where there is nothing."""
    (x,) = node.inputs
    some = w.b.op("Concat", w.b.integers([-1]), w.cast(w.read(x), x.dtype, int64), axis=0)
    largest = w.b.op("ReduceMax", some, w.b.integers([0]), keepdims=0)
    count = w.b.op("Add", largest, w.b.constant(1, int64))
    return _counted(w, node, w.b.op("Range", w.b.constant(0, int64), count, w.b.constant(1, int64)))
