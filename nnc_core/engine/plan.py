"""Where every value of a graph lies: aliases, donated inputs, memory taken over in place, one arena for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from nnc_core.base.command import Command
from nnc_core.base.layout import Layout
from nnc_core.device import Device
from nnc_core.engine.allocation import Allocation, Lifetime, allocate
from nnc_core.engine.fuse import COPY, Group
from nnc_core.engine.lower import Choice, Lowering
from nnc_core.engine.order import (
    FOREVER,
    BranchesItem,
    CommandItem,
    Item,
    LoopItem,
    in_line,
    last_uses,
    leaves_of,
    walk,
)
from nnc_core.engine.passes import Passes, Roles
from nnc_core.operator import PLACEHOLDER
from nnc_core.operator.control import PICK, is_tape
from nnc_core.symbol import Node
from nnc_core.type import TensorSpec, TupleSpec


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
    """What inner loops and branches compute into, and where pointers rotate: no command may overwrite it in place."""
    holds: list[Storage] = field(default_factory=list)
    """Where else the value may lie when the program runs, and so what has to live as long."""

    def keep_until(self, last: int) -> None:
        """Live at least until that position, with all that this one holds."""
        pending = [self]
        while pending:
            storage = pending.pop()
            if storage.last < last:
                storage.last = last
                pending += storage.holds

    def may_be(self, other: Storage) -> bool:
        """Whether the value here may lie in that memory."""
        seen, pending = {id(self)}, [self]
        while pending:
            storage = pending.pop()
            if storage is other:
                return True
            new = [s for s in storage.holds if id(s) not in seen]
            seen.update(map(id, new))
            pending += new
        return False


class Place(NamedTuple):
    """A storage and the layout of a value in it."""

    storage: Storage
    layout: Layout


@dataclass(slots=True, eq=False)
class Step:
    """A scheduled command with the code chosen for it."""

    at: int
    group: Group
    command: Command
    choice: Choice
    reads: tuple[Storage, ...] = ()
    writes: tuple[Storage, ...] = ()
    workspace: Storage | None = None
    note: str = ""
    depth: int = 0
    """How many loops and branches it stands in."""


class Rows(NamedTuple):
    """What a loop goes over, or stacks up: the storage of one round's part, and that of all of it."""

    row: Storage
    whole: Storage
    nbytes: int


@dataclass(slots=True, eq=False)
class LoopPlan:
    """A loop as the records are written from it."""

    group: Group
    cond: list[Block]
    test: Storage | None
    body: list[Block]
    roles: Roles
    start: dict[Storage, Storage]
    """Where the carried values lie before the first round."""
    passes: Passes | None
    """None: the body is written once, and pointers rotate after each round."""
    finals: list[Storage]
    """Where each carried value is found at the end."""
    copies: dict[Storage, Step]
    """For each carried role the command that copies to it, for what is not the loop's own."""
    owned: set[int]
    """Numbers of the carried values that must end in memory of the loop's own: they are outputs."""
    scanned: list[Rows]
    stacked: list[Rows]


@dataclass(slots=True, eq=False)
class BranchesPlan:
    """Branches as the records are written from them."""

    group: Group
    index: Storage
    dtype: str
    arms: list[list[Block]]
    otherwise: bool


Block: TypeAlias = Step | LoopPlan | BranchesPlan


@dataclass(slots=True)
class Plan:
    """What `make_plan` decides."""

    blocks: list[Block] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    """The commands of all blocks, inner ones included, in the order of their positions."""
    place: dict[Node, Place] = field(default_factory=dict)
    arena: list[Storage] = field(default_factory=list)
    allocation: Allocation = field(default_factory=lambda: allocate([], alignment=1))
    segment: int = FOREVER
    """Bytes of the largest buffer that the device allocates; the arena is cut there."""
    donated: dict[Node, Node] = field(default_factory=dict)
    """Outputs that did land in the memory of an input."""
    aliases: int = 0
    overwrites: int = 0


