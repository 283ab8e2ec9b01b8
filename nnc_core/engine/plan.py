"""Where every value of a graph lies: aliases, donated inputs, memory taken over in place, one arena for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nnc_core.base.command import Command
from nnc_core.base.layout import Layout
from nnc_core.device import Device
from nnc_core.engine.allocation import Allocation, Lifetime, allocate
from nnc_core.engine.fuse import Group
from nnc_core.engine.lower import Choice, Lowering
from nnc_core.engine.schedule import leaves_of
from nnc_core.operator import PLACEHOLDER
from nnc_core.symbol import Node

FOREVER = 1 << 60


@dataclass(slots=True, eq=False)
class Storage:
    """Memory of one value, of its aliases, and of what overwrites it.  Steps are positions in the schedule."""

    kind: str  # "input", "constant", "arena", "output"
    nbytes: int
    first: int
    last: int
    label: str
    offset: int = 0


class Place(NamedTuple):
    """A storage and the layout of a value in it."""

    storage: Storage
    layout: Layout


@dataclass(slots=True)
class Step:
    """A scheduled command with the code chosen for it."""

    group: Group
    command: Command
    choice: Choice
    workspace: Storage | None = None
    note: str = ""


@dataclass(slots=True)
class Plan:
    """What `make_plan` decides."""

    steps: list[Step] = field(default_factory=list)
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
    return _Planner(order, outputs, updates, lowering).run()


class _Planner:
    def __init__(self, order: Sequence[Group], outputs: Sequence[Node], updates: Mapping[Node, Node],
                 lowering: Lowering) -> None:
        self.order, self.outputs, self.updates, self.lowering = order, set(outputs), updates, lowering
        self.device: Device = lowering.device
        self.views = "no-views" not in self.device.spec.features
        self.plan = Plan()
        self.place = self.plan.place
        self.last = self._last_uses()

    def run(self) -> Plan:
        targets = set(self.updates.values())
        for leaf in leaves_of(self.order):
            kind = "input" if leaf.op is PLACEHOLDER else "constant"
            last = self.last[leaf] if leaf in targets else FOREVER
            layout = leaf.spec.layout()
            self.place[leaf] = Place(Storage(kind, max(layout.nbytes, 1), -1, last, kind), layout)
        for index, group in enumerate(self.order):
            self._plan_group(index, group)
        self._allocate()
        return self.plan

    def _last_uses(self) -> dict[Node, int]:
        """The step of each value's last use, its aliases' uses included; outputs are used for ever."""
        last: dict[Node, int] = {}
        for index, group in enumerate(self.order):
            last.setdefault(group.node, index)
            for x in group.inputs:
                last[x] = index
        for group in reversed(self.order):
            if group.op.view is not None:
                x = group.inputs[0]
                last[x] = max(last[x], last[group.node])
        return last | dict.fromkeys(self.outputs, FOREVER)

    def _plan_group(self, index: int, group: Group) -> None:
        node = group.node
        alias = self._alias(group)
        if alias is not None:
            self.place[node] = alias
            alias.storage.last = max(alias.storage.last, self.last[node])
            self.plan.aliases += 1
            return
        out = node.spec.layout()
        command = Command(group.op.name, group.attributes, tuple([self.place[x].layout for x in group.inputs]), (out,))
        step = Step(group, command, self.lowering.choose(group.op, command))
        storage = self._donated(index, step) or self._overwritten(index, step) or self._fresh(index, node, out)
        storage.last = max(storage.last, self.last[node])
        self.place[node] = Place(storage, out)
        if step.choice.workspace:
            step.workspace = Storage("arena", step.choice.workspace, index, index, f"workspace of {group.op.name}")
            self.plan.arena.append(step.workspace)
        self.plan.steps.append(step)

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
            if layout == step.command.output and self._may_share(step, storage):
                if node in self.outputs:
                    storage.kind = "output"
                    self.plan.arena.remove(storage)
                self.plan.overwrites += 1
                step.note = f"in place of input {i}"
                return storage
        return None

    def _may_share(self, step: Step, storage: Storage) -> bool:
        """The kernel consents for every input that lies there, and each lies there as the output would."""
        return all(i in step.choice.inplace and self.place[x].layout == step.command.output
                   for i, x in enumerate(step.group.inputs) if self.place[x].storage is storage)

    def _fresh(self, index: int, node: Node, layout: Layout) -> Storage:
        kind = "output" if node in self.outputs else "arena"
        storage = Storage(kind, max(layout.nbytes, 1), index, index, node.op.name)
        if kind == "arena":
            self.plan.arena.append(storage)
        return storage

    def _allocate(self) -> None:
        spec = self.device.spec
        segment = spec.max_allocation // spec.alignment * spec.alignment if spec.max_allocation else None
        self.plan.segment = segment or FOREVER
        lifetimes = [Lifetime(s.nbytes, s.first, s.last) for s in self.plan.arena]
        self.plan.allocation = allocate(lifetimes, alignment=spec.alignment, segment=segment)
        for storage, offset in zip(self.plan.arena, self.plan.allocation.offsets, strict=True):
            storage.offset = offset
