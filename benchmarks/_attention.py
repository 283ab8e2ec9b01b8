"""Attention by itself, ahead and with its gradients: sizes, and inputs that are the same in every framework."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

HEADS, FEATURES = 8, 64
LENGTHS = (512, 1024, 2048)
AHEAD, TRAINING = "attention", "attention training"
PRODUCTS = {AHEAD: 2, TRAINING: 7}
"""Products of (length, features) with (length, features), one of which is computed again on the way back."""


class Sized(NamedTuple):
    """A work of attention."""

    training: bool
    length: int


def flops(name: str, length: int) -> float:
    """Floating-point operations of its products."""
    return PRODUCTS[name] * 2.0 * HEADS * length**2 * FEATURES


def sized(work: str) -> Sized | None:
    """The attention of a work; None for one that is none."""
    name, _, length = work.rpartition(" ")
    return Sized(name == TRAINING, int(length)) if name in PRODUCTS else None


def inputs(length: int) -> list[Any]:
    """Query, key, value, and a cotangent of the result."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal((1, HEADS, length, FEATURES), dtype=np.float32) for _ in range(4)]
