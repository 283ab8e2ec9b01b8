"""Distributions that are sampled by rejection, or by counting through their probabilities, in NumPy.

Attempt t at element i takes the four words of Philox block i + t * 2**40 of its draw: an element's number depends on
the key, its place and its own parameters alone.  Everything is float64 until the end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import pi
from typing import Any

import numpy as np

from nnc_core.base.errors import AttributeValueError
from nnc_core.codegen.numpy_expansions import evaluate
from nnc_core.operator.philox import philox_blocks, philox_words

Array = np.ndarray[Any, Any]
ATTEMPT = 1 << 40
PIECE = 1 << 13
"""Elements that are sampled together."""
FEW = 256
"""Numbers that Python tells apart more quickly than a sort."""
SMALL_MEAN = 10.0
"""Below it counting is quicker than rejection, and what it begins with does not underflow."""
Proposal = Callable[..., tuple[Array, Array]]
"""(words uint32[n, 4], *parameters of the n elements) -> what is proposed, and whether it is accepted."""


def _words(key: Any, index: Array, attempt: int = 0) -> Array:
    seed, draw = (int(k) for k in np.asarray(key))
    out = np.empty((len(index), 4), np.uint32)
    philox_blocks(seed, draw, index.astype(np.uint64) + np.uint64(attempt * ATTEMPT), out)
    return out


def _fraction(words: Array) -> Array:
    """Strictly between 0 and 1, from 32 bits."""
    return (words.astype(np.float64) + 0.5) * 2.0**-32


def _fine_fraction(high: Array, low: Array) -> Array:
    """Strictly between 0 and 1, from 52 bits."""
    whole = high.astype(np.float64) * 2.0**20 + (low >> np.uint32(12)).astype(np.float64)
    return (whole + 0.5) * 2.0**-52


def _in_pieces(sample: Callable[..., Array], key: Any, index: Array, *parameters: Array) -> Array:
    """The numbers of some elements after those of others: what is computed on the way stays in the cache."""
    out = np.empty(len(index))
    for begin in range(0, len(index), PIECE):
        part = slice(begin, begin + PIECE)
        out[part] = sample(key, index[part], *[p[part] for p in parameters])
    return out


def _by_rejection(propose: Proposal, key: Any, index: Array, *parameters: Array) -> Array:
    """Attempts until each element has been accepted."""
    out = np.empty(len(index))
    left = np.arange(len(index))
    attempt = 0
    while len(left):
        found, accepted = propose(_words(key, index[left], attempt), *[p[left] for p in parameters])
        out[left[accepted]] = found[accepted]
        left, attempt = left[~accepted], attempt + 1
    return out


# ---- gamma: Marsaglia and Tsang, A simple method for generating gamma variables, TOMS 26 (2000)
def gamma(key: Any, concentration: Any, log: bool) -> Any:
    """NaN where the concentration is negative or NaN."""
    a = np.asarray(concentration).astype(np.float64)
    flat, good = a.reshape(-1), (a.reshape(-1) > 0) & np.isfinite(a.reshape(-1))
    index = np.flatnonzero(good)
    out = np.where(flat == 0, -np.inf, np.where(flat == np.inf, np.inf, np.nan))
    with np.errstate(all="ignore"):
        out[index] = _in_pieces(partial(_by_rejection, _propose_gamma), key, index, flat[index])
        return (out if log else np.exp(out)).reshape(a.shape).astype(np.asarray(concentration).dtype)


def _propose_gamma(words: Array, a: Array) -> tuple[Array, Array]:
    """Logarithms.  A concentration below 1 is raised by 1, and the result taken times u ** (1 / a)."""
    first, second, level, root = (_fraction(words[:, k]) for k in range(4))
    normal = np.sqrt(-2 * np.log(first)) * np.cos(2 * pi * second)
    d = np.where(a < 1, a + 1, a) - 1 / 3
    v = 1 + normal / np.sqrt(9 * d)
    log_v = 3 * np.log(np.maximum(v, 1e-300))
    accepted = (v > 0) & (np.log(level) < 0.5 * normal**2 + d - d * np.exp(log_v) + d * log_v)
    return np.log(d) + log_v + np.where(a < 1, np.log(root) / a, 0.0), accepted


# ---- Poisson; PTRS of Hörmann, The transformed rejection method for generating Poisson random variables (1993)
def poisson(key: Any, rate: Any, dtype: Any) -> Any:
    """0 where the rate is 0, negative or NaN: integers have nothing else to say."""
    flat = np.asarray(rate).astype(np.float64).reshape(-1)
    out = np.zeros(len(flat))
    few, many = (flat > 0) & (flat < SMALL_MEAN), flat >= SMALL_MEAN
    with np.errstate(all="ignore"):
        out[few] = _in_pieces(_count_poisson, key, np.flatnonzero(few), flat[few])
        rejecting = partial(_by_rejection, _propose_poisson)
        out[many] = _in_pieces(rejecting, key, np.flatnonzero(many), flat[many])
    return _as_integers(out, dtype).reshape(np.shape(rate))


def _as_integers(x: Array, dtype: Any) -> Array:
    limits = np.iinfo(dtype)
    top = x >= float(limits.max)
    return np.where(top, limits.max, np.where(top, 0, x).astype(dtype)).astype(dtype)


def _single_fraction(key: Any, index: Array) -> Array:
    words = _words(key, index)
    return _fine_fraction(words[:, 0], words[:, 1])


def _count_poisson(key: Any, index: Array, rate: Array) -> Array:
    """The number at which the distribution function passes a uniform number."""
    return _counted(key, index, np.exp(-rate), lambda k, rate: rate / k,
                    lambda k, probability, rate: probability > 0, rate)


def _counted(key: Any, index: Array, probability: Array, ratio: Callable[..., Array], may_go_on: Callable[..., Array],
             *parameters: Array) -> Array:
    """The number at which the sum of probabilities passes a uniform number: from 0, each the one before it times
    ratio(k, *parameters)."""
    left, found, k = _single_fraction(key, index), np.zeros(len(index)), 0
    at = np.flatnonzero(left > probability)
    going = [x[at] for x in (left, probability, *parameters)]
    while len(at):
        k += 1
        left, probability, *others = going
        left -= probability
        probability *= ratio(float(k), *others)
        more = (left > probability) & may_go_on(k, probability, *others)
        found[at[~more]] = k
        at, going = at[more], [x[more] for x in going]
    return found


def _hats(words: Array) -> tuple[Array, Array]:
    return _fine_fraction(words[:, 0], words[:, 1]), _fine_fraction(words[:, 2], words[:, 3])


def _propose_poisson(words: Array, rate: Array) -> tuple[Array, Array]:
    u, v = _hats(words)
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
    accepted[open_] = _accepts_poisson(*[x[open_] for x in (k, rate, near, v, a, b)])
    return k, accepted


def _accepts_poisson(k: Array, rate: Array, near: Array, v: Array, a: Array, b: Array) -> Array:
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    level = np.log(v * inverse / (a / near**2 + b))
    accepted: Array = level <= k * np.log(rate) - rate - evaluate("lgamma", k + 1)
    return accepted


# ---- binomial; BTRS of Hörmann, The generation of binomial random variates (1993)
def binomial(key: Any, count: Any, probability: Any, dtype: Any) -> Any:
    """0 where the count is negative, or the probability no number."""
    counts, chances = np.broadcast_arrays(np.asarray(count, np.float64), np.asarray(probability).astype(np.float64))
    out = _binomial(key, np.arange(counts.size), counts.reshape(-1), chances.reshape(-1))
    return _as_integers(out, dtype).reshape(counts.shape)


def _binomial(key: Any, index: Array, n: Array, p: Array) -> Array:
    turned = p > 0.5
    least = np.clip(np.where(turned, 1 - p, p), 0, 0.5)
    out = np.zeros(len(n))
    few, many = (n > 0) & (least > 0) & (n * least < SMALL_MEAN), (n > 0) & (n * least >= SMALL_MEAN)
    with np.errstate(all="ignore"):
        out[few] = _in_pieces(_count_binomial, key, index[few], n[few], least[few])
        rejecting = partial(_by_rejection, _propose_binomial)
        out[many] = _in_pieces(rejecting, key, index[many], n[many], least[many])
    return np.where((n > 0) & turned, n - out, out)


def _count_binomial(key: Any, index: Array, n: Array, p: Array) -> Array:
    def ratio(k: float, n: Array, odds: Array) -> Array:
        return (n - k + 1) / k * odds

    return _counted(key, index, np.exp(n * np.log1p(-p)), ratio, lambda k, probability, n, odds: k < n, n, p / (1 - p))


def _propose_binomial(words: Array, n: Array, p: Array) -> tuple[Array, Array]:
    u, v = _hats(words)
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
    accepted[open_] = _accepts_binomial(*[x[open_] for x in (k, n, p, near, v * alpha, a, b)])
    return k, accepted


def _accepts_binomial(k: Array, n: Array, p: Array, near: Array, v: Array, a: Array, b: Array) -> Array:
    mode = np.floor((n + 1) * p)
    log_odds = np.log(p / (1 - p))
    level = np.log(v / (a / near**2 + b))
    at_mode = evaluate("lgamma", mode + 1) + evaluate("lgamma", n - mode + 1)
    here = evaluate("lgamma", k + 1) + evaluate("lgamma", n - k + 1)
    accepted: Array = level <= at_mode - here + (k - mode) * log_odds
    return accepted


# ---- several categories
def multinomial(key: Any, count: Any, probabilities: Any, dtype: Any) -> Any:
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
            out[:, k] = _binomial(key, at + k, left, share)
            left -= out[:, k]
    return _as_integers(out, dtype).reshape(p.shape)


def weighted_choice(key: Any, weights: Any, count: int, replace: bool) -> Any:
    """Positions, each as likely as its weight says among those that can still be chosen."""
    w = np.asarray(weights).astype(np.float64)
    _check_weights(w, count, replace)
    if replace:
        totals = np.cumsum(w)
        found = np.searchsorted(totals, _single_fraction(key, np.arange(count)) * totals[-1:], side="right")
        return np.minimum(found, np.flatnonzero(w)[-1] if count else 0).astype(np.int64)
    with np.errstate(all="ignore"):  # a race: each arrives after an exponential time
        arrival = -np.log(_single_fraction(key, np.arange(len(w)))) / w
    return np.argsort(arrival, kind="stable")[:count].astype(np.int64)


def _check_weights(w: Array, count: int, replace: bool) -> None:
    wrong = ~((w >= 0) & np.isfinite(w))
    if wrong.any():
        raise AttributeValueError(f"weight {w[wrong][0]} is no number of at least 0", operator="choice")
    left = int((w > 0).sum())
    if count > (left if not replace else count if left else 0):
        raise AttributeValueError(f"{count} of {left} elements with a weight above 0 cannot be chosen",
                                  operator="choice", hint=None if replace else "replace=True")


def distinct_integers(key: Any, size: int, below: int) -> Any:
    """A stream of integers, each as likely as any other, without those that came before."""
    count = 2 * size + 8
    while True:
        numbers = _below(philox_words(key, 2 * count), below)
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
