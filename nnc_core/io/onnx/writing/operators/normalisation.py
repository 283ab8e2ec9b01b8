"""Softmaxes and normalisations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nnc_core.base.dtype import float64
from nnc_core.io.onnx.writing.held import Held, inverse
from nnc_core.io.onnx.writing.pointwise import held
from nnc_core.io.onnx.writing.table import writes
from nnc_core.symbol import Node
from nnc_core.type import is_static

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter


@writes("softmax", "log_softmax")
def _softmax(w: NodeWriter, node: Node) -> Held:
    (x,), (axis,) = node.inputs, node.attributes
    order = w.order_of(x)
    name = "Softmax" if node.op.name == "softmax" else "LogSoftmax"
    return held(w.b.op(name, w.stored(x, order), axis=order[axis]), order)


def _over_last_axes(node: Node) -> bool:
    """ONNX computes these in float32, over the last axes, and wants a scale."""
    axes, _ = node.attributes
    (x,) = node.inputs
    last = tuple(range(x.ndim - len(axes), x.ndim))
    if not axes or axes != last or x.dtype == float64:
        return False
    lengths = x.shape[axes[0] :]
    return is_static(lengths) and 0 not in lengths


@writes("standardise", "rms_normalise", fits=_over_last_axes)
def _normalise(w: NodeWriter, node: Node) -> str:
    """With a scale of ones, in whose place a factor may come that follows."""
    (x,), (axes, epsilon) = node.inputs, node.attributes
    name = "LayerNormalization" if node.op.name == "standardise" else "RMSNormalization"
    ones = np.ones([int(n) for n in x.shape[axes[0] :]], x.dtype)
    return w.b.op(name, w.read(x), w.b.constant(ones), axis=axes[0] - x.ndim, epsilon=float(epsilon))


def _has_channels(node: Node) -> bool:
    return node.inputs[0].ndim > 1 and node.dtype != float64 and node.attributes[0] > 0


@writes("batch_norm", fits=_has_channels)
def _batch_norm(w: NodeWriter, node: Node) -> Held:
    x, mean, variance, scale, bias = node.inputs
    axis, epsilon = node.attributes
    order = (0, axis, *[a for a in range(1, x.ndim) if a != axis])
    name = w.b.op("BatchNormalization", w.arranged(x, order), *[w.read(v) for v in (scale, bias, mean, variance)],
                  epsilon=float(epsilon))
    return held(name, inverse(order))
