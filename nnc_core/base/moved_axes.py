"""Axes of host arrays in another order: NumPy's own function takes longer than what is done with a small array."""

from __future__ import annotations

from typing import Any

import numpy as np


def moved(x: np.ndarray[Any, Any], source: int, target: int, count: int = 1) -> np.ndarray[Any, Any]:
    """A view with neighbouring axes, from `source` on, brought to `target`; the array itself where they stay.  -1 is
    the last axis."""
    if not count or source == target:
        return x
    source, target = source % x.ndim, target % x.ndim
    if source == target:
        return x
    order = [*range(x.ndim)]
    axes = order[source : source + count]
    del order[source : source + count]
    order[target:target] = axes
    return x.transpose(order)
