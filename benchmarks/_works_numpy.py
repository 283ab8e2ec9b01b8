"""The works that NumPy by hand is a peer for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._lenet_by_hand import ByHand
from benchmarks._works import CHAIN, CHAIN_SIZE, LENET_BATCH


def make(work: str, variant: str) -> Callable[[], object] | None:
    rng = np.random.default_rng(0)
    if work == "lenet training":
        images = rng.integers(0, 256, (LENET_BATCH, 28, 28, 1)).astype(np.uint8)
        labels, hand = rng.integers(0, 10, LENET_BATCH), ByHand()
        return lambda: hand.step(images, labels)
    if work == "chain of 200":
        x = rng.random(CHAIN_SIZE, dtype=np.float32)
        return lambda: chained(x)
    return None


def chained(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    y = x.copy()
    for k in range(CHAIN // 2):
        np.add(y, x, out=y)
        np.multiply(y, np.float32(0.5 if k % 2 else 0.51), out=y)
    return y
