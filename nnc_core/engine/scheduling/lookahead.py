"""The best order of few commands: a search through what may have run, the cheapest first, for so many steps."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from nnc_core.engine.scheduling.problem import Order, Problem


class State(NamedTuple):
    """The commands that have run, as bits, and their cost: ordered by the most that has lived, then by what is left."""

    peak: int
    left: int
    live: int
    number: int
    """The number of the state: no two are alike, so that nothing behind it is compared."""
    done: int
    ready: tuple[int, ...]
    last: tuple[int, ...]
    """Commands run since the state before."""
    came: State | None


class Lookahead:
    """Searches for an order below a limit; gives up after `steps` commands looked at."""

    def __init__(self, problem: Problem, limit: int, steps: int) -> None:
        self.problem, self.limit, self.steps = problem, limit, steps
        self.before = [_bits(needed) for needed in problem.before]
        users: list[list[int]] = [[] for _ in problem.sizes]
        for n, uses in enumerate(problem.uses):
            for b, _ in uses:
                users[b].append(n)
        self.users_of = [_bits(found) for found in users]
        self._numbers = count()

    def order(self) -> Order | None:
        """The order whose most is least, if it is below the limit and was found in time."""
        total = len(self.problem)
        ready = tuple([n for n, needed in enumerate(self.before) if not needed])
        states = [self._settled(State(0, total, 0, 0, 0, ready, (), None))]
        known: set[int] = set()
        while states and self.steps > 0:
            state = heappop(states)
            if not state.left:
                return _path(state)
            if state.done in known:
                continue
            known.add(state.done)
            for n in state.ready:
                after = self._after(state, n)
                if after is not None and after.done not in known:
                    heappush(states, self._settled(after))
        return None

    def _after(self, state: State, n: int) -> State | None:
        """The state when a command has run, if it stays below the limit."""
        change, needed = self._cost(state, n)
        peak = max(state.peak, state.live + needed)
        if peak >= self.limit:
            return None
        done = state.done | 1 << n
        ready = [m for m in state.ready if m != n]
        ready += [m for m in self.problem.users[n] if not self.before[m] & ~done]
        return State(peak, state.left - 1, state.live + change, next(self._numbers), done, tuple(ready), (n,), state)

    def _settled(self, state: State) -> State:
        """With all that cannot harm: what frees at least as much as it begins, and needs no more than has lived."""
        while True:
            for n in state.ready:
                change, needed = self._cost(state, n)
                if change <= 0 and state.live + needed <= state.peak:
                    break
            else:
                return state
            after = self._after(state, n)
            if after is None:
                return state
            state = after._replace(last=(*state.last, n), came=state.came)
            if self.steps <= 0:
                return state

    def _cost(self, state: State, n: int) -> tuple[int, int]:
        """The change of the living bytes, and how many more there are meanwhile."""
        self.steps -= 1
        p, f, begun, freed = self.problem, self.problem.footprint, 0, 0
        done, rest = state.done, ~(state.done | 1 << n)
        for b, _ in p.uses[n]:
            users = self.users_of[b]
            if not users & done:
                begun += p.sizes[b]
            if not users & rest:
                freed += p.sizes[b]
        in_place = any(not self.users_of[f.block[v]] & rest for v in f.takes[n])
        return begun - freed, p.scratch[n] + (0 if in_place else begun)


def _bits(numbers: Iterable[int]) -> int:
    found = 0
    for n in numbers:
        found |= 1 << n
    return found


def _path(state: State) -> Order:
    parts = []
    at: State | None = state
    while at is not None:
        parts.append(at.last)
        at = at.came
    return [n for part in reversed(parts) for n in part]
