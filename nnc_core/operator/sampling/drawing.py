"""Drawing of elements: the words that each may use, attempts until one is accepted, pieces that stay in the cache.

Attempt t at element i takes the four words of Philox block i + t * 2**40 of its draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nnc_core.codegen.numpy_expansions import evaluate
from nnc_core.operator.philox import IN_ORDER, encipher, philox_blocks, philox_words, round_keys

Array = np.ndarray[Any, Any]
ATTEMPT = 1 << 40
PIECE = 1 << 15
"""Elements that are sampled together."""
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


class OneDraw(NamedTuple):
    """A draw by itself."""

    seed: int
    number: int
    tools: Tools

    def words(self, index: Array, attempt: int = 0) -> Array:
        return self.tools.blocks(self.seed, self.number, index.astype(np.uint64) + np.uint64(attempt * ATTEMPT))


class Draws(NamedTuple):
    """Draws of one seed from a number on, each of so many elements, one after the other."""

    seed: int
    first: int
    size: int
    tools: Tools

    def words(self, index: Array, attempt: int = 0) -> Array:
        draws, elements = np.divmod(index.astype(np.uint64), np.uint64(self.size))
        out, lanes = np.empty((len(index), 4), np.uint32), np.empty((3, 2, len(index)), np.uint64)
        encipher(round_keys(self.seed), draws + np.uint64(self.first), elements + np.uint64(attempt * ATTEMPT), lanes,
                 out, IN_ORDER)
        return out


Draw: TypeAlias = OneDraw | Draws


def draw_of(key: Any, tools: Tools) -> Draw:
    """The draw that a key names; several draws are themselves."""
    if key.__class__ is Draws:
        return key
    seed, number = np.asarray(key).tolist()
    return OneDraw(seed, number, tools)


def fraction(words: Array) -> Array:
    """Strictly between 0 and 1, from 32 bits."""
    out = words.astype(np.float64)
    out += 0.5
    out *= 2.0**-32
    return out


def fine_fraction(high: Array, low: Array) -> Array:
    """Strictly between 0 and 1, from 52 bits."""
    whole = high.astype(np.float64) * 2.0**20 + (low >> np.uint32(12)).astype(np.float64)
    return (whole + 0.5) * 2.0**-52


def _pieces(size: int) -> list[slice]:
    return [slice(begin, begin + PIECE) for begin in range(0, size, PIECE)]


def in_pieces(sample: Callable[..., Array], draw: Draw, index: Array, *parameters: Array) -> Array:
    """The numbers of some elements after those of others: what is computed on the way stays in the cache."""
    if len(index) <= PIECE:
        return sample(draw, index, *parameters)
    out = np.empty(len(index))
    for part in _pieces(len(index)):
        out[part] = sample(draw, index[part], *[p[part] for p in parameters])
    return out


def sampled(sample: Callable[..., Array], draw: Draw, index: Array, chosen: Array, out: Array,
            *parameters: Array) -> None:
    """Fill the chosen elements of out, which have these places in their draw."""
    at = np.flatnonzero(chosen)
    if not len(at):
        return
    if len(at) == len(out):
        out[:] = sample(draw, index, *parameters)
    else:
        out[at] = sample(draw, index[at], *[p[at] for p in parameters])


def by_rejection(propose: Proposal, draw: Draw, index: Array, *parameters: Array) -> Array:
    """Attempts until each element has been accepted: at all of them, then at those that are left of all together."""
    out, accepted = _attempted(propose, draw, 0, index, parameters)
    left, attempt = np.flatnonzero(~accepted), 1
    while len(left):
        found, accepted = _attempted(propose, draw, attempt, index[left], [p[left] for p in parameters])
        out[left[accepted]] = found[accepted]
        left, attempt = left[~accepted], attempt + 1
    return out


def _attempted(propose: Proposal, draw: Draw, attempt: int, index: Array,
               parameters: Sequence[Array]) -> tuple[Array, Array]:
    """Numbers that one attempt at each element proposes, and whether they are accepted; in pieces, too."""
    if len(index) <= PIECE:
        return propose(draw.words(index, attempt), *parameters)
    out, accepted = np.empty(len(index)), np.empty(len(index), np.bool_)
    for part in _pieces(len(index)):
        out[part], accepted[part] = propose(draw.words(index[part], attempt), *[p[part] for p in parameters])
    return out, accepted


def single_fraction(draw: Draw, index: Array) -> Array:
    """One fine fraction for each element, by the first two of its words."""
    words = draw.words(index)
    return fine_fraction(words[:, 0], words[:, 1])


def two_fractions(words: Array) -> tuple[Array, Array]:
    """Two fine fractions for each element, by all four of its words."""
    return fine_fraction(words[:, 0], words[:, 1]), fine_fraction(words[:, 2], words[:, 3])
