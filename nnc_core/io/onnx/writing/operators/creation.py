"""Leaves of graphs: numbers everywhere, and numbers in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnc_core.base.dtype import int64
from nnc_core.io.onnx.writing.table import writes
from nnc_core.operator import OPERATORS
from nnc_core.symbol import Node
from nnc_core.type import is_static

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter

_WRITTEN_OUT = 1024
"""Elements that a constant may have; a larger one is made where the graph runs."""


@writes("filled")
def _filled(w: NodeWriter, node: Node) -> str:
    shape, number = node.attributes
    if is_static(shape) and np.prod([int(n) for n in shape]) <= _WRITTEN_OUT:
        return w.b.constant(np.full([int(n) for n in shape], number.value, number.dtype))
    return w.b.op("ConstantOfShape", w.shape(shape), value=np.asarray([number.value], number.dtype))


@writes("progression")
def _progression(w: NodeWriter, node: Node) -> str:
    start, step, size, dtype = node.attributes
    if isinstance(size, int) and size <= _WRITTEN_OUT:
        reference: Any = OPERATORS["progression"].reference
        return w.b.constant(reference(*node.attributes))
    count = w.b.op("Range", w.b.constant(0, int64), w.scalar(size, int64), w.b.constant(1, int64))
    wide = start.dtype
    found = w.cast(count, int64, wide)
    scaled = w.b.op("Add", w.b.op("Mul", found, w.b.constant(step.value, wide)), w.b.constant(start.value, wide))
    return w.cast(scaled, wide, dtype)


