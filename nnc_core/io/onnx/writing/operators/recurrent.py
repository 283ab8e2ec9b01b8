"""Recurrent networks over whole sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nnc_core.io.onnx.writing.table import writes
from nnc_core.operator import OPERATORS
from nnc_core.optimiser.inspect import host_array
from nnc_core.symbol import Node

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter

_ADD = OPERATORS["add"]
LSTM_GATES, GRU_GATES = (0, 3, 1, 2), (1, 0, 2)
"""ONNX' gates by their places among ours: input, output, forget, cell; update, reset, new."""


def _rearranged(w: NodeWriter, x: Node, gates: Sequence[int], axis: int) -> str:
    """Gates along an axis in another order."""
    known = host_array(x)
    if known is not None:
        blocks = np.split(known, len(gates), axis)
        return w.b.constant(np.concatenate([blocks[k] for k in gates], axis))
    if len(gates) == 1:
        return w.read(x)
    parts = w.b.ops("Split", w.read(x), count=len(gates), axis=axis, num_outputs=len(gates))
    return w.b.op("Concat", *[parts[k] for k in gates], axis=axis)


def _weight(w: NodeWriter, x: Node, gates: Sequence[int]) -> str:
    """(features, gates * size) as ONNX has it for one direction, gates first."""
    turned = w.b.op("Transpose", _rearranged(w, x, gates, 1), perm=[1, 0])
    return w.unsqueezed(turned, [0])


def _biases(w: NodeWriter, given: Node, hidden: Node | None, gates: Sequence[int]) -> str:
    """Those of inputs, then those of states: the parts of a sum; 0 where there is none."""
    if hidden is None and given.op is _ADD and given.inputs[0].shape == given.inputs[1].shape:
        given, hidden = given.inputs
    first = _rearranged(w, given, gates, 0)
    if hidden is None:
        second = w.b.constant(np.zeros([int(n) for n in given.shape], given.dtype))
    else:
        second = _rearranged(w, hidden, gates, 0)
    return w.unsqueezed(w.b.op("Concat", first, second, axis=0), [0])


def _direction(reverse: bool) -> str:
    return "reverse" if reverse else "forward"


def _one_direction(w: NodeWriter, name: str, axis: int) -> str:
    """A result without the axis of directions."""
    return w.b.op("Squeeze", name, w.b.integers([axis]))


def _state(w: NodeWriter, x: Node) -> str:
    return w.unsqueezed(w.read(x), [0])


@writes("lstm", fits=lambda node: len(node.inputs) == 6)
def _lstm(w: NodeWriter, node: Node) -> tuple[str, ...]:
    x, h, c, given, hidden, bias = node.inputs
    y, last, cell = w.b.ops(
        "LSTM", w.read(x), _weight(w, given, LSTM_GATES), _weight(w, hidden, LSTM_GATES),
        _biases(w, bias, None, LSTM_GATES), "", _state(w, h), _state(w, c), count=3, hidden_size=h.shape[1],
        direction=_direction(node.attributes[1]))
    return _one_direction(w, last, 0), _one_direction(w, cell, 0), _one_direction(w, y, 1)


@writes("gru", fits=lambda node: len(node.inputs) == 6)
def _gru(w: NodeWriter, node: Node) -> tuple[str, ...]:
    x, h, given, hidden, bias, hidden_bias = node.inputs
    reset_after, reverse = node.attributes
    y, last = w.b.ops(
        "GRU", w.read(x), _weight(w, given, GRU_GATES), _weight(w, hidden, GRU_GATES),
        _biases(w, bias, hidden_bias, GRU_GATES), "", _state(w, h), count=2, hidden_size=h.shape[1],
        linear_before_reset=int(reset_after), direction=_direction(reverse))
    return _one_direction(w, last, 0), _one_direction(w, y, 1)


@writes("rnn", fits=lambda node: len(node.inputs) == 5)
def _rnn(w: NodeWriter, node: Node) -> tuple[str, ...]:
    x, h, given, hidden, bias = node.inputs
    nonlinearity, reverse = node.attributes
    y, last = w.b.ops(
        "RNN", w.read(x), _weight(w, given, (0,)), _weight(w, hidden, (0,)), _biases(w, bias, None, (0,)), "",
        _state(w, h), count=2, hidden_size=h.shape[1], activations=[nonlinearity.capitalize()],
        direction=_direction(reverse))
    return _one_direction(w, last, 0), _one_direction(w, y, 1)