def make_plan(order: Sequence[Group], outputs: Sequence[Node], updates: Mapping[Node, Node],
              lowering: Lowering) -> Plan:
    """`updates`: output -> the input that gives up its memory for it."""
    from nnc_core.engine.plan_control import ControlPlanner

    return ControlPlanner(in_line(order, lowering.device), outputs, updates, lowering).run()


class Planner:
    """Plans straight lines of commands; what loops and branches need is in `plan_control`."""

    def __init__(self, items: Sequence[Item], outputs: Sequence[Node], updates: Mapping[Node, Node],
                 lowering: Lowering) -> None:
        self.items, self.outputs, self.updates, self.lowering = items, set(outputs), updates, lowering
        self.device: Device = lowering.device
        self.views = "no-views" not in self.device.spec.features
        self.plan = Plan()
        self.place = self.plan.place
        self.last = last_uses(items, self.outputs)
        self.assigned: dict[Node, Storage] = {}
        """Storages that values have to be computed into."""
        self.parts: dict[Node, list[Place]] = {}
        """Places of the results of operators that have several."""
        self.picked: dict[Node, dict[int, Node]] = {}
        for item in walk(items):
            if item.group.op is PICK:
                self.picked.setdefault(item.group.inputs[0], {})[item.group.attributes[0]] = item.group.node
        self.depth = 0

    def run(self) -> Plan:
        targets = set(self.updates.values())
        for leaf in leaves_of(self.items):
            kind = "input" if leaf.op is PLACEHOLDER else "constant"
            last = self.last.get(leaf, FOREVER) if leaf in targets else FOREVER
            self.place[leaf] = self.leaf_place(leaf, kind, last)
        self.plan.blocks = self.blocks(self.items)
        self.plan.steps.sort(key=lambda step: step.at)
        self._allocate()
        return self.plan

    def leaf_place(self, leaf: Node, kind: str, last: int) -> Place:
        if is_tape(leaf.spec):
            return Place(Storage("input", 0, -1, FOREVER, "tape"), row_layout(leaf.spec))
        layout = leaf.spec.layout()
        return Place(Storage(kind, max(layout.nbytes, 1), -1, last, kind), layout)

    def blocks(self, items: Sequence[Item]) -> list[Block]:
        found: list[Block] = []
        for item in items:
            match item:
                case CommandItem():
                    found += self.command(item)
                case LoopItem():
                    found += self.loop(item)
                case BranchesItem():
                    found += self.branches(item)
        return found

    def loop(self, item: LoopItem) -> list[Block]:
        raise NotImplementedError

    def branches(self, item: BranchesItem) -> list[Block]:
        raise NotImplementedError

    def command(self, item: CommandItem) -> list[Block]:
        group, index = item.group, item.begin
        node = group.node
        if group.op is PICK:
            self.place[node] = place = self.parts[group.inputs[0]][group.attributes[0]]
            place.storage.keep_until(self.last[node])
            return []
        alias = self._alias(group)
        if alias is not None:
            self.place[node] = alias
            alias.storage.keep_until(self.last[node])
            self.plan.aliases += 1
            return []
        if isinstance(node.spec, TupleSpec):
            return [self._with_several_results(index, group, node.spec)]
        step = self.step(index, group, (node.spec,))
        out = node.spec.layout()
        storage = self.assigned.get(node) or self._donated(index, step) or self._overwritten(index, step)
        storage = storage or self.fresh(index, node, out.nbytes)
        storage.keep_until(self.last[node])
        self.place[node] = Place(storage, out)
        step.writes = (storage,)
        return [step]

    def step(self, index: int, group: Group, specs: Sequence[TensorSpec]) -> Step:
        """A command with the code for it; its results are still to be placed."""
        places = [self.place[x] for x in group.inputs]
        command = Command(group.op.name, group.attributes, tuple([p.layout for p in places]),
                          tuple([s.layout() for s in specs]))
        step = Step(index, group, command, self.lowering.choose(group.op, command), tuple([p.storage for p in places]),
                    depth=self.depth)
        if step.choice.workspace:
            step.workspace = self.in_arena(step.choice.workspace, index, index, f"workspace of {group.op.name}")
        self.plan.steps.append(step)
        return step

    def _with_several_results(self, index: int, group: Group, spec: TupleSpec) -> Step:
        step = self.step(index, group, spec.parts)
        picked = self.picked.get(group.node, {})
        self.parts[group.node] = [Place(self.fresh(index, picked.get(i, group.node), part.layout().nbytes),
                                        part.layout()) for i, part in enumerate(spec.parts)]
        step.writes = tuple([p.storage for p in self.parts[group.node]])
        return step

    def copy(self, index: int, x: Node, source: Place, target: Storage) -> Step:
        """A command that copies a value to a storage."""
        out = x.spec.layout()
        command = Command(COPY.name, (), (source.layout,), (out,))
        node = Node(COPY, (x,), (), x.spec, x.line)
        step = Step(index, Group(COPY, (x,), (), node), command, self.lowering.choose(COPY, command),
                    (source.storage,), (target,), depth=self.depth)
        self.plan.steps.append(step)
        return step

    def _alias(self, group: Group) -> Place | None:
        """A view costs nothing if the device reads any layout; outputs are never views."""
        if group.op.view is None or group.node in self.outputs:
            return None
        source = self.place[group.inputs[0]]
        layout = group.op.view(source.layout, *group.attributes)
        if layout is None or not (self.views or layout == group.node.spec.layout()):
            return None
        return Place(source.storage, layout)

    def _donated(self, index: int, step: Step) -> Storage | None:
        """New state lands in the memory of the old, if nothing reads the old one later."""
        target = self.updates.get(step.group.node)
        if target is None or target not in self.place:
            return None
        storage = self.place[target].storage
        if storage.kind != "input" or storage.last > index:
            return None
        if storage.last == index and not self._may_share(step, storage):
            return None
        self.plan.donated[step.group.node] = target
        step.note = "in the memory of its input"
        storage.last = FOREVER
        return storage

    def _overwritten(self, index: int, step: Step) -> Storage | None:
        """Take over the memory of an input that dies here."""
        node = step.group.node
        for i in step.choice.inplace:
            storage, layout = self.place[step.group.inputs[i]]
            if storage.kind != "arena" or storage.last != index or storage.nbytes != max(step.command.output.nbytes, 1):
                continue
            if storage.fixed:
                continue
            if layout == step.command.output and self._may_share(step, storage):
                if node in self.outputs:
                    self.make_output(storage)
                self.plan.overwrites += 1
                step.note = f"in place of input {i}"
                return storage
        return None

    def _may_share(self, step: Step, storage: Storage) -> bool:
        """The kernel consents for every input that may lie there, and each lies there as the output would."""
        return all(i in step.choice.inplace and self.place[x].layout == step.command.output
                   for i, x in enumerate(step.group.inputs) if self.place[x].storage.may_be(storage))

    def make_output(self, storage: Storage) -> None:
        """Memory of the arena becomes memory that each call has anew."""
        if storage.kind == "arena":
            storage.kind = "output"
            self.plan.arena.remove(storage)

    def in_arena(self, nbytes: int, first: int, last: int, label: str) -> Storage:
        storage = Storage("arena", max(nbytes, 1), first, last, label)
        self.plan.arena.append(storage)
        return storage

    def fresh(self, index: int, node: Node, nbytes: int) -> Storage:
        last = max(index, self.last.get(node, index))
        if node in self.outputs:
            return Storage("output", max(nbytes, 1), index, last, node.op.name)
        return self.in_arena(nbytes, index, last, node.op.name)

    def _allocate(self) -> None:
        spec = self.device.spec
        segment = spec.max_allocation // spec.alignment * spec.alignment if spec.max_allocation else None
        self.plan.segment = segment or FOREVER
        lifetimes = [Lifetime(s.nbytes, s.first, s.last) for s in self.plan.arena]
        self.plan.allocation = allocate(lifetimes, alignment=spec.alignment, segment=segment)
        for storage, offset in zip(self.plan.arena, self.plan.allocation.offsets, strict=True):
            storage.offset = offset


def row_layout(spec: TensorSpec) -> Layout:
    """How one part of something stacked up lies."""
    return TensorSpec(spec.shape[1:], spec.dtype).layout()
