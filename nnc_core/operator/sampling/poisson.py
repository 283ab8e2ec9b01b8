"""Poisson-distributed numbers: small ones are counted.  Others are drawn by PTRS of Hörmann, The transformed rejection
method for generating Poisson random variables (1993), whose names (a, b, u, v) are kept."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from nnc_core.operator.sampling.counting import SMALL_MEAN, as_integers, counted
from nnc_core.operator.sampling.drawing import (
    TOOLS,
    Array,
    Draw,
    Tools,
    by_rejection,
    draw_of,
    in_pieces,
    sampled,
    two_fractions,
)


def poisson(key: Any, rate: Any, dtype: Any, tools: Tools = TOOLS) -> Any:
    """0 where the rate is 0, negative or NaN: integers have nothing else to say."""
    flat = np.asarray(rate).astype(np.float64).reshape(-1)
    out, draw, index = np.zeros(len(flat)), draw_of(key, tools), np.arange(len(flat))
    with np.errstate(all="ignore"):
        sampled(partial(in_pieces, _count), draw, index, (flat > 0) & (flat < SMALL_MEAN), out, flat)
        rejecting = partial(by_rejection, partial(_propose, tools))
        sampled(rejecting, draw, index, flat >= SMALL_MEAN, out, flat)
    return as_integers(out, dtype).reshape(np.shape(rate))


def _count(draw: Draw, index: Array, rate: Array) -> Array:
    """The number at which the distribution function passes a uniform number."""
    return counted(draw, index, np.exp(-rate), lambda k, rate: rate / k,
                   lambda k, probability, rate: probability > 0, rate)


def _propose(tools: Tools, words: Array, rate: Array) -> tuple[Array, Array]:
    """Numbers, most of which are accepted or refused by bounds that take no logarithm."""
    u, v = two_fractions(words)
    u -= 0.5
    root = np.sqrt(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    near = 0.5 - np.abs(u)
    k = np.floor((2 * a / near + b) * u + rate + 0.43)
    quick = (near >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
    hopeless = (k < 0) | ((near < 0.013) & (v > near))
    accepted = quick & (k >= 0)
    open_ = np.flatnonzero(~quick & ~hopeless)
    accepted[open_] = _accepts(tools, *[x[open_] for x in (k, rate, near, v, a, b)])
    return k, accepted


def _accepts(tools: Tools, k: Array, rate: Array, near: Array, v: Array, a: Array, b: Array) -> Array:
    """Test what the bounds leave open against the distribution itself."""
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    level = np.log(v * inverse / (a / near**2 + b))
    accepted: Array = level <= k * np.log(rate) - rate - tools.lgamma(k + 1)
    return accepted
