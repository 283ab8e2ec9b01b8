"""Networks whose inference is compared: sizes, and weights that are the same numbers in every framework."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import numpy as np

SIDE, CLASSES = 224, 1000
LENGTH, FEATURES, HEADS, HIDDEN = 128, 512, 8, 2048
BATCHES = (1, 8)
BLOCK_FLOPS = 2 * LENGTH * (4 * FEATURES**2 + 2 * FEATURES * HIDDEN + 2 * LENGTH * FEATURES)
FLOPS = {"resnet50": 8.18e9, "mobilenet": 0.6e9, "encoder block": BLOCK_FLOPS}
"""Floating-point operations for one example."""


def parts_of(work: str) -> tuple[str, int] | None:
    """The network and the batch of a work; None for one that is no inference."""
    name, _, batch = work.rpartition(" b")
    return (name, int(batch)) if name in FLOPS else None


def input_of(name: str, batch: int) -> Any:
    """Images, channels last, or rows of features."""
    shape = (batch, LENGTH, FEATURES) if name == "encoder block" else (batch, SIDE, SIDE, 3)
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def drawn(number: int, shape: Sequence[int]) -> Any:
    """An array of weights, by its number in the order of definition: kernels (..., inputs, outputs) keep the size of
    what they see; vectors (scales, shifts, moments) are positive."""
    rng = np.random.default_rng(number)
    if len(shape) == 1:
        return rng.random(shape, dtype=np.float32) / 2 + np.float32(0.5)
    return rng.standard_normal(shape, dtype=np.float32) * np.float32(sqrt(2 / prod(shape[:-1])))
