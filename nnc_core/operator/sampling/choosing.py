"""Elements chosen: by weights, and whole numbers without repetition."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.errors import AttributeValueError
from nnc_core.operator.sampling.drawing import TOOLS, Array, Tools, draw_of, single_fraction

FEW = 256
"""Numbers that Python tells apart more quickly than a sort."""


def weighted_choice(key: Any, weights: Any, count: int, replace: bool, tools: Tools = TOOLS) -> Any:
    """Positions, each as likely as its weight says among those that can still be chosen."""
    w = np.asarray(weights).astype(np.float64)
    _check_weights(w, count, replace)
    draw = draw_of(key, tools)
    if replace:
        totals = np.cumsum(w)
        found = np.searchsorted(totals, single_fraction(draw, np.arange(count)) * totals[-1:], side="right")
        return np.minimum(found, np.flatnonzero(w)[-1] if count else 0).astype(np.int64)
    with np.errstate(all="ignore"):  # a race: each arrives after an exponential time
        arrival = -np.log(single_fraction(draw, np.arange(len(w)))) / w
    return np.argsort(arrival, kind="stable")[:count].astype(np.int64)


def _check_weights(w: Array, count: int, replace: bool) -> None:
    wrong = ~((w >= 0) & np.isfinite(w))
    if wrong.any():
        raise AttributeValueError(f"weight {w[wrong][0]} is no number of at least 0", operator="choice")
    left = int((w > 0).sum())
    if count > (left if not replace else count if left else 0):
        raise AttributeValueError(f"{count} of {left} elements with a weight above 0 cannot be chosen",
                                  operator="choice", hint=None if replace else "replace=True")


def distinct_integers(key: Any, size: int, below: int, tools: Tools = TOOLS) -> Any:
    """A stream of integers, each as likely as any other, without those that came before."""
    count = 2 * size + 8
    while True:
        numbers = _below(tools.stream(key, 2 * count), below)
        found = _first_ones(numbers, size)
        if len(found) == size:
            return found
        count *= 2


def _below(words: Array, below: int) -> Array:
    """floor(word * below / 2**64) for words of 64 bits in two halves, the upper one first; below is at most 2**32."""
    span, half = np.uint64(below), np.uint64(32)
    high, low = words[0::2].astype(np.uint64), words[1::2].astype(np.uint64)
    return ((high * span + (low * span >> half)) >> half).astype(np.int64)


def _first_ones(numbers: Array, size: int) -> Array:
    """The first different numbers, in order."""
    if len(numbers) <= FEW:
        return np.array(list(dict.fromkeys(numbers.tolist()))[:size], np.int64)
    _, first = np.unique(numbers, return_index=True)
    return numbers[np.sort(first)[:size]]
