"""Unrolling of loops, so that nothing that a loop carries has to be copied.

A loop that computes `x = f(x)` reads one buffer and writes another; in the next round they have changed places.  NNC
unrolls such loops, so that in each copy of the body every value lies at a fixed place, and lets the first round read
what came from outside where it lies (its multi-view types I and II).  Here the rounds are played through with the
buffers as they move until their places repeat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Buffers: TypeAlias = dict[Any, Any]
"""The place of each role's value: a buffer of the loop's own, named by a role, or one from outside."""


@dataclass(slots=True)
class Roles:
    """The values that a body reads and writes, as the planner named them.

    `carried` are the roles that the carried values have when a round begins, `after` those they have when it ends.
    """

    carried: Sequence[Any]
    after: Sequence[Any]
    cycles: list[list[Any]] = field(default_factory=list)
    """Roles among which buffers move, in the order in which they do: the first role takes the last one's buffer."""

    def __post_init__(self) -> None:
        came_from = dict(zip(self.after, self.carried, strict=True))
        heads = [r for r in self.after if r not in set(self.carried)] + list(self.carried)
        seen: set[Any] = set()
        for head in heads:
            chain: list[Any] = []
            role = head
            while role is not None and role not in seen:
                seen.add(role)
                chain.append(role)
                role = came_from.get(role)
            if chain:
                self.cycles.append(chain)

    def cycle_of(self, role: Any) -> list[Any]:
        return next(c for c in self.cycles if role in c)

    def movable(self) -> set[Any]:
        return {r for c in self.cycles for r in c}

    def target(self, role: Any, state: Mapping[Any, Any]) -> Any:
        """The buffer that a command writes whose result has this role: the one it has, if the loop owns it."""
        cycle = self.cycle_of(role)
        if state.get(role) in cycle:
            return state[role]
        held = {state.get(r) for r in cycle}
        return next(b for b in cycle if b not in held)

    def next(self, state: Buffers, written: Sequence[Any]) -> Buffers:
        """The state after one round; `written` are the roles that commands of the body write."""
        inside = dict(state)
        for role in written:
            inside[role] = self.target(role, inside)
        return {c: inside[a] for c, a in zip(self.carried, self.after, strict=True)}


@dataclass(slots=True)
class Unrolling:
    """The states in which the body is written down: first those of `first`, then those of `again` for ever."""

    first: list[Buffers]
    again: list[Buffers]

    @property
    def copies(self) -> int:
        """The number of copies of the body besides one (NNC's unroll count)."""
        return len(self.again) - 1


def unroll(roles: Roles, start: Buffers, written: Sequence[Any], limit: int) -> Unrolling | None:
    """None if the places do not repeat within `limit` rounds."""
    states = [start]
    for _ in range(limit):
        after = roles.next(states[-1], written)
        if after in states:
            at = states.index(after)
            return Unrolling(states[:at], states[at:])
        states.append(after)
    return None


def state_after(unrolling: Unrolling, rounds: int) -> dict[Any, Any]:
    """The places of the carried values after so many rounds."""
    if rounds < len(unrolling.first):
        return unrolling.first[rounds]
    return unrolling.again[(rounds - len(unrolling.first)) % len(unrolling.again)]
