"""Trying orders, with values joined and apart, and taking the best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

from nnc_core.engine.groups import NodeGroup
from nnc_core.engine.scheduling.commands import Commands
from nnc_core.engine.scheduling.footprint import Footprint, Inside
from nnc_core.engine.scheduling.in_place_concat import Joins, find_joins
from nnc_core.engine.scheduling.lookahead import Lookahead
from nnc_core.engine.scheduling.orders import depth_first, freeing_soon, greedy
from nnc_core.engine.scheduling.problem import Order, Problem
from nnc_core.symbol import Node

STEPS = 1 << 14
"""Commands of all orders that are tried for one line together: large graphs get fewer tries."""
FEWEST_TRIES = 2
SEARCHED = 1 << 11
"""Commands that the search looks at."""
LARGEST_SEARCHED = 64
"""Commands of a line up to which they are searched: beyond, that many looks lead nowhere."""
TAKEN_APART = 8
"""Wholes that are taken apart one by one before all of them are."""
WORTH = 8
"""Not to copy what can be joined is worth one part in so many of the memory."""


class Arranged(NamedTuple):
    """The groups of one line in their order, what is joined in it, and the most bytes that live at once."""

    groups: list[NodeGroup]
    aliases: set[Node]
    """Those that are no commands, by what they give."""
    joins: Joins
    bound: int


@dataclass(frozen=True, slots=True, eq=False)
class OrderChoice:
    """An order, with what is joined in it, and what it costs."""

    bound: int
    order: Order
    footprint: Footprint


Maker: TypeAlias = Callable[[OrderChoice], "Order | None"]


def arrange(commands: Commands, inside: Inside) -> Arranged:
    """The best order that was found; that in which the commands are written if none is better."""
    apart = Footprint(commands, Joins(dict(commands.layouts)), inside)
    joins = find_joins(commands)
    ways = [apart, Footprint(commands, joins, inside)] if joins.whole else [apart]
    best, *joined = _best(ways, commands)
    if joined:
        best = _joined_if_cheap(commands, inside, joined[0], best)
    return Arranged(commands.in_order(best.order), commands.alias_nodes(), best.footprint.joins, best.bound)


def _best(ways: list[Footprint], commands: Commands) -> list[OrderChoice]:
    """The best order for each way to join values, of those that are tried; the last way is tried to be served best."""
    least = max([way.least() for way in ways])
    best = [OrderChoice(way.bound(commands.written), commands.written, way) for way in ways]
    tries = max(FEWEST_TRIES, STEPS // max(len(ways[0]), 1))
    if len(ways[0]) < 2 or max(choice.bound for choice in best) <= least:
        return best
    for make in _makers(ways[-1], commands)[:tries]:
        order = make(best[-1])
        if order is not None:
            found = [OrderChoice(way.bound(order), order, way) for way in ways]
            best = [min(pair, key=lambda choice: choice.bound) for pair in zip(best, found, strict=True)]
        if max(choice.bound for choice in best) <= least:
            break
    return best


def _makers(footprint: Footprint, commands: Commands) -> list[Maker]:
    """Ways to find an order, from the best that was found so far."""
    written = commands.written
    problem = Problem(footprint, commands.before, commands.users())
    turned = problem.turned()

    def from_ends(best: OrderChoice, *, shallow_first: bool) -> Order:
        order = depth_first(problem, written, shallow_first=shallow_first)
        return freeing_soon(problem, order, best.bound)

    def searched(best: OrderChoice) -> Order | None:
        few = len(footprint) <= LARGEST_SEARCHED
        return Lookahead(problem, best.bound, SEARCHED).order() if few else None

    return [  # of large graphs few are tried: what training steps gain most by comes first
        lambda best: greedy(problem, best.order),
        lambda best: freeing_soon(turned, best.order[::-1], best.bound)[::-1],
        partial(from_ends, shallow_first=True),
        lambda best: freeing_soon(problem, written, best.bound),
        lambda best: greedy(turned, best.order[::-1])[::-1],
        partial(from_ends, shallow_first=False),
        searched,
    ]


def _joined_if_cheap(commands: Commands, inside: Inside, joined: OrderChoice, apart: OrderChoice) -> OrderChoice:
    """As much joined as costs little: what is largest where most lives is taken apart first."""
    limit = apart.bound + apart.bound // WORTH
    if joined.bound <= limit:
        return joined
    refused: set[Node] = set()
    footprint = joined.footprint
    for _ in range(TAKEN_APART):
        profile = footprint.profile(apart.order)
        whole = _largest_whole(footprint, apart.order, profile.index(max(profile)))
        if whole is None:
            break
        refused.add(whole)
        joins = find_joins(commands, refused)
        if not joins.whole:
            break
        footprint = Footprint(commands, joins, inside)
        bound = footprint.bound(apart.order)
        if bound <= limit:
            return OrderChoice(bound, apart.order, footprint)
    return apart


def _largest_whole(footprint: Footprint, order: Order, at: int) -> Node | None:
    """The largest value that others are joined in and that lives at a place of the order."""
    first, last, free = footprint.lives(order)
    found = [(footprint.sizes[b], -b, whole) for whole, b in footprint.wholes() if not free[b]
             and first[b] <= at <= last[b]]
    return max(found, key=lambda item: item[:2])[2] if found else None
