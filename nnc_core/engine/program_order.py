"""The commands of a graph and of the bodies in it on one line: each has a position, each value a last use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from nnc_core.engine.fuse import COPY, LEAVES, NodeGroup, is_number
from nnc_core.engine.scheduling.in_place_concat import Joins
from nnc_core.operator.control import CASE_OF, LOOP, PICK, LoopAttributes
from nnc_core.symbol import Node, bodies_in

if TYPE_CHECKING:
    from nnc_core.engine.schedule import Scheduler
    from nnc_core.engine.scheduling import Arranged

FOREVER = 1 << 60


@dataclass(slots=True, eq=False)
class CommandItem:
    """One command."""

    group: NodeGroup
    begin: int
    end: int


@dataclass(slots=True, eq=False)
class LoopItem:
    """A loop, with the commands of its condition and of its body between its begin and its end."""

    group: NodeGroup
    begin: int
    cond: list[Item]
    test: Node | None
    body: list[Item]
    results: list[Node]
    """Values carried on and stacked up; each has memory of its own, or is another carried value as it was."""
    end: int = 0


@dataclass(slots=True, eq=False)
class BranchesItem:
    """Branches, one after another; each result has memory of its own."""

    group: NodeGroup
    begin: int
    arms: list[list[Item]]
    results: list[list[Node]]
    end: int = 0


Item: TypeAlias = CommandItem | LoopItem | BranchesItem


@dataclass(slots=True)
class ProgramOrder:
    """Items with positions counted through all bodies, and what is joined and what is no command in all of them."""

    items: list[Item]
    joins: Joins
    aliases: set[Node]
    """Views that need no command, and picked results."""


class _Positions:
    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler, self.position = scheduler, 0
        self.joins, self.aliases = Joins(), set[Node]()

    def next(self) -> int:
        self.position += 1
        return self.position - 1

    def items(self, arranged: Arranged) -> list[Item]:
        self.joins.add(arranged.joins)
        self.aliases |= arranged.aliases
        return [self.item(g) for g in arranged.groups]

    def item(self, group: NodeGroup) -> Item:
        at = self.next()
        if group.op is LOOP:
            loop = LoopItem(group, at, [], None, [], [])
            *conds, body = self.scheduler.inner(group)
            for cond in conds:
                loop.cond, (loop.test,) = self.items(cond.arranged), cond.results
            loop.body, loop.results = self.items(body.arranged), body.results
            loop.end = self.next()
            return loop
        if group.op is CASE_OF:
            inner = self.scheduler.inner(group)
            return BranchesItem(group, at, [self.items(arm.arranged) for arm in inner],
                                [arm.results for arm in inner], self.next())
        return CommandItem(group, at, at)


def in_program_order(arranged: Arranged, scheduler: Scheduler) -> ProgramOrder:
    """Groups in their order, with their bodies as the scheduler arranged them."""
    positions = _Positions(scheduler)
    return ProgramOrder(positions.items(arranged), positions.joins, positions.aliases)


def results_of_bodies(group: NodeGroup) -> list[list[Node]]:
    """The results of the condition, if there is one, and of the body of a loop, or of branches, each with memory of
    its own."""
    if group.op is CASE_OF:
        return [own_results(branch.outputs) for branch in group.attributes[0]]
    loop = LoopAttributes.of(group)
    conds = [] if loop.cond is None else [own_results(loop.cond.outputs)]
    return [*conds, own_results(loop.body.outputs, set(loop.carried), loop.carried_count)]


def own_results(nodes: Sequence[Node], movable: set[Node] | frozenset[Node] = frozenset(),
                carried: int = 0) -> list[Node]:
    """Results of a body, copied where they are views, inputs, constants or twice the same; the first `carried` may be
    `movable` values as they are, each once: a pointer moves instead."""
    taken: set[Node] = set()
    results = []
    for i, node in enumerate(nodes):
        computed = node.op not in LEAVES and node.op.view is None and node.op is not PICK and not is_number(node)
        if (computed or (i < carried and node in movable)) and node not in taken:
            results.append(node)
        else:
            results.append(Node(COPY, (node,), (), node.spec, node.line))
        taken.add(results[-1])
    return results


def walk(items: Sequence[Item]) -> Iterator[Item]:
    """All items, those inside others after them."""
    for item in items:
        yield item
        if isinstance(item, LoopItem):
            yield from walk(item.cond)
            yield from walk(item.body)
        elif isinstance(item, BranchesItem):
            for arm in item.arms:
                yield from walk(arm)


def last_reads(items: Sequence[Item]) -> dict[Node, int]:
    """The position of the last item that reads each value itself, views of it not counted.  What a loop reads from
    around it is read until its end; the results of bodies are for ever."""
    last: dict[Node, int] = {}
    for item in walk(items):
        last.setdefault(item.group.node, item.end)
        for x in item.group.inputs:
            last[x] = max(last.get(x, -1), item.end)
        if isinstance(item, LoopItem):
            last |= dict.fromkeys(item.results, FOREVER)
            if item.test is not None:
                last[item.test] = item.end
        elif isinstance(item, BranchesItem):
            last |= dict.fromkeys([y for arm in item.results for y in arm], FOREVER)
    return last


def last_uses(line: ProgramOrder, outputs: set[Node]) -> dict[Node, int]:
    """The position of each value's last use, its aliases' uses included; outputs are used for ever."""
    last = last_reads(line.items)
    for item in reversed(list(walk(line.items))):
        group = item.group
        if group.node in line.aliases:
            x = group.inputs[0]
            last[x] = max(last[x], last[group.node])
    return last | dict.fromkeys(outputs, FOREVER)


def leaves_of(items: Sequence[Item]) -> list[Node]:
    """Inputs, constants and numbers that the commands read, each once, in order of first use; no inputs of bodies."""
    found: dict[Node, None] = {}
    inside: set[Node] = set()
    for item in walk(items):
        results: list[Node] = []
        if isinstance(item, LoopItem):
            results = [*item.results, *([item.test] if item.test is not None else [])]
        elif isinstance(item, BranchesItem):
            results = [y for arm in item.results for y in arm]
        for body in bodies_in(item.group.attributes) if item.group.op.bodies else ():
            inside.update(body.inputs)
        for x in (*item.group.inputs, *results):
            if x.op in LEAVES or is_number(x):
                found[x] = None
    return [x for x in found if x not in inside]
