"""The commands of a graph and of the bodies in it on one line: each has a position, each value a last use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from nnc_core.device import Device
from nnc_core.engine.fuse import COPY, LEAVES, Group, fuse, is_number
from nnc_core.operator.control import CASE_OF, LOOP, PICK
from nnc_core.symbol import Body, Node, in_sequence
from nnc_core.type import TupleSpec

FOREVER = 1 << 60


@dataclass(slots=True, eq=False)
class CommandItem:
    """One command."""

    group: Group
    begin: int
    end: int


@dataclass(slots=True, eq=False)
class LoopItem:
    """A loop, with the commands of its condition and of its body between its begin and its end."""

    group: Group
    begin: int
    cond: list[Item]
    test: Node | None
    body: list[Item]
    results: list[Node]
    """What the body carries on and stacks up; each has memory of its own, or is another carried value as it was."""
    end: int = 0


@dataclass(slots=True, eq=False)
class BranchesItem:
    """Branches, one after another; each result has memory of its own."""

    group: Group
    begin: int
    arms: list[list[Item]]
    results: list[list[Node]]
    end: int = 0


Item: TypeAlias = CommandItem | LoopItem | BranchesItem


class _Line:
    def __init__(self, device: Device) -> None:
        self.device, self.position = device, 0

    def next(self) -> int:
        self.position += 1
        return self.position - 1

    def items(self, groups: Sequence[Group]) -> list[Item]:
        return [self.item(g) for g in groups]

    def item(self, group: Group) -> Item:
        at = self.next()
        if group.op is LOOP:
            cond, body, _, carried, *_ = group.attributes
            loop = LoopItem(group, at, [], None, [], [])
            if cond is not None:
                loop.cond, (loop.test,) = self._inside(own_results(cond.outputs))
            loop.body, loop.results = self._inside(own_results(body.outputs, set(body.inputs[:carried]), carried))
            loop.end = self.next()
            return loop
        if group.op is CASE_OF:
            arms = [self._inside(own_results(branch.outputs)) for branch in group.attributes[0]]
            return BranchesItem(group, at, [a for a, _ in arms], [r for _, r in arms], self.next())
        return CommandItem(group, at, at)

    def _inside(self, results: list[Node]) -> tuple[list[Item], list[Node]]:
        return self.items(fuse(in_sequence(results), results, self.device)), results


def in_line(groups: Sequence[Group], device: Device) -> list[Item]:
    """Items with positions counted through all bodies."""
    return _Line(device).items(groups)


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


def last_uses(items: Sequence[Item], outputs: set[Node]) -> dict[Node, int]:
    """The position of each value's last use, its aliases' uses included.  What a loop reads from around it is used
    until its end; outputs, and the results of bodies, are used for ever."""
    line = list(walk(items))
    last: dict[Node, int] = {}
    for item in line:
        last.setdefault(item.group.node, item.end)
        for x in item.group.inputs:
            last[x] = max(last.get(x, -1), item.end)
        if isinstance(item, LoopItem):
            last |= dict.fromkeys(item.results, FOREVER)
            if item.test is not None:
                last[item.test] = item.end
        elif isinstance(item, BranchesItem):
            last |= dict.fromkeys([y for arm in item.results for y in arm], FOREVER)
    for item in reversed(line):
        group = item.group
        if group.op.view is not None or isinstance(group.inputs[0].spec if group.inputs else None, TupleSpec):
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
        for attribute in item.group.attributes if item.group.op.bodies else ():
            for body in attribute if isinstance(attribute, tuple) else (attribute,):
                inside.update(body.inputs if isinstance(body, Body) else ())
        for x in (*item.group.inputs, *results):
            if x.op in LEAVES or is_number(x):
                found[x] = None
    return [x for x in found if x not in inside]
