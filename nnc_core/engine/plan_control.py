"""Planning whole programs: bodies on the same line of positions and in the same arena as what is around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nnc_core.engine.plan import CommandPlanner, row_layout
from nnc_core.engine.plan_types import Plan
from nnc_core.engine.program_tree import BranchesItem, CommandItem, Item, LoopItem, LoopPlan, walk
from nnc_core.engine.program_uses import leaves_of
from nnc_core.engine.storage import FOREVER, Rows, Storage, ValuePlace
from nnc_core.engine.unrolling import Roles, Unrolling, state_after, unroll
from nnc_core.operator import PLACEHOLDER
from nnc_core.operator.control import TRIPS, LoopAttributes, is_tape
from nnc_core.symbol import Node

WRITTEN_OUT = 8
"""Copies of a body that are written before pointers rotate instead."""
DEEPEST = 2
"""Loops within loops whose bodies are written more than once: each level multiplies."""


class ProgramPlanner(CommandPlanner):
    """Plans a program from begin to end.  Carried values keep the roles that the body gives them; nothing is copied
    from round to round."""

    def run(self) -> Plan:
        targets = set(self.updates.values())
        for leaf in leaves_of(self.tree):
            kind = "input" if leaf.op is PLACEHOLDER else "constant"
            last = self.last.get(leaf, FOREVER) if leaf in targets else FOREVER
            self.place[leaf] = self.leaf_place(leaf, kind, last)
        self.fill(self.tree.items)
        self.plan.steps.sort(key=lambda step: step.at)
        return self.plan

    def leaf_place(self, leaf: Node, kind: str, last: int) -> ValuePlace:
        if is_tape(leaf.spec):
            return ValuePlace(Storage("input", 0, -1, FOREVER, "tape"), row_layout(leaf.spec))
        layout = leaf.spec.layout()
        return ValuePlace(Storage(kind, max(layout.nbytes, 1), -1, last, kind), layout)

    def fill(self, items: Sequence[Item]) -> None:
        """Plan items in their order."""
        for item in items:
            match item:
                case CommandItem():
                    item.planned = self.command(item)
                case LoopItem():
                    self.loop(item)
                case BranchesItem():
                    self.branches(item)

    def loop(self, item: LoopItem) -> None:
        loop, n = item.loop, item.loop.carried_count
        carried, scanned, _ = loop.split(item.group.inputs)
        inits = [self._packed(item, x) for x in carried]
        wholes = [self._packed(item, x) for x in scanned]
        start = self._start(item, carried, inits)
        stacked = self._rounds(item, list(start))
        test = None if item.test is None else self.place[item.test].storage
        moving = Roles(list(start), [self.place[y].storage for y in item.results[:n]])
        picked = self.picked.get(item.group.node, {})
        rows = [Rows(self.place[x].storage, whole.storage, self.place[x].layout.nbytes)
                for x, whole in zip(loop.scanned, wholes, strict=True)]
        item.plan = plan = LoopPlan(test, moving, start, self._unrolling(item, moving, start), [], {},
                                    {i for i in range(n) if picked.get(i) in self.outputs}, rows, stacked)
        self._keep(item, plan, picked)
        plan.finals = self._finals(item, plan)
        for storage in (*moving.movable(), *[s for final in plan.finals for s in final.holds]):
            storage.contents_known = False
        self._copy_first_values(item, plan, inits)
        out = [ValuePlace(s, x.spec.layout()) for s, x in zip(plan.finals, carried, strict=True)]
        self.parts[item.group.node] = out + [self._whole(item, n + j, r) for j, r in enumerate(stacked)]

    def _start(self, item: LoopItem, carried: Sequence[Node], inits: Sequence[ValuePlace]) -> dict[Storage, Storage]:
        """For each carried value the memory that is its role, and where it lies before the first round: in that memory,
        if the loop may take it over."""
        owned = [self._takes_over(item, i, place) for i, place in enumerate(inits)]
        roles = [p.storage if own else self.in_arena(x.spec.nbytes, item.begin, item.end, f"carried {i}")
                 for i, (x, p, own) in enumerate(zip(carried, inits, owned, strict=True))]
        return {role: place.storage for role, place in zip(roles, inits, strict=True)}

    def _rounds(self, item: LoopItem, roles: Sequence[Storage]) -> list[Rows]:
        """Plan the condition and the body; rows that are stacked up."""
        self._place_inputs(item, item.loop, roles)
        self.depth += 1
        self.fill(item.cond)
        for c, role in zip(item.loop.carried, roles, strict=True):
            role.last = self.last.get(c, item.begin)  # after its last use in the body it may be overwritten
        stacked = self._stacked(item, item.loop.carried_count, item.loop.length)
        self.fill(item.body)
        self.depth -= 1
        return stacked

    def _copy_first_values(self, item: LoopItem, plan: LoopPlan, inits: Sequence[ValuePlace]) -> None:
        """Copy what may lie outside where it has to be in memory of the loop's own."""
        for i, role in enumerate(plan.roles.carried):
            if _has_to_copy(item, i, role):
                plan.copies[role] = step = self.copy(item.begin, item.group.inputs[i], inits[i], role)
                step.note = ("before the first round" if plan.unrolling is None
                             else "only if too few rounds run to move it")

    def _packed(self, item: LoopItem | BranchesItem, x: Node) -> ValuePlace:
        """The place of x, copied before the item to memory of its own if it is a strided view of something."""
        place = self.place[x]
        if is_tape(x.spec) or place.layout == x.spec.layout():
            return place
        storage = self.in_arena(x.spec.nbytes, item.begin, max(item.begin, self.last[x]), "packed")
        item.planned.append(self.copy(item.begin, x, place, storage))
        return ValuePlace(storage, x.spec.layout())

    def _takes_over(self, item: LoopItem, i: int, place: ValuePlace) -> bool:
        """Tell whether the loop may write where a carried value comes from: nobody reads it there any more."""
        storage, x = place.storage, item.group.inputs[i]
        others = [self.place[y].storage for j, y in enumerate(item.group.inputs) if j != i]
        alive = storage.last > item.end
        return (storage.kind == "arena" and not alive and not storage.carried
                and storage.nbytes == max(x.spec.nbytes, 1) and not any(other.may_be(storage) for other in others))

    def _place_inputs(self, item: LoopItem, loop: LoopAttributes, roles: Sequence[Storage]) -> None:
        for c, role in zip(loop.carried, roles, strict=True):
            role.last, role.carried = item.end, True  # the condition overwrites nothing
            self.place[c] = ValuePlace(role, c.spec.layout())
        for row in loop.scanned:
            self.place[row] = ValuePlace(Storage("window", max(row.spec.nbytes, 1), item.begin, item.end, "row"),
                                    row.spec.layout())
        for p, x in zip(loop.captured, loop.split(item.group.inputs)[2], strict=True):
            self.place[p] = self.place[x]
        if loop.cond is not None:
            for p, x in zip(loop.cond.inputs, (*loop.carried, *loop.captured), strict=True):
                self.place[p] = self.place[x]

    def _stacked(self, item: LoopItem, n: int, length: Any) -> list[Rows]:
        """Each round's part is computed where it stays: into its window of the whole, or into what a tape takes."""
        picked = self.picked.get(item.group.node, {})
        found = []
        for j, y in enumerate(item.results[n:]):
            nbytes = max(y.spec.nbytes, 1)
            node = picked.get(n + j, item.group.node)
            if length == TRIPS:
                row = Storage("pushed", nbytes, item.begin, item.end, "pushed on a tape")
                whole = Storage("output" if node in self.outputs else "tape", 0, item.begin, item.end, "tape")
            else:
                row = Storage("window", nbytes, item.begin, item.end, "row of the result")
                whole = self.fresh(item.begin, node, length * y.spec.nbytes)
                whole.last = max(whole.last, item.end)
            self.assigned[y] = row
            found.append(Rows(row, whole, y.spec.nbytes))
        return found

    def _whole(self, item: LoopItem, index: int, rows: Rows) -> ValuePlace:
        node = self.picked.get(item.group.node, {}).get(index)
        whole: Any = item.group.node.spec
        spec = whole.parts[index]
        rows.whole.last = max(rows.whole.last, item.end if node is None else self.last[node])
        return ValuePlace(rows.whole, row_layout(spec) if is_tape(spec) else spec.layout())

    def _unrolling(self, item: LoopItem, roles: Roles, start: Mapping[Storage, Storage]) -> Unrolling | None:
        if self.depth >= DEEPEST or (item.loop.length == TRIPS and item.loop.cond is None):
            return None
        return unroll(roles, dict(start), _written(item.body, roles.movable()), WRITTEN_OUT)

    def _keep(self, item: LoopItem, plan: LoopPlan, picked: dict[int, Node]) -> None:
        """The buffers among which values move belong to the loop from its begin to the last use of its results."""
        end = max([item.end, *[self.last[node] for i, node in picked.items() if i < len(plan.roles.carried)]])
        outputs = {id(plan.roles.cycle_of(plan.roles.carried[i])) for i in plan.owned}
        for cycle in plan.roles.cycles:
            first = min([item.begin, *[s.first for s in cycle]])
            for storage in cycle:
                storage.first, storage.last = first, end
                # where pointers have rotated, a storage's memory is that of another one of the cycle
                storage.carried = storage.fixed = self.depth > 0 or plan.unrolling is None
                if plan.unrolling is None:
                    storage.holds = [s for s in cycle if s is not storage]
                if id(cycle) in outputs:
                    self.make_output(storage)
        for storage in plan.start.values():
            storage.keep_until(end)

    def _finals(self, item: LoopItem, plan: LoopPlan) -> list[Storage]:
        """The storages of the carried values at the end: known for a loop of known length; else pointers say it."""
        carried = plan.roles.carried
        if plan.unrolling is None:
            return list(carried)
        if plan.test is not None:
            return [Storage("pointer", 0, role.first, role.last, "result of a loop",
                            holds=_lies_in(plan.unrolling, role)) for role in carried]
        held = dict(state_after(plan.unrolling, item.rounds))
        for i, role in enumerate(carried):
            if i in plan.owned and held[role] not in plan.roles.movable():
                held[role] = plan.roles.target(role, held)  # it comes from outside and is copied
        return [held[role] for role in carried]

    def branches(self, item: BranchesItem) -> None:
        index, *operands = item.group.inputs
        item.index = self._packed(item, index).storage
        picked = self.picked.get(item.group.node, {})
        results = [ValuePlace(self.fresh(item.begin, picked.get(j, item.group.node), y.spec.nbytes), y.spec.layout())
                   for j, y in enumerate(item.results[0])]
        self.depth += 1
        for branch, arm, own in zip(item.group.attributes[0], item.arms, item.results, strict=True):
            for p, x in zip(branch.inputs, operands, strict=True):
                self.place[p] = self.place[x]
            self.assigned |= {y: r.storage for y, r in zip(own, results, strict=True)}
            self.fill(arm)
        self.depth -= 1
        for j, place in enumerate(results):
            node = picked.get(j)
            place.storage.last = max(item.end, self.last[node] if node is not None else item.end)
            place.storage.fixed = self.depth > 0
        self.parts[item.group.node] = results


def _lies_in(unrolling: Unrolling, role: Any) -> list[Any]:
    """The storages in which a carried value may be, each once."""
    return list(dict.fromkeys(state[role] for state in (*unrolling.first, *unrolling.again)))


def _has_to_copy(item: LoopItem, i: int, role: Any) -> bool:
    """Tell whether the value that a role has can be outside where it has to be in memory of the loop's own."""
    plan = item.plan
    if plan.unrolling is None:
        return plan.start[role] is not role
    if plan.test is None:
        return plan.finals[i] is not state_after(plan.unrolling, item.rounds)[role]
    return i in plan.owned and any(s not in plan.roles.movable() for s in _lies_in(plan.unrolling, role))


def _written(items: Sequence[Item], roles: set[Any]) -> list[Storage]:
    """Roles in the order in which the commands of a body write them, and loops in it the rows that they stack."""
    found: list[Storage] = []
    for item in walk(items):
        found += [s for step in item.planned for s in step.writes]
        if isinstance(item, LoopItem):
            found += item.plan.stacked_into
    return [s for s in found if s in roles]
