"""Networks for text on an LSTM: a language model and a classifier."""

from __future__ import annotations

from typing import Any

from nnc_core.functions.classification import cross_entropy
from nnc_core.nn import LSTM, Dropout, Embedding, Linear, Module
from nnc_core.values.tensor import Tensor


class LSTMLanguageModel(Module):
    """Tokens (batch, length) and a state, zeros at first -> logits (batch, length, vocabulary) of what comes after
    each, and the state behind the last."""

    def __init__(self, vocabulary: int, features: int, hidden: int, layers: int = 2, dropout: float = 0.5) -> None:
        self.embedding = Embedding(vocabulary, features)
        self.lstm = LSTM(features, hidden, layers, dropout=dropout)
        self.dropout, self.head = Dropout(dropout), Linear(hidden, vocabulary)

    def forward(self, tokens: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        outputs, after = self.lstm(self.dropout(self.embedding(tokens)), state)
        return self.head(self.dropout(outputs)), after

    def loss(self, tokens: Tensor, state: Any = None) -> Tensor:
        """The mean cross-entropy of every token but the first, by those before it."""
        logits, _ = self(tokens[:, :-1], state)
        return cross_entropy(logits, tokens[:, 1:])


class LSTMClassifier(Module):
    """Tokens (batch, length), of which `lengths` (batch,) count if given -> logits (batch, classes)."""

    def __init__(self, vocabulary: int, classes: int, features: int, hidden: int, layers: int = 1,
                 bidirectional: bool = False, dropout: float = 0.2) -> None:
        self.embedding = Embedding(vocabulary, features)
        self.lstm = LSTM(features, hidden, layers, bidirectional=bidirectional, dropout=dropout, returns="last")
        self.dropout, self.head = Dropout(dropout), Linear(self.lstm.output_size, classes)

    def forward(self, tokens: Tensor, lengths: Any = None) -> Tensor:
        logits: Tensor = self.head(self.dropout(self.lstm(self.embedding(tokens), lengths=lengths)))
        return logits


def lstm_language_model(vocabulary: int = 10_000, *, features: int = 650, hidden: int = 650, layers: int = 2,
                        dropout: float = 0.5) -> LSTMLanguageModel:
    """The medium language model of Zaremba, Sutskever and Vinyals (2014)."""
    return LSTMLanguageModel(vocabulary, features, hidden, layers, dropout)


def lstm_classifier(classes: int = 2, vocabulary: int = 10_000, *, features: int = 128, hidden: int = 128,
                    layers: int = 1, bidirectional: bool = False, dropout: float = 0.2) -> LSTMClassifier:
    """A classifier of texts by the last state."""
    return LSTMClassifier(vocabulary, classes, features, hidden, layers, bidirectional, dropout)
