"""Biases and scales that ONNX has as operands of the operator before: of convolutions and of normalisations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nnc_core.io.onnx.writing.held import Held
from nnc_core.io.onnx.writing.pointwise import LEAVES
from nnc_core.io.onnx.writing.records import WrittenNode
from nnc_core.operator import OPERATORS
from nnc_core.optimiser.inspect import host_array, is_known
from nnc_core.symbol import Node
from nnc_core.type import Dims

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter

CONVOLUTIONS = {"conv": "Conv", "conv_input_gradient": "ConvTranspose"}
NORMALISATIONS = {"standardise": "LayerNormalization", "rms_normalise": "RMSNormalization"}
_RESHAPE, _MULTIPLY = OPERATORS["reshape"], OPERATORS["multiply"]


def added(w: NodeWriter, node: Node) -> Held | None:
    """A sum as the bias of the convolution, or of the normalisation, that is its only other operand."""
    for result, bias in (node.inputs, node.inputs[::-1]):
        made = _made_for(w, result, _leaf(bias))
        if made is None:
            continue
        if made.operator in CONVOLUTIONS.values() and len(made.inputs) == 2 and _is_channel(result, bias):
            return _join(w, result, made, 2, _operand(w, _leaf(bias)))
        row = _row(w, result, bias) if made.operator == "LayerNormalization" and len(made.inputs) == 2 else None
        if row is not None:
            return _join(w, result, made, 2, row)
    return None


def multiplied(w: NodeWriter, node: Node) -> Held | None:
    """A product as the scale of the normalisation that is its only other operand."""
    for result, scale in (node.inputs, node.inputs[::-1]):
        made = _made_for(w, result, _leaf(scale))
        if made is None or result.op.name not in NORMALISATIONS or len(made.inputs) != 2:
            continue
        row = _row(w, result, scale)
        if row is not None:
            return _join(w, result, made, 1, row)
    return None


def _join(w: NodeWriter, result: Node, made: WrittenNode, place: int, operand: str) -> Held:
    w.b.forget(made)
    made.inputs[place:] = [operand]
    return w.held[result]  # type: ignore[no-any-return]


def _operand(w: NodeWriter, leaf: Node, shape: Dims | None = None) -> str:
    """The name of a leaf, perhaps in another shape; no node, which would come too late, makes a constant."""
    known = host_array(leaf)
    return w.read(leaf) if known is None else w.b.constant(np.reshape(known, known.shape if shape is None else shape))


def _made_for(w: NodeWriter, result: Node, operand: Node) -> WrittenNode | None:
    """The ONNX node of a result that nothing else reads, if the operand is there before it."""
    if operand.op not in LEAVES or w.uses[result] != 1 or result.op in LEAVES:
        return None
    return w.b.producer(w.held[result].name)


def _leaf(node: Node) -> Node:
    """A value itself, where it is reshaped to stand beside channels, or behind axes of length one."""
    if node.op is not _RESHAPE:
        return node
    (own,) = node.inputs
    return own if own.ndim == 1 or node.shape == (1,) * (node.ndim - own.ndim) + own.shape else node


def _is_channel(result: Node, bias: Node) -> bool:
    """Tell whether a value has a number for each channel of a convolution's result."""
    if result.op.name not in CONVOLUTIONS or _leaf(bias).ndim != 1:
        return False
    layout: str = result.attributes[-1]
    beside = [1] * (len(layout) - 1 - layout.index("C"))
    channels = result.shape[layout.index("C")]
    return list(bias.shape[bias.ndim - len(beside) - 1 :]) == [channels, *beside] and all(
        [n == 1 for n in bias.shape[: bias.ndim - len(beside) - 1]])


def _row(w: NodeWriter, result: Node, operand: Node) -> str | None:
    """The name of a value in the shape of what a normalisation is over, if it is the same for all else."""
    root = result.inputs[0] if result.op is _MULTIPLY else result
    while root.op.name not in NORMALISATIONS:
        found = [x for x in root.inputs if x.op.name in NORMALISATIONS]
        if not found:
            return None
        root = found[0]
    shape = root.shape[root.attributes[0][0] :]
    if operand.shape != (1,) * (operand.ndim - len(shape)) + shape:
        return None
    leaf = _leaf(operand)
    return _operand(w, leaf, shape) if leaf.shape == shape or is_known(leaf) else None
