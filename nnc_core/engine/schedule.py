"""The order in which a graph's commands run, and those of each body in it by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nnc_core.engine.body_copies import BodyCopies, results_of_bodies
from nnc_core.engine.decide import Decider
from nnc_core.engine.failing import may_fail
from nnc_core.engine.fusion import fuse
from nnc_core.engine.groups import NodeGroup
from nnc_core.engine.program_tree import BranchesItem, CommandItem, Item, LoopItem, ProgramTree
from nnc_core.engine.scheduling import Arranged, arrange
from nnc_core.engine.scheduling.commands import Commands
from nnc_core.engine.scheduling.in_place_concat import Joins
from nnc_core.operator.control import CASE_OF
from nnc_core.operator.host import CALLBACK
from nnc_core.symbol import Node, in_sequence


class Scheduler:
    """Makes the tree of one program.

    Inputs come first, updates after every other reader of what they overwrite and after what may fail, and what has
    effects in the order written; among such orders one that keeps little memory alive is found, unless it is to be
    `as_written`.
    """

    def __init__(self, decider: Decider, *, as_written: bool = False) -> None:
        self.decider, self.as_written = decider, as_written
        self.joins, self.aliases = Joins(), set[Node]()
        self._items: dict[Node, LoopItem | BranchesItem] = {}
        """Loops and branches, by what they give."""
        self._inside: dict[Node, int] = {}
        """Bytes that live in the bodies of each."""
        self._effectful: set[Node] = set()
        self._failing: set[Node] = set()
        """Loops and branches in which a command may fail."""

    def tree(self, groups: Sequence[NodeGroup], outputs: Sequence[Node], updates: Mapping[Node, Node]) -> ProgramTree:
        """`groups` come inputs first.  `updates`: output -> the input whose memory it should take."""
        copies = BodyCopies(group.node for group in groups)
        groups = [copies.own(group) if group.op.bodies else group for group in groups]
        self._arrange_bodies(groups, copies)
        items, bound = self._arrange(groups, outputs, updates)
        return ProgramTree(items, self.joins, self.aliases, bound)

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
            arranged = [self._arrange(inside, results, {}) for results, inside in bodies]
            self._items[group.node] = _item(group, [items for items, _ in arranged], [results for results, _ in bodies])
            self._inside[group.node] = max([bound for _, bound in arranged], default=0)
            if any(g.op is CALLBACK or g.node in self._effectful for _, inside in bodies for g in inside):
                self._effectful.add(group.node)
            if any(may_fail(g, self.decider.device) or g.node in self._failing for _, inside in bodies for g in inside):
                self._failing.add(group.node)

    def _groups(self, results: Sequence[Node], copies: BodyCopies) -> list[NodeGroup]:
        groups = fuse(in_sequence(results), results, self.decider)
        return [copies.own(group) if group.op.bodies else group for group in groups]

    def _arrange(self, groups: Sequence[NodeGroup], outputs: Sequence[Node],
                 updates: Mapping[Node, Node]) -> tuple[list[Item], int]:
        """The items of one line in their order, and the bytes that live in it."""
        commands = Commands(groups, outputs, updates, self.decider, self._effectful, self._failing)
        if self.as_written:
            found = Arranged(commands.in_order(commands.written), commands.alias_nodes(), Joins(commands.layouts), 0)
        else:
            found = arrange(commands, lambda group: self._inside[group.node])
        self.joins.add(found.joins)
        self.aliases |= found.aliases
        return [self._items.get(group.node) or CommandItem(group) for group in found.groups], found.bound


def _item(group: NodeGroup, parts: list[list[Item]], results: list[list[Node]]) -> LoopItem | BranchesItem:
    """A loop, whose condition comes first if it has one, or branches."""
    if group.op is CASE_OF:
        return BranchesItem(group, parts, results)
    *conds, body = zip(parts, results, strict=True)
    cond, (test,) = conds[0] if conds else ([], (None,))
    return LoopItem(group, cond, test, *body)
