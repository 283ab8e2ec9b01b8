"""The order in which a graph's commands run, and those of each body in it by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nnc_core.engine.body_copies import BodyCopies
from nnc_core.engine.decide import Decider
from nnc_core.engine.failing import may_fail
from nnc_core.engine.fuse import NodeGroup, fuse
from nnc_core.engine.program_order import results_of_bodies
from nnc_core.engine.scheduling import Arranged, arrange
from nnc_core.engine.scheduling.commands import Commands
from nnc_core.engine.scheduling.in_place_concat import Joins
from nnc_core.operator.host import CALLBACK
from nnc_core.symbol import Node, in_sequence


class Inner(NamedTuple):
    """A body: its results, each with memory of its own, and its commands in their order."""

    results: list[Node]
    arranged: Arranged


class Scheduler:
    """Inputs come first, updates after every other reader of what they overwrite and after what may fail, and what has
    effects in the order written; among such orders one that keeps little memory alive is found, unless it is to be
    `as_written`."""

    def __init__(self, decider: Decider, *, as_written: bool = False) -> None:
        self.decider, self.as_written = decider, as_written
        self._inner: dict[Node, list[Inner]] = {}
        self._effectful: set[Node] = set()
        self._failing: set[Node] = set()
        """Loops and branches in which a command may fail."""

    def arrange(self, groups: Sequence[NodeGroup], outputs: Sequence[Node], updates: Mapping[Node, Node]) -> Arranged:
        """`groups` come inputs first.  `updates`: output -> the input whose memory it should take."""
        copies = BodyCopies(group.node for group in groups)
        groups = [copies.own(group) if group.op.bodies else group for group in groups]
        self._arrange_bodies(groups, copies)
        return self._arrange(groups, outputs, updates)

    def inner(self, group: NodeGroup) -> list[Inner]:
        """The bodies of a loop (a condition first) or of branches."""
        return self._inner[group.node]

    def _arrange_bodies(self, groups: Sequence[NodeGroup], copies: BodyCopies) -> None:
        """Inner ones first, however deep they are."""
        found: list[tuple[NodeGroup, list[tuple[list[Node], list[NodeGroup]]]]] = []
        pending = [group for group in groups if group.op.bodies]
        while pending:
            group = pending.pop()
            bodies = [(results, self._groups(results, copies)) for results in results_of_bodies(group)]
            found.append((group, bodies))
            pending += [g for _, inside in bodies for g in inside if g.op.bodies]
        for group, bodies in reversed(found):
            self._inner[group.node] = [Inner(results, self._arrange(inside, results, {})) for results, inside in bodies]
            if any(g.op is CALLBACK or g.node in self._effectful for _, inside in bodies for g in inside):
                self._effectful.add(group.node)
            if any(may_fail(g) or g.node in self._failing for _, inside in bodies for g in inside):
                self._failing.add(group.node)

    def _groups(self, results: Sequence[Node], copies: BodyCopies) -> list[NodeGroup]:
        groups = fuse(in_sequence(results), results, self.decider.device)
        return [copies.own(group) if group.op.bodies else group for group in groups]

    def _arrange(self, groups: Sequence[NodeGroup], outputs: Sequence[Node], updates: Mapping[Node, Node]) -> Arranged:
        commands = Commands(groups, outputs, updates, self.decider, self._effectful, self._failing)
        if self.as_written:
            return Arranged(commands.in_order(commands.written), commands.alias_nodes(), Joins(commands.layouts), 0)
        return arrange(commands, self._bytes_inside)

    def _bytes_inside(self, group: NodeGroup) -> int:
        return max([inner.arranged.bound for inner in self.inner(group)], default=0)
