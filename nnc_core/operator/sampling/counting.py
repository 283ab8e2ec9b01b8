"""Whole numbers that are small: found by adding up probabilities until they pass a uniform number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnc_core.operator.sampling.drawing import Array, Draw, single_fraction

SMALL_MEAN = 10.0
"""Below it counting is quicker than rejection, and what it begins with does not underflow."""


def counted(draw: Draw, index: Array, probability: Array, ratio: Callable[..., Array],
            may_go_on: Callable[..., Array], *parameters: Array) -> Array:
    """The number at which the sum of probabilities passes a uniform number: from 0, each the one before it times
    ratio(k, *parameters).  Elements whose parameters are all alike look it up among the same sums."""
    wanted = single_fraction(draw, index)
    if all([(p == p[0]).all() for p in parameters]):
        sums = _sums(probability[:1], ratio, may_go_on, *[p[:1] for p in parameters])
        return np.searchsorted(sums, wanted).astype(np.float64)
    found, k = np.zeros(len(index)), 0
    at = np.flatnonzero(wanted > probability)
    going = [x[at] for x in (wanted, probability, probability, *parameters)]
    while len(at):
        k += 1
        wanted, total, probability, *others = going
        probability = probability * ratio(float(k), *others)
        total = total + probability
        more = (wanted > total) & may_go_on(k, probability, *others)
        found[at[~more]] = k
        at, going = at[more], [x[more] for x in (wanted, total, probability, *others)]
    return found


def _sums(probability: Array, ratio: Callable[..., Array], may_go_on: Callable[..., Array],
          *parameters: Array) -> Array:
    """The sums of the probabilities of 0, of 0 and 1 ... until none can be passed any more."""
    sums, total, k = [probability], probability, 0
    while total < 1:
        k += 1
        probability = probability * ratio(float(k), *parameters)
        total = total + probability
        if not may_go_on(k, probability, *parameters):
            break
        sums.append(total)
    return np.concatenate(sums)


def as_integers(x: Array, dtype: Any) -> Array:
    """Whole numbers in an integer dtype; its largest for those beyond it."""
    limits = np.iinfo(dtype)
    top = x >= float(limits.max)
    if not top.any():
        return x.astype(dtype)
    return np.where(top, limits.max, np.where(top, 0, x).astype(dtype)).astype(dtype)
