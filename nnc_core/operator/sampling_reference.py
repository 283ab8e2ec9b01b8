"""Distributions that are sampled by rejection, or by counting through their probabilities, in NumPy.

Attempt t at element i takes the four words of Philox block i + t * 2**40 of its draw: an element's number depends on
the key, its place and its own parameters alone.  Everything is float64 until the end.

What a device may have quicker ways for, with the same bits, are its `Tools`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import factorial, pi
from typing import Any, NamedTuple

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
_SINE = [(-1) ** k / factorial(2 * k + 1) for k in reversed(range(9))]
Proposal = Callable[..., tuple[Array, Array]]
"""(words uint32[n, 4], *parameters of the n elements) -> what is proposed, and whether it is accepted."""


def _blocks(seed: int, draw: int, numbers: Array) -> Array:
    out = np.empty((len(numbers), 4), np.uint32)
    philox_blocks(seed, draw, numbers, out)
    return out


class Tools(NamedTuple):
    """The parts that samplers are made of."""

    blocks: Callable[[int, int, Array], Array] = _blocks
    """The words (n, 4) of the Philox blocks of a seed and a draw that have these numbers, uint64."""
    lgamma: Callable[[Array], Array] = partial(evaluate, "lgamma")
    """Of float64 numbers of at least 1."""
    stream: Callable[[Any, int], Array] = philox_words
    """So many words of the stream of a key."""


TOOLS = Tools()


class Draw(NamedTuple):
    """One draw."""

    seed: int
    number: int
    tools: Tools

    def words(self, index: Array, attempt: int = 0) -> Array:
        return self.tools.blocks(self.seed, self.number, index.astype(np.uint64) + np.uint64(attempt * ATTEMPT))


def _draw(key: Any, tools: Tools) -> Draw:
    seed, number = np.asarray(key).tolist()
    return Draw(seed, number, tools)


def _fraction(words: Array) -> Array:
    """Strictly between 0 and 1, from 32 bits."""
    return (words.astype(np.float64) + 0.5) * 2.0**-32


def _fine_fraction(high: Array, low: Array) -> Array:
    """Strictly between 0 and 1, from 52 bits."""
    whole = high.astype(np.float64) * 2.0**20 + (low >> np.uint32(12)).astype(np.float64)
    return (whole + 0.5) * 2.0**-52


def _in_pieces(sample: Callable[..., Array], draw: Draw, index: Array, *parameters: Array) -> Array:
    """The numbers of some elements after those of others: what is computed on the way stays in the cache."""
    out = np.empty(len(index))
    for begin in range(0, len(index), PIECE):
        part = slice(begin, begin + PIECE)
        out[part] = sample(draw, index[part], *[p[part] for p in parameters])
    return out


def _sampled(sample: Callable[..., Array], draw: Draw, index: Array, chosen: Array, out: Array,
             *parameters: Array) -> None:
    """Fill the chosen elements of out, which have these places in their draw."""
    at = np.flatnonzero(chosen)
    if len(at) == len(out):
        out[:] = _in_pieces(sample, draw, index, *parameters)
    elif len(at):
        out[at] = _in_pieces(sample, draw, index[at], *[p[at] for p in parameters])


def _by_rejection(propose: Proposal, draw: Draw, index: Array, *parameters: Array) -> Array:
    """Attempts until each element has been accepted."""
    out, accepted = propose(draw.words(index), *parameters)
    left, attempt = np.flatnonzero(~accepted), 1
    while len(left):
        found, accepted = propose(draw.words(index[left], attempt), *[p[left] for p in parameters])
        out[left[accepted]] = found[accepted]
        left, attempt = left[~accepted], attempt + 1
    return out


# ---- gamma: Marsaglia and Tsang, A simple method for generating gamma variables, TOMS 26 (2000)
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
        sample = partial(_by_rejection, partial(_propose_gamma, log))
        _sampled(sample, _draw(key, tools), np.arange(len(out)), good, out, flat)
    return out.reshape(a.shape).astype(np.asarray(concentration).dtype, copy=False)


def _propose_gamma(log: bool, words: Array, a: Array) -> tuple[Array, Array]:
    """Numbers, or logarithms.  A concentration below 1 is raised by 1, and the result taken times u ** (1 / a)."""
    normal = _normal(words)
    small = np.flatnonzero(a < 1)
    d = a - 1 / 3
    d[small] += 1
    v = 1 + normal / np.sqrt(9 * d)
    cube, level, square = v * v * v, _fraction(words[:, 2]), normal * normal
    accepted = (level < 1 - 0.0331 * square * square) & (v > 0)
    open_ = np.flatnonzero(~accepted & (v > 0))  # few: most are below the squeeze
    bound = 0.5 * square[open_] + d[open_] * (1 - cube[open_] + np.log(cube[open_]))
    accepted[open_] = np.log(level[open_]) < bound
    power = np.log(_fraction(words[small, 3])) / a[small]
    if log:
        found = np.log(d) + 3 * np.log(np.maximum(v, 1e-300))
        found[small] += power
    else:
        found = d * cube
        found[small] *= np.exp(power)
    return found, accepted


def _normal(words: Array) -> Array:
    """Normal numbers by Box and Muller's transform of the first two of the words."""
    radius = np.log(_fraction(words[:, 0]))
    radius *= -2
    np.sqrt(radius, out=radius)
    radius *= _cos_of_turns(_fraction(words[:, 1]))
    return radius


def _cos_of_turns(u: Array) -> Array:
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


