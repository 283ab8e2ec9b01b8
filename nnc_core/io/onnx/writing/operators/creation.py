"""Leaves of graphs: numbers everywhere, and numbers in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nnc_core.base.dtype import int64
from nnc_core.io.onnx.writing.table import writes
from nnc_core.symbol import Node
from nnc_core.type import is_static

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter


@writes("filled")
def _filled(w: NodeWriter, node: Node) -> str:
    shape, number = node.attributes
    if is_static(shape):
        return w.constant(np.broadcast_to(np.asarray(number.value, number.dtype), [int(n) for n in shape]))
    return w.b.op("ConstantOfShape", w.shape(shape), value=np.asarray([number.value], number.dtype))


@writes("progression")
def _progression(w: NodeWriter, node: Node) -> str:
    start, step, size, dtype = node.attributes
    count = w.b.op("Range", w.b.constant(0, int64), w.scalar(size, int64), w.b.constant(1, int64))
    wide = start.dtype
    found = w.cast(count, int64, wide)
    if step.value != 1:
        found = w.b.op("Mul", found, w.b.constant(step.value, wide))
    if start.value != 0:
        found = w.b.op("Add", found, w.b.constant(start.value, wide))
    return w.cast(found, wide, dtype)


