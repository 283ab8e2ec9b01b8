"""Gamma-distributed numbers: Marsaglia and Tsang, A simple method for generating gamma variables, TOMS 26 (2000)."""

from __future__ import annotations

from functools import partial
from math import factorial, pi
from typing import Any

import numpy as np

from nnc_core.operator.sampling.drawing import TOOLS, Array, Tools, by_rejection, draw_of, fraction, sampled

_SINE = [(-1) ** k / factorial(2 * k + 1) for k in reversed(range(9))]


def gamma(key: Any, concentration: Any, log: bool, tools: Tools = TOOLS) -> Any:
    """NaN where the concentration is negative or NaN."""
    a = np.asarray(concentration).astype(np.float64)
    flat = a.reshape(-1)
    good = (flat > 0) & (flat < np.inf)
    out = np.empty(len(flat))
    with np.errstate(all="ignore"):
        if not good.all():
            logarithms = np.where(flat == 0, -np.inf, np.where(flat == np.inf, np.inf, np.nan))
            out[:] = logarithms if log else np.exp(logarithms)
        sample = partial(by_rejection, partial(_propose_gamma, log))
        sampled(sample, draw_of(key, tools), np.arange(len(out)), good, out, flat)
    return out.reshape(a.shape).astype(np.asarray(concentration).dtype, copy=False)


def _propose_gamma(log: bool, words: Array, a: Array) -> tuple[Array, Array]:
    """Numbers, or logarithms.  A concentration below 1 is raised by 1, and the result taken times u ** (1 / a)."""
    normal = _normal(words)
    small = np.flatnonzero(a < 1)
    d = a - 1 / 3
    d[small] += 1
    v = 1 + normal / np.sqrt(9 * d)
    cube, level, square = v * v * v, fraction(words[:, 2]), normal * normal
    accepted = (level < 1 - 0.0331 * square * square) & (v > 0)
    open_ = np.flatnonzero(~accepted & (v > 0))  # few: most are below the squeeze
    bound = 0.5 * square[open_] + d[open_] * (1 - cube[open_] + np.log(cube[open_]))
    accepted[open_] = np.log(level[open_]) < bound
    power = np.log(fraction(words[small, 3])) / a[small]
    if log:
        found = np.log(d) + 3 * np.log(np.maximum(v, 1e-300))
        found[small] += power
    else:
        found = d * cube
        found[small] *= np.exp(power)
    return found, accepted


def _normal(words: Array) -> Array:
    """Normal numbers by Box and Muller's transform of the first two of the words."""
    radius = np.log(fraction(words[:, 0]))
    radius *= -2
    np.sqrt(radius, out=radius)
    radius *= cos_of_turns(fraction(words[:, 1]))
    return radius


def cos_of_turns(u: Array) -> Array:
    """cos(2 pi u) of 0 < u < 1 to within 1e-13, with the same bits on every machine: the sine of what is left of a
    quarter of a turn, by its series."""
    u -= 0.5
    np.abs(u, out=u)
    u -= 0.25
    u *= 2 * pi
    square = u * u
    total = np.full(len(u), _SINE[0])
    for coefficient in _SINE[1:]:
        total *= square
        total += coefficient
    total *= u
    return total
