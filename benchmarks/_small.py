"""The small works that are trained on eagerly: names, sizes, and the data that both frameworks get."""

from __future__ import annotations

from typing import Any

import numpy as np

BATCH, IN, HIDDEN, CLASSES = 32, 32, 64, 10
IMAGES, ROUNDS, LENGTH, MODEL = 12, 20, 32, 64
GROUPS = 2
RATE = 0.001

NETWORKS = ("mlp", "cnn", "gru cells", "lstm cells", "transformer block")
LOSSES = ("cross_entropy", "mse", "bce with logits", "kl", "huber", "group_norm", "sum of tanh")


def batch(work: str) -> tuple[Any, Any]:
    """Inputs and targets; images have their channels last."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, BATCH)
    if work == "mlp":
        return rng.standard_normal((BATCH, IN), np.float32), labels
    if work == "cnn":
        return rng.standard_normal((BATCH, IMAGES, IMAGES, 1), np.float32), labels
    if work in ("gru cells", "lstm cells"):
        return rng.standard_normal((ROUNDS, BATCH, IN), np.float32), labels
    if work == "transformer block":
        return tuple(rng.standard_normal((2, 1, LENGTH, MODEL), np.float32))  # type: ignore[return-value]
    x = rng.standard_normal((BATCH, CLASSES), np.float32)
    shares = rng.dirichlet(np.ones(CLASSES), BATCH).astype(np.float32)
    return x, labels if work == "cross_entropy" else shares
