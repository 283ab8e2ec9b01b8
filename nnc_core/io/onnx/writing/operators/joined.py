"""Biases and scales that ONNX has as operands of the operator before: of convolutions and of normalisations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnc_core.io.onnx.writing.held import Held
from nnc_core.io.onnx.writing.records import WrittenNode
from nnc_core.operator import CONSTANT, OPERATORS, PLACEHOLDER
from nnc_core.symbol import Node

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
            return _join(w, result, made, 2, _leaf(bias))
        if made.operator == "LayerNormalization" and len(made.inputs) == 2 and _is_row(result, bias):
            return _join(w, result, made, 2, bias)
    return None


def multiplied(w: NodeWriter, node: Node) -> Held | None:
    """A product as the scale of the normalisation that is its only other operand."""
    for result, scale in (node.inputs, node.inputs[::-1]):
        made = _made_for(w, result, scale)
        if made is not None and result.op.name in NORMALISATIONS and len(made.inputs) == 2 and _is_row(result, scale):
            return _join(w, result, made, 1, scale)
    return None


def _join(w: NodeWriter, result: Node, made: WrittenNode, place: int, operand: Node) -> Held:
    w.b.forget(made)
    made.inputs[place:] = [w.read(operand)]
    return w.held[result]  # type: ignore[no-any-return]


def _made_for(w: NodeWriter, result: Node, operand: Node) -> WrittenNode | None:
    """The ONNX node of a result that nothing else reads, if the operand is there before it."""
    if operand.op not in (PLACEHOLDER, CONSTANT) or w.uses[result] != 1 or result.op in (PLACEHOLDER, CONSTANT):
        return None
    return w.b.producer(w.held[result].name)


def _leaf(node: Node) -> Node:
    """A row itself, where it is reshaped to stand beside channels."""
    return node.inputs[0] if node.op is _RESHAPE and node.inputs[0].ndim == 1 else node


def _is_channel(result: Node, bias: Node) -> bool:
    """Tell whether a value has a number for each channel of a convolution's result."""
    if result.op.name not in CONVOLUTIONS or _leaf(bias).ndim != 1:
        return False
    layout: str = result.attributes[-1]
    beside = [1] * (len(layout) - 1 - layout.index("C"))
    channels = result.shape[layout.index("C")]
    return list(bias.shape[bias.ndim - len(beside) - 1 :]) == [channels, *beside] and all(
        [n == 1 for n in bias.shape[: bias.ndim - len(beside) - 1]])


def _is_row(result: Node, operand: Node) -> bool:
    """Tell whether a value has the shape of what a normalisation is over."""
    root = result.inputs[0] if result.op is _MULTIPLY else result
    while root.op.name not in NORMALISATIONS:
        found = [x for x in root.inputs if x.op.name in NORMALISATIONS]
        if not found:
            return False
        root = found[0]
    return operand.shape == root.shape[root.attributes[0][0] :]