# ---- Poisson; PTRS of Hörmann, The transformed rejection method for generating Poisson random variables (1993)
def poisson(key: Any, rate: Any, dtype: Any, tools: Tools = TOOLS) -> Any:
    """0 where the rate is 0, negative or NaN: integers have nothing else to say."""
    flat = np.asarray(rate).astype(np.float64).reshape(-1)
    out, draw, index = np.zeros(len(flat)), _draw(key, tools), np.arange(len(flat))
    with np.errstate(all="ignore"):
        _sampled(_count_poisson, draw, index, (flat > 0) & (flat < SMALL_MEAN), out, flat)
        rejecting = partial(_by_rejection, partial(_propose_poisson, tools))
        _sampled(rejecting, draw, index, flat >= SMALL_MEAN, out, flat)
    return _as_integers(out, dtype).reshape(np.shape(rate))


def _as_integers(x: Array, dtype: Any) -> Array:
    limits = np.iinfo(dtype)
    top = x >= float(limits.max)
    if not top.any():
        return x.astype(dtype)
    return np.where(top, limits.max, np.where(top, 0, x).astype(dtype)).astype(dtype)


def _single_fraction(draw: Draw, index: Array) -> Array:
    words = draw.words(index)
    return _fine_fraction(words[:, 0], words[:, 1])


def _count_poisson(draw: Draw, index: Array, rate: Array) -> Array:
    """The number at which the distribution function passes a uniform number."""
    return _counted(draw, index, np.exp(-rate), lambda k, rate: rate / k,
                    lambda k, probability, rate: probability > 0, rate)


def _counted(draw: Draw, index: Array, probability: Array, ratio: Callable[..., Array],
             may_go_on: Callable[..., Array], *parameters: Array) -> Array:
    """The number at which the sum of probabilities passes a uniform number: from 0, each the one before it times
    ratio(k, *parameters).  Elements whose parameters are all alike look it up among the same sums."""
    wanted = _single_fraction(draw, index)
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


def _hats(words: Array) -> tuple[Array, Array]:
    return _fine_fraction(words[:, 0], words[:, 1]), _fine_fraction(words[:, 2], words[:, 3])


def _propose_poisson(tools: Tools, words: Array, rate: Array) -> tuple[Array, Array]:
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
    accepted[open_] = _accepts_poisson(tools, *[x[open_] for x in (k, rate, near, v, a, b)])
    return k, accepted


def _accepts_poisson(tools: Tools, k: Array, rate: Array, near: Array, v: Array, a: Array, b: Array) -> Array:
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    level = np.log(v * inverse / (a / near**2 + b))
    accepted: Array = level <= k * np.log(rate) - rate - tools.lgamma(k + 1)
    return accepted


# ---- binomial; BTRS of Hörmann, The generation of binomial random variates (1993)
def binomial(key: Any, count: Any, probability: Any, dtype: Any, tools: Tools = TOOLS) -> Any:
    """0 where the count is negative, or the probability no number."""
    counts, chances = np.broadcast_arrays(np.asarray(count, np.float64), np.asarray(probability).astype(np.float64))
    out = _binomial(_draw(key, tools), np.arange(counts.size), counts.reshape(-1), chances.reshape(-1))
    return _as_integers(out, dtype).reshape(counts.shape)


def _binomial(draw: Draw, index: Array, n: Array, p: Array) -> Array:
    turned = p > 0.5
    least = np.clip(np.where(turned, 1 - p, p), 0, 0.5)
    possible, mean, out = (n > 0) & (least > 0), n * least, np.zeros(len(n))
    rejecting = partial(_by_rejection, partial(_propose_binomial, draw.tools))
    with np.errstate(all="ignore"):
        _sampled(_count_binomial, draw, index, possible & (mean < SMALL_MEAN), out, n, least)
        _sampled(rejecting, draw, index, possible & (mean >= SMALL_MEAN), out, n, least)
    return np.where((n > 0) & turned, n - out, out) if turned.any() else out


def _count_binomial(draw: Draw, index: Array, n: Array, p: Array) -> Array:
    def ratio(k: float, n: Array, odds: Array) -> Array:
        return (n - k + 1) / k * odds

    return _counted(draw, index, np.exp(n * np.log1p(-p)), ratio, lambda k, probability, n, odds: k < n, n, p / (1 - p))


def _propose_binomial(tools: Tools, words: Array, n: Array, p: Array) -> tuple[Array, Array]:
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
    accepted[open_] = _accepts_binomial(tools, *[x[open_] for x in (k, n, p, near, v * alpha, a, b)])
    return k, accepted


def _accepts_binomial(tools: Tools, k: Array, n: Array, p: Array, near: Array, v: Array, a: Array, b: Array) -> Array:
    mode = np.floor((n + 1) * p)
    log_odds = np.log(p / (1 - p))
    level = np.log(v / (a / near**2 + b))
    at_mode = tools.lgamma(mode + 1) + tools.lgamma(n - mode + 1)
    here = tools.lgamma(k + 1) + tools.lgamma(n - k + 1)
    accepted: Array = level <= at_mode - here + (k - mode) * log_odds
    return accepted


# ---- several categories
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
            out[:, k] = _binomial(_draw(key, tools), at + k, left, share)
            left -= out[:, k]
    return _as_integers(out, dtype).reshape(p.shape)


def weighted_choice(key: Any, weights: Any, count: int, replace: bool, tools: Tools = TOOLS) -> Any:
    """Positions, each as likely as its weight says among those that can still be chosen."""
    w = np.asarray(weights).astype(np.float64)
    _check_weights(w, count, replace)
    draw = _draw(key, tools)
    if replace:
        totals = np.cumsum(w)
        found = np.searchsorted(totals, _single_fraction(draw, np.arange(count)) * totals[-1:], side="right")
        return np.minimum(found, np.flatnonzero(w)[-1] if count else 0).astype(np.int64)
    with np.errstate(all="ignore"):  # a race: each arrives after an exponential time
        arrival = -np.log(_single_fraction(draw, np.arange(len(w)))) / w
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
