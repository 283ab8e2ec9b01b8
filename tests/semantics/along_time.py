"""Layers along time, and networks of handles, each with what it is called with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

import nnc_core as nnc
from nnc_core import nn
from tests.semantics.networks import generator
from tests.support import numbers

Row: TypeAlias = tuple[Callable[[], nn.Module], tuple[Any, ...]]


ROWS, STATE, SEQUENCES, OTHER = numbers(5, 3), numbers(5, 4), numbers(2, 4, 3), numbers(2, 3, 4)


class OfLengths(nn.Module):
    """A recurrent network on sequences that end before the others."""

    def __init__(self) -> None:
        self.inner = nn.GRU(3, 4, 2, bidirectional=True, generator=generator(7))

    def forward(self, x: nnc.Tensor, lengths: nnc.Tensor) -> Any:
        return self.inner(x, lengths=lengths)


def branched() -> nn.Network:
    """Two inputs, a shared layer, two outputs."""
    g = generator(8)
    shared = nn.Linear(4, 4, generator=g)
    x, y = nn.Input(("length", 3)), nn.Input((3, 4))
    h = shared(nn.LSTM(3, 4, returns="last", generator=g)(x))
    return nn.Network([x, y], {"a": nn.Tanh()(shared(h)) * 2, "b": nn.Function("mean", axis=1)(shared(y)) + h})


TIME: dict[str, Row] = {
    "RNNCell": (lambda: nn.RNNCell(3, 4, generator=generator(4)), (ROWS, STATE)),
    "RNNCell, relu": (lambda: nn.RNNCell(3, 4, nonlinearity="relu", generator=generator(4)), (ROWS,)),
    "GRUCell": (lambda: nn.GRUCell(3, 4, generator=generator(4)), (ROWS, STATE)),
    "LSTMCell, projected": (lambda: nn.LSTMCell(3, 4, projection=2, generator=generator(4)), (ROWS,)),
    "RNN": (lambda: nn.RNN(3, 4, generator=generator(5)), (SEQUENCES,)),
    "GRU": (lambda: nn.GRU(3, 4, bidirectional=True, generator=generator(5)), (SEQUENCES,)),
    "GRU, lengths": (OfLengths, (SEQUENCES, np.array([3, 4]))),
    "LSTM": (lambda: nn.LSTM(3, 4, 2, generator=generator(5)), (SEQUENCES,)),
    "LSTM, last": (lambda: nn.LSTM(3, 4, returns="last", batch_first=False, generator=generator(5)), (SEQUENCES,)),
    "Recurrent": (lambda: nn.Recurrent(3, 4, 2, nnc.sigmoid, nnc.tanh, generator=generator(5)), (SEQUENCES,)),
    "MultiHeadAttention": (lambda: nn.MultiHeadAttention(4, 2, generator=generator(6)), (OTHER,)),
    "MultiHeadAttention, mask": (lambda: nn.MultiHeadAttention(4, 2, generator=generator(6)),
                                 (OTHER, OTHER, OTHER, np.tri(3, dtype=bool))),
    "PositionalEncoding": (lambda: nn.PositionalEncoding(4, generator=generator(6)), (OTHER,)),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(4, 2, hidden=6, dropout=0.3, generator=generator(6)),
                                (OTHER,)),
    "TransformerDecoderLayer": (lambda: nn.TransformerDecoderLayer(4, 2, hidden=6, dropout=0.3, generator=generator(6)),
                                (OTHER, OTHER * 2)),
    "TransformerEncoder": (lambda: nn.TransformerEncoder(4, 2, 2, hidden=6, dropout=0.3, norm_first=True,
                                                         activation="gelu", generator=generator(6)), (OTHER,)),
    "TransformerDecoder": (lambda: nn.TransformerDecoder(4, 2, 1, hidden=6, dropout=0.3, generator=generator(6)),
                           (OTHER, OTHER * 2)),
    "Function": (lambda: nn.Function("softmax", axis=0), (ROWS,)),
    "Network": (branched, (SEQUENCES, OTHER)),
}  # fmt: skip
