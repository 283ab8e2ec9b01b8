"""The tree of a program: commands, loops and branches.  The scheduler makes it, the planner fills it in, records are
written from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from nnc_core.base.command import Command
from nnc_core.engine.decide import Decision
from nnc_core.engine.groups import NodeGroup
from nnc_core.engine.scheduling.in_place_concat import Joins
from nnc_core.engine.storage import Rows, Storage
from nnc_core.engine.unrolling import Roles, Unrolling
from nnc_core.operator.control import LoopAttributes
from nnc_core.symbol import Node


@dataclass(slots=True, eq=False)
class PlannedCommand:
    """A scheduled command with the decision about its code."""

    at: int
    group: NodeGroup
    decision: Decision
    reads: tuple[Storage, ...] = ()
    writes: tuple[Storage, ...] = ()
    workspace: Storage | None = None
    note: str = ""
    depth: int = 0
    """The number of loops and branches around it."""

    @property
    def command(self) -> Command:
        return self.decision.command

    @property
    def text(self) -> str:
        """The command as users read it: with the operators that it runs, if those are several."""
        return self.group.label + str(self.command).removeprefix(self.command.name)


@dataclass(slots=True, eq=False)
class LoopPlan:
    """The memory among which a loop's values move."""

    test: Storage | None
    """The storage of the condition's result."""
    roles: Roles
    start: dict[Storage, Storage]
    """The storages of the carried values before the first round."""
    unrolling: Unrolling | None
    """None: the body is written once, and pointers rotate after each round."""
    finals: list[Storage]
    """The storage of each carried value at the end."""
    copies: dict[Storage, PlannedCommand]
    """For each carried role the command that copies to it, for what is not the loop's own."""
    owned: set[int]
    """Numbers of the carried values that must end in memory of the loop's own: they are outputs."""
    scanned: list[Rows]
    stacked: list[Rows]

    @property
    def stacked_into(self) -> list[Storage]:
        """Storages that the loop writes row by row."""
        return [rows.whole for rows in self.stacked]


@dataclass(slots=True, eq=False)
class CommandItem:
    """One command, a view, or a picked result.

    `begin` and `end` are positions, counted through the whole program once it is ordered; `planned` are the commands
    that it takes after all: none where it is a view, copies where it is joined.
    """

    group: NodeGroup
    begin: int = -1
    end: int = -1
    planned: list[PlannedCommand] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class LoopItem:
    """A loop, with the commands of its condition and of its body between its begin and its end; `planned` are those
    that copy what it reads before it begins."""

    group: NodeGroup
    cond: list[Item]
    test: Node | None
    body: list[Item]
    results: list[Node]
    """Values carried on and stacked up; each has memory of its own, or is another carried value as it was."""
    begin: int = -1
    end: int = -1
    planned: list[PlannedCommand] = field(default_factory=list)
    plan: LoopPlan = field(init=False)

    @property
    def loop(self) -> LoopAttributes:
        return LoopAttributes.of(self.group)

    @property
    def rounds(self) -> int:
        """The number of rounds of a loop of known length."""
        length = self.loop.length
        assert isinstance(length, int), length
        return length


@dataclass(slots=True, eq=False)
class BranchesItem:
    """Branches, one after another; each result has memory of its own.  `planned` is a copy of the index, or nothing."""

    group: NodeGroup
    arms: list[list[Item]]
    results: list[list[Node]]
    begin: int = -1
    end: int = -1
    planned: list[PlannedCommand] = field(default_factory=list)
    index: Storage = field(init=False)
    """The storage of the number of the branch that runs."""

    @property
    def otherwise(self) -> bool:
        """True if the last branch runs for every number that no other has."""
        return bool(self.group.attributes[1])


Item: TypeAlias = CommandItem | LoopItem | BranchesItem


@dataclass(slots=True)
class ProgramTree:
    """A program in its order, and what is joined and what is no command in all of its bodies."""

    items: list[Item]
    joins: Joins
    aliases: set[Node]
    """Views that need no command, and picked results."""
    bound: int
    """The most bytes that live at once, as far as is known before the program is planned."""

    every: list[Item] = field(init=False)
    """All items, those inside others after them."""

    def __post_init__(self) -> None:
        _number(self.items, 0)
        self.every = list(walk(self.items))


def _number(items: Sequence[Item], position: int) -> int:
    """Give positions, counted through all bodies; the next one that is free."""
    for item in items:
        item.begin = item.end = position
        for inside in inner(item):
            item.end = _number(inside, item.end + 1) - 1
        item.end += not isinstance(item, CommandItem)
        position = item.end + 1
    return position


def inner(item: Item) -> list[list[Item]]:
    """The lists of items inside an item: condition and body of a loop, or branches."""
    if isinstance(item, LoopItem):
        return [item.cond, item.body]
    return item.arms if isinstance(item, BranchesItem) else []


def walk(items: Sequence[Item]) -> Iterator[Item]:
    """All items, those inside others after them."""
    for item in items:
        yield item
        for inside in inner(item):
            yield from walk(inside)
