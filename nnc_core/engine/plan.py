"""The place of every value of a graph: aliases, donated inputs, memory taken over in place, one arena for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nnc_core.base.command import Command
from nnc_core.base.layout import Layout
from nnc_core.device import NO_VIEWS, Device
from nnc_core.engine.decide import Decider
from nnc_core.engine.failing import may_fail, takes_notes
from nnc_core.engine.groups import COPY, NodeGroup
from nnc_core.engine.plan_types import Plan
from nnc_core.engine.program_tree import CommandItem, PlannedCommand, ProgramTree
from nnc_core.engine.program_uses import last_reads, last_uses
from nnc_core.engine.regions import apart, same_elements
from nnc_core.engine.storage import FOREVER, Storage, ValuePlace
from nnc_core.operator import OPERATORS
from nnc_core.operator.control import PICK
from nnc_core.symbol import Node
from nnc_core.type import TensorSpec, TupleSpec

UPDATE_SLICE = OPERATORS["update_slice"].name


class CommandPlanner:
    """Plans commands one by one; what loops and branches need is in `plan_control`."""

    def __init__(self, tree: ProgramTree, outputs: Sequence[Node], updates: Mapping[Node, Node],
                 decider: Decider) -> None:
        self.tree, self.joins, self.aliases = tree, tree.joins, tree.aliases
        self.outputs, self.updates, self.decider = set(outputs), updates, decider
        self.device: Device = decider.device
        self.views = NO_VIEWS not in self.device.spec.features
        self.plan = Plan(tree.items)
        self.place = self.plan.place
        self.reads = last_reads(tree)
        self.last = last_uses(tree, self.reads, self.outputs)
        self.assigned: dict[Node, Storage] = {}
        """Storages that values have to be computed into."""
        self.wholes: dict[Node, Storage] = {}
        """Storages of what is joined, while parts of it are computed."""
        self.whole_until: dict[Node, int] = {}
        """The last positions at which these are used, parts included."""
        for x, whole in self.joins.whole.items():
            self.whole_until[whole] = max(self.whole_until.get(whole, self.last[whole]), self.last[x])
        self.parts: dict[Node, list[ValuePlace]] = {}
        """Places of the results of operators that have several."""
        self.picked: dict[Node, dict[int, Node]] = {}
        for item in tree.every:
            if item.group.op is PICK:
                self.picked.setdefault(item.group.inputs[0], {})[item.group.attributes[0]] = item.group.node
        self.last_failing = max([item.end for item in tree.every if may_fail(item.group, self.device)], default=-1)
        self.depth = 0

    def command(self, item: CommandItem) -> list[PlannedCommand]:
        """The commands that an item takes: none where its value is there already."""
        group, index = item.group, item.begin
        node = group.node
        if group.op is PICK:
            self.put(node, self.parts[group.inputs[0]][group.attributes[0]])
            return []
        joined = self._joined(index, group) if node in self.joins.parts else None
        if joined is not None:
            return joined
        alias = self._alias(group)
        if alias is not None:
            self.put(node, alias)
            self.plan.aliases += 1
            return []
        if isinstance(node.spec, TupleSpec):
            return [self._with_several_results(index, group, node.spec)]
        place = self._in_whole(index, group)
        step = self.step(index, group, (node.spec.layout() if place is None else place.layout,))
        if place is None:
            place = self._placed(index, step, node, 0)
        else:
            step.note = "in its part of a larger value"
        self.put(node, place)
        step.writes = (place.storage,)
        return [step]

    def put(self, node: Node, place: ValuePlace) -> None:
        """A value lies somewhere, for as long as it or a view of it is used."""
        self.place[node] = place
        place.storage.values.append(node)
        place.storage.keep_until(self.last[node])

    def _command(self, group: NodeGroup, outs: Sequence[Layout]) -> Command:
        return Command(group.op.name, group.attributes, tuple([self.place[x].layout for x in group.inputs]),
                       tuple(outs))

    def step(self, index: int, group: NodeGroup, outs: Sequence[Layout]) -> PlannedCommand:
        """A command with the decision about it; its results are still to be placed."""
        command = self._command(group, outs)
        decision = self.decider.decide(group.op, command).required(self.device, group.line)
        step = PlannedCommand(index, group, decision, tuple([self.place[x].storage for x in group.inputs]),
                              depth=self.depth)
        if decision.workspace:
            step.workspace = self.in_arena(decision.workspace, index, index, f"workspace of {group.op.name}")
        self.plan.steps.append(step)
        return step

    def _with_several_results(self, index: int, group: NodeGroup, spec: TupleSpec) -> PlannedCommand:
        step = self.step(index, group, [part.layout() for part in spec.parts])
        picked = self.picked.get(group.node, {})
        places = self.parts[group.node] = []
        for i, part in enumerate(spec.parts):
            if i in picked:
                places.append(self._placed(index, step, picked[i], i))
            else:
                nobody = self.in_arena(part.layout().nbytes, index, index, group.op.name)
                places.append(ValuePlace(nobody, part.layout()))
            step.writes = tuple([place.storage for place in places])
        return step

    def _placed(self, index: int, step: PlannedCommand, node: Node, output: int) -> ValuePlace:
        """The place of one of a command's outputs: where it has to be, in memory that is there already, or anew."""
        out = step.command.outputs[output]
        storage = (self.assigned.get(node) or self._donated(index, step, node, output)
                   or self._overwritten(index, step, node, output) or self.fresh(index, node, out.nbytes))
        return ValuePlace(storage, out)

    def copy(self, index: int, x: Node, source: ValuePlace, target: Storage,
             out: Layout | None = None) -> PlannedCommand:
        """A command that copies a value to a storage."""
        command = Command(COPY.name, (), (source.layout,), (out or x.spec.layout(),))
        node = Node(COPY, (x,), (), x.spec, x.line)
        decision = self.decider.decide(COPY, command).required(self.device, x.line)
        step = PlannedCommand(index, NodeGroup(COPY, (x,), (), node), decision, (source.storage,), (target,),
                              depth=self.depth)
        self.plan.steps.append(step)
        return step

    def _alias(self, group: NodeGroup) -> ValuePlace | None:
        """A view costs nothing if the device reads any layout; outputs are never views."""
        if group.op.view is None or group.node not in self.aliases:
            return None
        source = self.place[group.inputs[0]]
        layout = group.op.view(source.layout, *group.attributes)
        if layout is None or not (self.views or layout == group.node.spec.layout()):
            return None
        return ValuePlace(source.storage, layout)

    # ---- parts of larger values
    def _in_whole(self, index: int, group: NodeGroup) -> ValuePlace | None:
        """The place that a value was offered in a larger one, if its command can write there."""
        node = group.node
        whole = self.joins.whole.get(node)
        if whole is None or node in self.assigned:
            return None
        layout = self.joins.layouts[node]
        command = self._command(group, (layout,))
        decision = self.decider.decide(group.op, command)
        if decision.on_host:
            return None
        storage = self.wholes.get(whole)
        if storage is None:
            storage = self.wholes[whole] = self.assigned.get(whole) or self.fresh(index, whole, whole.spec.nbytes)
            storage.keep_until(self.whole_until[whole])
        elif not all(self._stays_clear(index, x, storage, layout, i in decision.inplace)
                     for i, x in enumerate(group.inputs)):
            return None
        self.plan.joined += 1
        return ValuePlace(storage, layout)

    def _stays_clear(self, index: int, x: Node, storage: Storage, written: Layout, inplace: bool) -> bool:
        """Tell whether an operand may be read while that part of a storage is written."""
        place = self.place[x]
        if not place.storage.may_be(storage):
            return True
        if place.storage is storage and apart(place.layout, written):
            return True
        return inplace and place.layout == written and self._changes_nothing_read(index, storage, written)

    def _joined(self, index: int, group: NodeGroup) -> list[PlannedCommand] | None:
        """The copies that are left, to where the operands of a concatenation belong; None if one command does all."""
        node, parts = group.node, self.joins.parts[group.node]
        whole = self.joins.whole.get(node, node)
        storage = self.wholes.pop(node, None) if whole is node else self.wholes.get(whole)
        away = [(x, p) for x, p in zip(group.inputs, parts, strict=True) if not self._lies(x, storage, p)]
        if storage is None or len(away) == len(parts) or (away and node in self.joins.seen):
            return None
        steps: list[PlannedCommand] = []
        for x, p in away:
            step = self.copy(index, x, self.place[x], storage, p)
            step.note = "to its part of a larger value"
            steps.append(step)
        self.put(node, ValuePlace(storage, self.joins.layouts[node]))
        return steps

    def _lies(self, x: Node, storage: Storage | None, layout: Layout) -> bool:
        place = self.place[x]
        return place.storage is storage and same_elements(place.layout, layout)

    # ---- memory that is there already
    def _donated(self, index: int, step: PlannedCommand, node: Node, output: int) -> Storage | None:
        """New state lands in the memory of the old, if nothing reads the old one later and nothing can fail later."""
        target = self.updates.get(node)
        if target is None or target not in self.place or index < self.last_failing:
            return None
        if takes_notes(step.group, self.device):  # it says so when it has written
            return None
        storage = self.place[target].storage
        if storage.kind != "input" or storage.last > index:
            return None
        if storage.last == index and not self._may_share(step, storage, output):
            return None
        self.plan.donated[node] = target
        self.plan.updated_at[node] = step.at
        step.note = "in the memory of its input"
        storage.last = FOREVER
        return storage

    def _overwritten(self, index: int, step: PlannedCommand, node: Node, output: int) -> Storage | None:
        """Take over the memory of an input that dies here, or of which only what is not changed here is read later."""
        out = step.command.outputs[output]
        for i in step.decision.consents[output]:
            storage, layout = self.place[step.group.inputs[i]]
            if storage.kind != "arena" or storage.fixed or storage.nbytes != max(out.nbytes, 1) or layout != out:
                continue
            if storage in step.writes:  # another output has taken it
                continue
            free = storage.last == index or self._leaves_the_rest(index, step, storage)
            if free and self._may_share(step, storage, output):
                if node in self.outputs:
                    self.make_output(storage)
                self.plan.overwrites += 1
                step.note = f"in place of input {i}"
                return storage
        return None

    def _leaves_the_rest(self, index: int, step: PlannedCommand, storage: Storage) -> bool:
        """Tell whether a command changes a part of a storage only, and nothing of that part is read later."""
        if len(step.command.outputs) != 1:
            return False
        written = written_part(step.command)
        whole = written == step.command.output
        if whole or not storage.contents_known or storage.carried or step.group.node in self.outputs:
            return False
        return self._changes_nothing_read(index, storage, written)

    def _changes_nothing_read(self, index: int, storage: Storage, written: Layout) -> bool:
        """Tell whether all that is read later in a storage lies apart from what is written."""
        return all(apart(self.place[x].layout, written) for x in storage.values if self.reads[x] > index)

    def _may_share(self, step: PlannedCommand, storage: Storage, output: int) -> bool:
        """The kernel consents for every input that may lie there, and each lies there as the output would, or apart
        from what is changed."""
        out, consents = step.command.outputs[output], step.decision.consents[output]
        written = written_part(step.command) if len(step.command.outputs) == 1 else out
        return all((i in consents and self.place[x].layout == out)
                   or (self.place[x].storage is storage and apart(self.place[x].layout, written))
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


def row_layout(spec: TensorSpec) -> Layout:
    """The layout of one row of a stacked value."""
    return TensorSpec(spec.shape[1:], spec.dtype).layout()


def written_part(command: Command) -> Layout:
    """The part that a command changes if it works in the memory of its first input: a part of it, or all."""
    out = command.output
    if command.name != UPDATE_SLICE or not out.size:
        return out
    start, step = command.attributes
    offset = out.offset + sum(a * s for a, s in zip(start, out.strides, strict=True))
    return Layout(command.inputs[1].shape, out.dtype, offset,
                  tuple([s * k for s, k in zip(out.strides, step, strict=True)]))
