"""The parts of a plan: storages, places in them, and blocks of commands, loops and branches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from nnc_core.base.command import Command
from nnc_core.base.layout import Layout
from nnc_core.device import Device
from nnc_core.engine.allocation import ArenaAllocation, Lifetime, allocate
from nnc_core.engine.allocation.lifetime import make_demand
from nnc_core.engine.decide import Decision
from nnc_core.engine.fuse import NodeGroup
from nnc_core.engine.program_order import FOREVER
from nnc_core.engine.unrolling import Roles, Unrolling
from nnc_core.operator.control import LoopAttributes
from nnc_core.symbol import Node


@dataclass(slots=True, eq=False)
class Storage:
    """Memory of one value, of its aliases, and of what overwrites it.  Steps are positions in the schedule.

    Kinds: "input", "constant", "arena", "output" (fresh memory at each call), "window" (a part of another storage or
    a buffer of a tape, bound as a loop goes on), "tape", "pushed" (memory that is given to a tape round by round),
    "pointer" (bound to another storage's buffer when a loop is left).
    """

    kind: str
    nbytes: int
    first: int
    last: int
    label: str
    offset: int = 0
    carried: bool = False
    """Memory among which a loop's values move: no inner loop may move its own there."""
    fixed: bool = False
    """Inner loops and branches compute into it, or pointers rotate in it: no command may overwrite it in place."""
    holds: list[Storage] = field(default_factory=list)
    """Other storages in which the value may lie when the program runs, and so what has to live as long."""
    values: list[Node] = field(default_factory=list)
    """Values that lie here, whole or in part, views included."""
    told: bool = True
    """All that lies here is among `values`: loops move what they carry without saying so."""

    def keep_until(self, last: int) -> None:
        """Live at least until that position, with all that this one holds."""
        pending = [self]
        while pending:
            storage = pending.pop()
            if storage.last < last:
                storage.last = last
                pending += storage.holds

    def may_be(self, other: Storage) -> bool:
        """Tell whether the value here may lie in that memory."""
        seen, pending = {id(self)}, [self]
        while pending:
            storage = pending.pop()
            if storage is other:
                return True
            new = [s for s in storage.holds if id(s) not in seen]
            seen.update(map(id, new))
            pending += new
        return False


class ValuePlace(NamedTuple):
    """A storage and the layout of a value in it."""

    storage: Storage
    layout: Layout


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


class Rows(NamedTuple):
    """A value that a loop goes over or stacks up: the storage of one round's part, and that of all of it."""

    row: Storage
    whole: Storage
    nbytes: int


@dataclass(slots=True, eq=False)
class LoopPlan:
    """A loop as the records are written from it."""

    group: NodeGroup
    cond: list[Block]
    test: Storage | None
    body: list[Block]
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
    def loop(self) -> LoopAttributes:
        return LoopAttributes.of(self.group)

    @property
    def rounds(self) -> int:
        """The number of rounds of a loop of known length."""
        length = self.loop.length
        assert isinstance(length, int), length
        return length


@dataclass(slots=True, eq=False)
class BranchesPlan:
    """Branches as the records are written from them."""

    group: NodeGroup
    index: Storage
    dtype: str
    arms: list[list[Block]]
    otherwise: bool


Block: TypeAlias = PlannedCommand | LoopPlan | BranchesPlan


@dataclass(slots=True)
class Plan:
    """The decisions of the planner."""

    blocks: list[Block] = field(default_factory=list)
    steps: list[PlannedCommand] = field(default_factory=list)
    """The commands of all blocks, inner ones included, in the order of their positions."""
    place: dict[Node, ValuePlace] = field(default_factory=dict)
    arena: list[Storage] = field(default_factory=list)
    allocation: ArenaAllocation = field(default_factory=lambda: allocate([], alignment=1))
    segment: int = FOREVER
    """Bytes of the largest buffer that the device allocates; the arena is cut there."""
    donated: dict[Node, Node] = field(default_factory=dict)
    """Outputs that did land in the memory of an input."""
    aliases: int = 0
    overwrites: int = 0
    joined: int = 0
    """Values that are computed straight into a part of a larger one."""


def arena_bound(plan: Plan, device: Device) -> int:
    """The most bytes of the arena that live at once."""
    return make_demand(_lifetimes(plan), alignment=device.spec.alignment).bound


def lay_out_arena(plan: Plan, device: Device, budget: int) -> None:
    """Give every storage of the arena its offset; `budget` as for `allocation.allocate`."""
    spec = device.spec
    segment = spec.max_allocation // spec.alignment * spec.alignment if spec.max_allocation else None
    plan.segment = segment or FOREVER
    plan.allocation = allocate(_lifetimes(plan), alignment=spec.alignment, segment=segment, budget=budget)
    for storage, offset in zip(plan.arena, plan.allocation.offsets, strict=True):
        storage.offset = offset


def _lifetimes(plan: Plan) -> list[Lifetime]:
    return [Lifetime(s.nbytes, s.first, s.last) for s in plan.arena]
