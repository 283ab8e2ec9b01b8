"""Counts of runs of tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.errors import AttributeValueError
from nnc_core.io.onnx.reading.lanes import Host
from nnc_core.io.onnx.reading.registry import operator

MODES = ("TF", "IDF", "TFIDF")


@operator("TfIdfVectorizer", since=9)
def tf_idf(x: Host, *, max_gram_length: int, max_skip_count: int, min_gram_length: int, mode: str,
           ngram_counts: tuple[int, ...], ngram_indexes: tuple[int, ...], pool_int64s: tuple[int, ...] = (),
           pool_strings: tuple[str, ...] = (), weights: tuple[float, ...] = ()) -> Host:
    """Counts of each n-gram of a pool in each row, with up to `max_skip_count` tokens between its neighbours:
    counts ("TF"), weights of those that occur ("IDF"), or counts times weights ("TFIDF")."""
    if mode not in MODES:
        raise AttributeValueError(f"mode {mode!r} is none of {', '.join(MODES)}")
    grams = _pool(pool_int64s or pool_strings, ngram_counts)
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    counts = np.zeros((len(rows), max(ngram_indexes, default=-1) + 1), np.float32)
    for row, tokens in enumerate(rows.tolist()):
        for gram in _occurring(tokens, min_gram_length, max_gram_length, max_skip_count):
            if gram in grams:
                counts[row, ngram_indexes[grams[gram]]] += 1
    scale = np.ones(counts.shape[1], np.float32)
    for i, weight in enumerate(weights):
        scale[ngram_indexes[i]] = weight
    result = counts if mode == "TF" else (counts > 0) * scale if mode == "IDF" else counts * scale
    return result.astype(np.float32) if x.ndim == 2 else result[0].astype(np.float32)


def _pool(tokens: tuple[Any, ...], starts: tuple[int, ...]) -> dict[tuple[Any, ...], int]:
    """The number of each n-gram: `starts` says where those of 1, 2 ... tokens begin in the pool."""
    grams: dict[tuple[Any, ...], int] = {}
    for n, (first, end) in enumerate(zip(starts, (*starts[1:], len(tokens)), strict=True), start=1):
        for i in range(first, end, n):
            grams.setdefault(tuple(tokens[i:i + n]), len(grams))
    return grams


def _occurring(tokens: list[Any], shortest: int, longest: int, skips: int) -> Any:
    """All runs of tokens with the same distance between neighbours; single tokens once."""
    for n in range(shortest, longest + 1):
        for distance in range(1, 2 if n == 1 else skips + 2):
            for first in range(len(tokens) - (n - 1) * distance):
                yield tuple(tokens[first:first + n * distance:distance][:n])
