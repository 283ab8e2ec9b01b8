"""Matrix products, determinants, and products of 8-bit integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnc_core.base.dtype import is_float
from nnc_core.io.onnx.writing.dtypes import summed
from nnc_core.io.onnx.writing.table import writes
from nnc_core.symbol import Node

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter


def factor(w: NodeWriter, x: Node, transposed: bool) -> str:
    """A factor, with its last two axes swapped if wanted."""
    axes = list(range(x.ndim))
    return w.arranged(x, [*axes[:-2], axes[-1], axes[-2]] if transposed else axes)


@writes("matmul")
def _matmul(w: NodeWriter, node: Node) -> str:
    dtype = node.dtype if is_float(node.dtype) else summed(node.dtype)
    factors = [w.cast(factor(w, x, turned), x.dtype, dtype)
               for x, turned in zip(node.inputs, node.attributes, strict=True)]
    return w.cast(w.b.op("MatMul", *factors), dtype, node.dtype)


@writes("matmul_integer")
def _matmul_integer(w: NodeWriter, node: Node) -> str:
    return w.b.op("MatMulInteger", *[factor(w, x, t) for x, t in zip(node.inputs, node.attributes, strict=True)])


@writes("det")
def _det(w: NodeWriter, node: Node) -> str:
    return w.b.op("Det", w.read(node.inputs[0]))
