"""Small draws that are sampled by rejection or by counting, ahead: of those that follow one another with the same
parameters, many take hardly longer than one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nnc_core.base.cache import LRU
from nnc_core.operator.sampling import Draws, Tools
from nnc_cpu.memory import Array
from nnc_cpu.random import AHEAD

FEW = 64
"""Elements of a draw that is sampled with those that follow it."""
REPEATED = 4
"""Draws with the same parameters, one after the other, before the next ones are sampled ahead."""
PAGES = 16


class SampledAhead:
    """The eager kernel of a distribution: `sample` takes a key, as many parameters as `operands`, attributes and
    tools, and gives elements that depend on their place, their own parameters and the key alone."""

    def __init__(self, sample: Callable[..., Array], operands: int, tools: Tools,
                 spread: Callable[..., list[Array]]) -> None:
        self.sample, self.operands, self.tools, self.spread = sample, operands, tools, spread
        self._pages: LRU[Any, Array] = LRU(PAGES)
        self._latest: tuple[Any, int, int] = (None, 0, 0)
        """Seed, attributes and parameters of the latest draw, its number, and how many were like it before."""

    def __call__(self, key: Array, *arguments: Any) -> Array:
        parameters = arguments[: self.operands]
        if max([x.size for x in parameters]) > FEW:
            return self.sample(key, *arguments, self.tools)
        seed, number = key.tolist()
        attributes = arguments[self.operands :]
        kind = (seed, attributes, *[(x.shape, x.dtype, x.tobytes()) for x in parameters])
        before, latest, alike = self._latest
        alike = alike + 1 if kind == before and latest < number <= latest + AHEAD else 0
        self._latest = kind, number, alike
        if alike < REPEATED:
            return self.sample(key, *arguments, self.tools)
        first, place = number - number % AHEAD, number % AHEAD
        page: Array = self._pages.find((first, kind), partial(self._page, seed, first, parameters, attributes))
        return np.array(page[place])

    def _page(self, seed: int, first: int, parameters: tuple[Array, ...], attributes: tuple[Any, ...]) -> Array:
        """(draws, elements ...): the draws from a number on."""
        spread = self.spread(*parameters)
        draws = Draws(seed, first, spread[-1].size, self.tools)
        many = [np.broadcast_to(x, (AHEAD, *x.shape)) for x in spread]
        return self.sample(draws, *many, *attributes, self.tools)


def together(*parameters: Array) -> list[Array]:
    """Parameters of the same elements."""
    return [*np.broadcast_arrays(*parameters)]


def by_rows(count: Array, probabilities: Array) -> list[Array]:
    """A count for each row of probabilities."""
    return [np.broadcast_to(count, probabilities.shape[:-1]), probabilities]
