"""Orders of commands that keep little memory alive, each found in about as many steps as there are uses of values."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from nnc_core.engine.scheduling.problem import Frontier, Order, Problem


def freeing_soon(problem: Problem, base: Sequence[int], limit: int) -> Order:
    """`base`, but that what frees at least as much as it begins comes as early as it can: gradients go into their
    updates at once.  Not where more than `limit` bytes would live."""
    frontier, place, found = Frontier(problem), _places(base), []
    waiting: list[tuple[int, int]] = []

    def run(n: int) -> None:
        found.append(n)
        for m in frontier.run(n):
            if frontier.change(m) <= 0:
                heappush(waiting, (place[m], m))

    for n in frontier.ready():
        if frontier.change(n) <= 0:
            heappush(waiting, (place[n], n))
    for n in base:
        while waiting:
            _, m = heappop(waiting)
            if not frontier.done[m] and frontier.needs(m) <= limit:
                run(m)
        if not frontier.done[n]:
            run(n)
    return found


def greedy(problem: Problem, base: Sequence[int]) -> Order:
    """Always the command that leaves least alive; of equals the first of `base`."""
    frontier, place, found = Frontier(problem), _places(base), []
    choices = [(frontier.change(n), place[n], n) for n in frontier.ready()]
    choices.sort()
    while choices:
        change, at, n = heappop(choices)
        if frontier.done[n]:
            continue
        now = frontier.change(n)
        if now != change:
            heappush(choices, (now, at, n))
            continue
        found.append(n)
        for m in frontier.run(n):
            heappush(choices, (frontier.change(m), place[m], m))
    return found


def depth_first(problem: Problem, base: Sequence[int], *, shallow_first: bool) -> Order:
    """Order commands by what the last ones need, one after the other; of what a command needs first that for which most
    memory is needed on the way and little kept: the order that is best for trees (Sethi and Ullman), by bytes.

    shallow_first: the last commands by the length of the way to them, not as in `base`.
    """
    place = _places(base)
    children, depth = _by_need(problem, base, place)
    ends = [n for n in base if not problem.users[n]]
    if shallow_first:
        ends.sort(key=lambda n: (depth[n], place[n]))
    found: Order = []
    entered = [False] * len(problem)
    pending = list(reversed(ends))
    while pending:
        n = pending.pop()
        if n < 0:
            found.append(~n)
        elif not entered[n]:
            entered[n] = True
            pending.append(~n)
            pending += [m for m in reversed(children[n]) if not entered[m]]
    return found


def _by_need(problem: Problem, base: Sequence[int], place: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """The commands that each one waits for in the best order if nothing else needed it, and the length of its way."""
    count = len(problem)
    need, kept, depth = [0] * count, [0] * count, [0] * count
    children: list[list[int]] = [[] for _ in range(count)]
    footprint = problem.footprint
    for n in base:
        mine = sorted(problem.before[n], key=lambda m: (kept[m] - need[m], place[m]))
        held = peak = 0
        for m in mine:
            peak = max(peak, held + need[m])
            held += kept[m]
            depth[n] = max(depth[n], depth[m] + 1)
        kept[n] = sum([problem.sizes[footprint.block[v]] for v in footprint.makes[n]])
        need[n] = max(peak, held + kept[n] + problem.scratch[n])
        children[n] = mine
    return children, depth


def _places(order: Sequence[int]) -> list[int]:
    place = [0] * len(order)
    for at, n in enumerate(order):
        place[n] = at
    return place
