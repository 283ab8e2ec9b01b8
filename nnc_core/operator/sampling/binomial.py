"""Binomial numbers, and several categories by them: small ones are counted.  Others are drawn by BTRS of Hörmann, The
generation of binomial random variates (1993), whose names (a, b, c, u, v) are kept."""

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


def binomial(key: Any, count: Any, probability: Any, dtype: Any, tools: Tools = TOOLS) -> Any:
    """0 where the count is negative, or the probability no number."""
    counts, chances = np.broadcast_arrays(np.asarray(count, np.float64), np.asarray(probability).astype(np.float64))
    out = _binomial(draw_of(key, tools), np.arange(counts.size), counts.reshape(-1), chances.reshape(-1))
    return as_integers(out, dtype).reshape(counts.shape)


def _binomial(draw: Draw, index: Array, n: Array, p: Array) -> Array:
    """Successes of n trials; of the failures where p is above 1/2, since the methods are for rare successes."""
    turned = p > 0.5
    least = np.clip(np.where(turned, 1 - p, p), 0, 0.5)
    possible, mean, out = (n > 0) & (least > 0), n * least, np.zeros(len(n))
    counting = partial(in_pieces, _count)
    rejecting = partial(by_rejection, partial(_propose, draw.tools))
    with np.errstate(all="ignore"):
        sampled(counting, draw, index, possible & (mean < SMALL_MEAN), out, n, least)
        sampled(rejecting, draw, index, possible & (mean >= SMALL_MEAN), out, n, least)
    return np.where((n > 0) & turned, n - out, out) if turned.any() else out


def _count(draw: Draw, index: Array, n: Array, p: Array) -> Array:
    def ratio(k: float, n: Array, odds: Array) -> Array:
        return (n - k + 1) / k * odds

    return counted(draw, index, np.exp(n * np.log1p(-p)), ratio, lambda k, probability, n, odds: k < n, n, p / (1 - p))


def _propose(tools: Tools, words: Array, n: Array, p: Array) -> tuple[Array, Array]:
    """Numbers, most of which are accepted or refused by bounds that take no logarithm."""
    u, v = two_fractions(words)
    u -= 0.5
    q = 1 - p
    root = np.sqrt(n * p * q)
    b = 1.15 + 2.53 * root
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    alpha = (2.83 + 5.1 / b) * root
    near = 0.5 - np.abs(u)
    k = np.floor((2 * a / near + b) * u + c)
    inside = (k >= 0) & (k <= n)
    quick = (near >= 0.07) & (v <= 0.92 - 4.2 / b)
    accepted = inside & quick
    open_ = np.flatnonzero(inside & ~quick)
    accepted[open_] = _accepts(tools, *[x[open_] for x in (k, n, p, near, v * alpha, a, b)])
    return k, accepted


def _accepts(tools: Tools, k: Array, n: Array, p: Array, near: Array, v: Array, a: Array, b: Array) -> Array:
    """Test what the bounds leave open against the distribution itself."""
    mode = np.floor((n + 1) * p)
    log_odds = np.log(p / (1 - p))
    level = np.log(v / (a / near**2 + b))
    at_mode = tools.lgamma(mode + 1) + tools.lgamma(n - mode + 1)
    here = tools.lgamma(k + 1) + tools.lgamma(n - k + 1)
    accepted: Array = level <= at_mode - here + (k - mode) * log_odds
    return accepted


def multinomial(key: Any, count: Any, probabilities: Any, dtype: Any, tools: Tools = TOOLS) -> Any:
    """Each category's share of what those before it have left; probabilities are divided by their sum."""
    p = np.asarray(probabilities).astype(np.float64)
    rows = p.reshape(int(np.prod(p.shape[:-1])), p.shape[-1])
    left = np.broadcast_to(np.asarray(count, np.float64), p.shape[:-1]).reshape(-1).copy()
    rest = np.cumsum(rows[:, ::-1], axis=1)[:, ::-1]
    out = np.zeros(rows.shape)
    at = np.arange(len(rows)) * rows.shape[1]
    with np.errstate(all="ignore"):
        for k in range(rows.shape[1]):
            share = np.where(rest[:, k] > 0, np.minimum(rows[:, k] / rest[:, k], 1), 0)
            out[:, k] = _binomial(draw_of(key, tools), at + k, left, share)
            left -= out[:, k]
    return as_integers(out, dtype).reshape(p.shape)
