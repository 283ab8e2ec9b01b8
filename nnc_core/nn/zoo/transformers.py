"""Transformers (Vaswani et al. 2017): translation, a language model, a classifier of texts."""

from __future__ import annotations

from math import sqrt

from nnc_core.functions.classification import cross_entropy
from nnc_core.functions.linear import matmul
from nnc_core.functions.movement import matrix_transpose
from nnc_core.functions.reduction import mean
from nnc_core.functions.reduction import sum as total
from nnc_core.nn import Embedding, Linear, Module, PositionalEncoding, TransformerDecoder, TransformerEncoder
from nnc_core.values.tensor import Tensor


class TokenEmbedding(Module):
    """Tokens (batch, length) -> (batch, length, features) with their places; and back, by the same weights.

    The weights have variance 1, and logits are divided by sqrt(features): what the paper has with weights that are
    sqrt(features) times smaller and scaled where they are read.
    """

    def __init__(self, vocabulary: int, features: int, dropout: float) -> None:
        self.table, self.places = Embedding(vocabulary, features), PositionalEncoding(features, dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        embedded: Tensor = self.places(self.table(tokens))
        return embedded

    def logits(self, x: Tensor) -> Tensor:
        """(batch, length, features) -> (batch, length, vocabulary)"""
        scaled: Tensor = matmul(x, matrix_transpose(self.table.weight.read())) * (1 / sqrt(self.table.features))
        return scaled


class Transformer(Module):
    """Source (batch, length) and target (batch, target length) tokens -> logits (batch, target length, vocabulary) of
    what comes after each target token; one table of tokens for source, target and logits.

    source_mask: boolean (batch, length), false for padding.
    """

    def __init__(self, vocabulary: int, features: int, heads: int, layers: int, hidden: int, dropout: float) -> None:
        self.embedding = TokenEmbedding(vocabulary, features, dropout)
        self.encoder = TransformerEncoder(features, heads, layers, hidden=hidden, dropout=dropout)
        self.decoder = TransformerDecoder(features, heads, layers, hidden=hidden, dropout=dropout)

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        memory = self.encoder(self.embedding(source), key_mask=source_mask)
        return self.embedding.logits(self.decoder(self.embedding(target), memory, memory_key_mask=source_mask))

    def loss(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None, *,
             padding: int | None = None) -> Tensor:
        """The mean cross-entropy, with labels smoothed by 0.1, of every target token but the first, and those that are
        `padding`, by those before it."""
        logits = self(source, target[:, :-1], source_mask)
        return cross_entropy(logits, target[:, 1:], label_smoothing=0.1, ignore_index=padding)


class TransformerLanguageModel(Module):
    """Tokens (batch, length) -> logits (batch, length, vocabulary) of what comes after each; norms come first."""

    def __init__(self, vocabulary: int, features: int, heads: int, layers: int, hidden: int, dropout: float) -> None:
        self.embedding = TokenEmbedding(vocabulary, features, dropout)
        self.layers = TransformerEncoder(features, heads, layers, hidden=hidden, dropout=dropout, activation="gelu",
                                         norm_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.embedding.logits(self.layers(self.embedding(tokens), causal=True))

    def loss(self, tokens: Tensor) -> Tensor:
        """The mean cross-entropy of every token but the first, by those before it."""
        return cross_entropy(self(tokens[:, :-1]), tokens[:, 1:])


class TransformerClassifier(Module):
    """Tokens (batch, length), of which those with a true `mask` (batch, length) count -> logits (batch, classes)."""

    def __init__(self, vocabulary: int, classes: int, features: int, heads: int, layers: int, hidden: int,
                 dropout: float) -> None:
        self.embedding = TokenEmbedding(vocabulary, features, dropout)
        self.layers = TransformerEncoder(features, heads, layers, hidden=hidden, dropout=dropout)
        self.head = Linear(features, classes)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.layers(self.embedding(tokens), key_mask=mask)
        if mask is None:
            pooled = mean(x, axis=1)
        else:
            counted = mask.astype(x.dtype)[:, :, None]
            pooled = total(x * counted, axis=1) / total(counted, axis=1)
        logits: Tensor = self.head(pooled)
        return logits


def transformer(vocabulary: int = 37_000, *, features: int = 512, heads: int = 8, layers: int = 6, hidden: int = 2048,
                dropout: float = 0.1) -> Transformer:
    """The paper's base model, an encoder and a decoder."""
    return Transformer(vocabulary, features, heads, layers, hidden, dropout)


def transformer_language_model(vocabulary: int = 10_000, *, features: int = 512, heads: int = 8, layers: int = 6,
                               hidden: int = 2048, dropout: float = 0.1) -> TransformerLanguageModel:
    """A causal language model."""
    return TransformerLanguageModel(vocabulary, features, heads, layers, hidden, dropout)


def transformer_classifier(classes: int = 2, vocabulary: int = 10_000, *, features: int = 128, heads: int = 8,
                           layers: int = 2, hidden: int = 512, dropout: float = 0.1) -> TransformerClassifier:
    """A classifier of texts by the mean of what the encoder gives."""
    return TransformerClassifier(vocabulary, classes, features, heads, layers, hidden, dropout)
