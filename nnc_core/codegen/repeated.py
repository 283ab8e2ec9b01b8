"""Values that a stage would compute again: what an earlier stage has computed at the same inner points is kept instead.

A softmax takes the exponential of each element for the sum, and again for the quotient.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from nnc_core.base.dtype import boolean
from nnc_core.base.loopnest import Access, Instruction, LoopNest, Stage

ROOM = 1 << 15
"""Bytes that may be kept of a value."""
WORTH = 8
"""Instructions that are worth a store and a load."""


EFFECTS = ("store", "note")
"""Instructions that nothing stands for."""


class RepeatedValues(NamedTuple):
    """Values that are kept, and those that are left out for it, by number."""

    sources: dict[int, int]
    """Of a value that is read: the equal one, which is kept where it is computed."""
    needless: frozenset[int]
    """Values that nothing asks for any more."""

    @property
    def numbers(self) -> frozenset[int]:
        """All of these values."""
        return self.needless.union(self.sources, self.sources.values())


NOTHING_REPEATED = RepeatedValues({}, frozenset())


def repeated_values(nest: LoopNest, lanes: int) -> RepeatedValues:
    """The values worth keeping, if a stage goes through `lanes` points at each of its own."""
    inner = [stage.axes for stage in nest.stages if prod(stage.axes) > 1]
    if len(set(inner)) == len(inner):
        return NOTHING_REPEATED
    walk = _Walk(nest)
    sources, needless, number = dict[int, int](), set[int](), 0
    for stage in nest.stages:
        found = walk.stage(stage, number) if prod(stage.axes) > 1 else walk.plain(stage, number)
        fits = {n: source for n, source in found.items() if source not in needless and walk.dtypes[n] != boolean
                and prod(stage.axes) * lanes * walk.dtypes[n].itemsize <= ROOM}
        asked = _asked_for(stage, number, fits)
        sources |= {n: source for n, source in fits.items() if n in asked}
        needless |= set(range(number, number + len(stage.body))) - asked if fits else set()
        number += stage.values
    return RepeatedValues(sources, frozenset(needless))


class _Walk:
    """Goes through a nest and tells which values are equal to earlier ones."""

    def __init__(self, nest: LoopNest) -> None:
        self.written = {i.access.argument for stage in nest.stages for i in stage.instructions
                        if i.operation == "store" and i.access}
        self.dtypes = nest.dtypes
        self.same: dict[int, int] = {}
        self.work: dict[int, int] = {}
        self.known: dict[object, int] = {}

    def plain(self, stage: Stage, first: int) -> dict[int, int]:
        """A stage whose values are all its own."""
        for n in range(first, first + stage.values):
            self.same[n], self.work[n] = n, 0
        return {}

    def stage(self, stage: Stage, first: int) -> dict[int, int]:
        """The values of a body that are worth reading, and which they are equal to."""
        self.plain(stage, first)
        found = dict[int, int]()
        for n, i in enumerate(stage.body, first):
            self.work[n] = min(WORTH, sum([self.work[x] for x in i.operands], int(bool(i.operands))))
            if i.operation in EFFECTS or (i.access is not None and i.access.argument in self.written):
                continue
            self.same[n] = self.known.setdefault((stage.axes, self._structure(i)), n)
            if self.same[n] < first and self.work[n] >= WORTH:
                found[n] = self.same[n]
        return found

    def _structure(self, i: Instruction) -> object:
        return Instruction(i.operation, i.dtype, tuple([self.same[x] for x in i.operands]), i.literal, i.axis,
                           i.access and self._access(i.access))

    def _access(self, access: Access) -> Access:
        return access._replace(subscripts=tuple([
            s if s.gather is None else s._replace(gather=self.same[s.gather]) for s in access.subscripts]))


def _asked_for(stage: Stage, first: int, read: dict[int, int]) -> set[int]:
    """The values of a body that are needed if some are read."""
    after = {x for reduction in stage.reductions for x in reduction.operands}
    after.update([x for i in stage.running for x in _operands(i)])
    asked = set[int]()
    for n in reversed(range(first, first + len(stage.body))):
        i = stage.body[n - first]
        if i.operation in EFFECTS or n in after or n in asked:
            asked.add(n)
            if n not in read:
                asked.update(_operands(i))
    return {n for n in asked if n >= first}


def _operands(i: Instruction) -> list[int]:
    gathers = [] if i.access is None else [s.gather for s in i.access.subscripts if s.gather is not None]
    return [*i.operands, *gathers]
