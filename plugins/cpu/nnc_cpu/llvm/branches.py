"""Work that no lane may need: what stands behind `select` alone, where it is much, is computed if a lane asks for it.

Each lane gets what it would get anyway.  Sines of large angles, or the functions of gamma below 0, take several times
as long as the others, and are rare.  Where the other choice is a number or what was given, as at infinity, that is the
rare one, and there is no branch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from nnc_core.base.loopnest import Instruction, LoopNest, Stage

MUCH = 38
"""Instructions that take longer than a branch that is predicted wrongly."""


class Branch(NamedTuple):
    """Instructions of a stage's body, by number, that are for `select` instructions with one condition alone."""

    condition: int
    wanted: bool
    """What the condition is in the lanes that need them."""
    before: int
    """The instruction in front of which they are computed: the first of those that select."""
    members: frozenset[int]
    results: tuple[int, ...]
    """The members that are selected."""


class Branches:
    """The branches of a stage, some within others."""

    def __init__(self, found: Sequence[Branch]) -> None:
        self.found = sorted(found, key=lambda branch: len(branch.members))
        self._homes = {number: branch for branch in reversed(self.found) for number in branch.members}

    def home(self, number: int) -> Branch | None:
        """The innermost branch that an instruction is in."""
        return self._homes.get(number)

    def before(self, number: int) -> list[Branch]:
        """The branches in front of an instruction, directly in the branch that it is in."""
        return self._before.get(number, [])

    @cached_property
    def _before(self) -> dict[int, list[Branch]]:
        places: dict[int, list[Branch]] = {}
        for branch in self.found:
            places.setdefault(branch.before, []).append(branch)
        return places


def branches(nest: LoopNest, stage: Stage, first: int, apart: Collection[int] = ()) -> Branches:
    """The branches of a stage whose body's first value has the number `first`; without the instructions `apart`."""
    found: list[Branch] = []
    if len(stage.body) > MUCH:
        candidates = [c for c in _candidates(stage, first, readers_of(nest)) if c.members.isdisjoint(apart)]
        for one in sorted(candidates, key=lambda branch: -len(branch.members)):
            if all([one.members < other.members or one.members.isdisjoint(other.members) for other in found]):
                found.append(one)
    return Branches(found)


def _candidates(stage: Stage, first: int, readers: Mapping[int, Sequence[int]]) -> Iterable[Branch]:
    selects: dict[tuple[int, bool], list[int]] = {}
    for number, instruction in enumerate(stage.body, first):
        if instruction.operation == "select":
            condition, true, false = instruction.operands
            for wanted, operand in ((True, true), (False, false)):
                other = stage.body[place] if (place := (false if wanted else true) - first) >= 0 else None
                if operand != condition and other is not None and _is_arithmetic(other):
                    selects.setdefault((condition, wanted), []).append(number)
    for (condition, wanted), numbers in selects.items():
        place = 1 if wanted else 2
        members = _members(stage.body, first, {(n, stage.body[n - first].operands[place]) for n in numbers}, readers,
                           numbers[0])
        if len(members) >= MUCH:
            results = dict.fromkeys([stage.body[n - first].operands[place] for n in numbers])
            yield Branch(condition, wanted, numbers[0], members, tuple([n for n in results if n in members]))


def _members(body: Sequence[Instruction], first: int, uses: set[tuple[int, int]],
             readers: Mapping[int, Sequence[int]], before: int) -> frozenset[int]:
    """The instructions in front of another one whose values are read by each other and in these uses alone, which are
    pairs of a reader and what it reads."""
    members: set[int] = set()
    for number in range(before - 1, first - 1, -1):
        if _is_arithmetic(body[number - first]) and number in readers and all(
                [reader in members or (reader, number) in uses for reader in readers[number]]):
            members.add(number)
    return frozenset(members)


def _is_arithmetic(instruction: Instruction) -> bool:
    return instruction.access is None and instruction.operation not in ("constant", "axis")


def readers_of(nest: LoopNest) -> dict[int, list[int]]:
    """Numbers of what reads each value."""
    readers: dict[int, list[int]] = {}
    first = 0
    for stage in nest.stages:
        running = first + len(stage.body) + len(stage.reductions)
        for begin, part in ((first, stage.body), (running, stage.running)):
            for number, instruction in enumerate(part, begin):
                gathers = [] if instruction.access is None else [s.gather for s in instruction.access.subscripts]
                for operand in (*instruction.operands, *gathers):
                    if operand is not None:
                        readers.setdefault(operand, []).append(number)
        for number, reduction in enumerate(stage.reductions, first + len(stage.body)):
            for operand in reduction.operands:
                readers.setdefault(operand, []).append(number)
        first += stage.values
    return readers
