"""Records from a plan: commands, loops and branches written down over numbered slots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from nnc_core.base.record import (
    Call,
    Jump,
    JumpIf,
    Rebind,
    Record,
    Repeat,
    RotatePointer,
    Switch,
    TapePush,
    TapeRead,
    TapeReset,
    TapeReverse,
    Window,
)
from nnc_core.device import NO_VIEWS, Device, Kernel
from nnc_core.engine.build import Key
from nnc_core.engine.plan_types import Plan
from nnc_core.engine.program_tree import BranchesItem, Item, LoopItem, PlannedCommand
from nnc_core.engine.storage import Rows, Storage
from nnc_core.engine.streams import spread, touched
from nnc_core.engine.unrolling import state_after
from nnc_core.operator.control import TRIPS
from nnc_core.symbol import show_line

Moved = Mapping[Any, Any]
"""Which storage stands for a role at the moment; those not in it stand for themselves."""


_UNSET: Any = None
"""In place of a jump whose target is not known yet."""


class _Leave(NamedTuple):
    """A jump out of a loop that is still to be set: its index, and the slot of the condition."""

    at: int
    slot: int


class Emitter:
    """Numbers storages as slots and writes records."""

    def __init__(self, plan: Plan, kernels: Mapping[Key, Kernel], device: Device) -> None:
        self.plan, self.kernels, self.device = plan, kernels, device
        self.slots: dict[Storage, int] = {}
        self.step_of: dict[int, int] = {}
        """For each call, by its id, the number of its command."""
        self.number = {id(step): i for i, step in enumerate(plan.steps)}
        for place in plan.place.values():
            self.slot(place.storage)
        self.records = self.in_streams(self.items(plan.items, {}, []))

    def slot(self, storage: Storage) -> int:
        return self.slots.setdefault(storage, len(self.slots))

    def items(self, items: Sequence[Item], moved: dict[Any, Any], out: list[Record], roles: Any = None) -> list[Record]:
        """Append the records of some items; `moved` follows the values of the loop whose `roles` these are."""
        for item in items:
            out += [self.call(step, moved, roles) for step in item.planned]
            if isinstance(item, LoopItem):
                _move(moved, item.plan.stacked_into, roles)
                _LoopWriter(self, item, moved, out).write()
            elif isinstance(item, BranchesItem):
                self.branches(item, moved, out)
        return out

    def call(self, step: PlannedCommand, moved: dict[Any, Any], roles: Any = None) -> Call:
        reads = [self.slot(moved.get(s, s)) for s in step.reads]
        _move(moved, step.writes, roles)
        rest = [moved.get(s, s) for s in step.writes] + ([step.workspace] if step.workspace is not None else [])
        call = Call(self.kernels[step.decision.key], (*reads, *[self.slot(s) for s in rest]), step.group.label,
                    line=step.group.line)
        self.step_of[id(call)] = self.number[id(step)]
        return call

    def in_streams(self, records: Sequence[Record]) -> tuple[Record, ...]:
        """The records spread over the device's streams, where they are calls alone."""
        calls = [record for record in records if isinstance(record, Call)]
        if self.device.streams < 2 or len(calls) != len(records):
            return tuple(records)
        numbers = [self.step_of[id(call)] for call in calls]
        one_arena = NO_VIEWS not in self.device.spec.features
        memory = [touched(self.plan.steps[number], self.slot, one_arena) for number in numbers]
        made = spread(calls, memory, self.device.streams)
        moved = [record for record in made if isinstance(record, Call)]
        self.step_of = dict(zip(map(id, moved), numbers, strict=True))
        return made

    def branches(self, item: BranchesItem, moved: Moved, out: list[Record]) -> None:
        """Switch to one of the arms; each but the last jumps to the end."""
        at = len(out)
        out.append(_UNSET)
        starts, ends = [], []
        for arm in item.arms:
            starts.append(len(out))
            self.items(arm, dict(moved), out)
            ends.append(len(out))
            out.append(_UNSET)
        for end in ends:
            out[end] = Jump(len(out))
        split = len(starts) - item.otherwise
        otherwise = starts[-1] if item.otherwise else -1
        dtype = item.group.inputs[0].dtype.name
        out[at] = Switch(self.slot(moved.get(item.index, item.index)), dtype, tuple(starts[:split]), otherwise,
                         show_line(item.group.node.line))


def _move(moved: dict[Any, Any], written: Iterable[Storage], roles: Any) -> None:
    """Roles of a loop's values that are written now have the buffers that they are written to."""
    for storage in written if roles is not None else ():
        if storage in roles.movable():
            moved[storage] = roles.target(storage, moved)


class _LoopWriter:
    """One loop, in the situation `moved` of the loops around it."""

    def __init__(self, emitter: Emitter, item: LoopItem, moved: Moved, out: list[Record]) -> None:
        self.emitter, self.item, self.plan, self.moved, self.out = emitter, item, item.plan, moved, out
        self.taped, self.backwards = item.loop.length == TRIPS, item.loop.reverse
        self.slot = emitter.slot
        self.start = {role: moved.get(s, s) for role, s in item.plan.start.items()}

    def write(self) -> None:
        for rows in self.plan.stacked:
            if rows.row.kind == "pushed":
                self.out.append(TapeReset(self.slot(self._outside(rows.whole))))
        if self.plan.unrolling is None:
            self._rotating()
        elif self.plan.test is None:
            self._counted()
        else:
            self._conditional()
        for rows in self.plan.stacked:
            if rows.row.kind == "pushed" and self.backwards:
                self.out.append(TapeReverse(self.slot(self._outside(rows.whole))))

    def _outside(self, storage: Storage) -> Storage:
        found: Storage = self.moved.get(storage, storage)
        return found

    # ---- the body, once
    def _round(self, out: list[Record], state: Moved, offset: int, step: int) -> None:
        """One round from a state; rows are `offset + step * (rounds of the Repeat)` from the begin or the end."""
        moved = {**self.moved, **state}
        for rows in self.plan.scanned:
            out.append(self._row(rows, offset, step))
        for rows in self.plan.stacked:
            if rows.row.kind == "window":
                out.append(self._row(rows, offset, step))
        self.emitter.items(self.item.body, moved, out, self.plan.roles)
        for rows in self.plan.stacked:
            if rows.row.kind == "pushed":
                out.append(TapePush(self.slot(self._outside(rows.whole)), self.slot(rows.row), rows.row.nbytes))

    def _row(self, rows: Rows, offset: int, step: int) -> Record:
        whole = self.slot(self._outside(rows.whole))
        if self.taped:
            return TapeRead(self.slot(rows.row), whole, self.backwards)
        if self.backwards:
            offset, step = self.item.rounds - 1 - offset, -step
        return Window(self.slot(rows.row), whole, offset * rows.nbytes, step * rows.nbytes, rows.nbytes)

    # ---- pointers rotate
    def _rotating(self) -> None:
        """The body is written once; whatever comes from outside is copied first, since its memory goes round."""
        for role, step in self.plan.copies.items():
            if self.start[role] is not role:
                self.out.append(self.emitter.call(step, dict(self.moved)))
        state = {role: role for role in self.plan.roles.carried} | {r: r for r in self.plan.roles.after}
        turn = [RotatePointer(tuple(map(self.slot, cycle))) for cycle in self.plan.roles.cycles if len(cycle) > 1]
        if self.plan.test is None:
            inner: list[Record] = []
            self._round(inner, state, 0, 1)
            tape = self.slot(self._outside(self.plan.scanned[0].whole)) if self.taped else -1
            self.out.append(Repeat((*inner, *turn), 0 if self.taped else self.item.rounds, tape))
            return
        top = len(self.out)
        leave = self._test(state)
        self._round(self.out, state, 0, 0)
        self.out += [*turn, Jump(top)]
        self._jump(leave)

    # ---- every value at a fixed place in each copy of the body
    def _counted(self) -> None:
        unrolling = self.plan.unrolling
        assert unrolling is not None
        rounds = self.item.rounds
        first, again = unrolling.first[:rounds], unrolling.again
        for i, before in enumerate(first):
            self._round(self.out, self._inside(before), i, 0)
        left = rounds - len(first)
        if left >= 2 * len(again):
            inner: list[Record] = []
            for i, before in enumerate(again):
                self._round(inner, self._inside(before), len(first) + i, len(again))
            self.out.append(Repeat(tuple(inner), left // len(again)))
            done = len(first) + left // len(again) * len(again)
        else:
            done = len(first)
        for i in range(done, rounds):
            self._round(self.out, self._inside(again[(i - len(first)) % len(again)]), i, 0)
        state = state_after(unrolling, rounds)
        inside = self._inside(state)
        for role, final in zip(self.plan.roles.carried, self.plan.finals, strict=True):
            if final is not state[role]:
                self._copy_to(role, inside[role], final)

    def _conditional(self) -> None:
        unrolling = self.plan.unrolling
        assert unrolling is not None
        leaves: list[tuple[_Leave, Moved]] = []
        for state in unrolling.first:
            leaves.append((self._test(self._inside(state)), state))
            self._round(self.out, self._inside(state), 0, 0)
        top = len(self.out)
        for state in unrolling.again:
            leaves.append((self._test(self._inside(state)), state))
            self._round(self.out, self._inside(state), 0, 0)
        self.out.append(Jump(top))
        ends = []
        for leave, left in leaves:
            self._jump(leave)
            self._leave(left)
            ends.append(len(self.out))
            self.out.append(_UNSET)
        for end in ends:
            self.out[end] = Jump(len(self.out))

    def _inside(self, state: Moved) -> dict[Any, Any]:
        """A state, with what came from outside where the loops around this one have it now."""
        came = {s: self.start[role] for role, s in self.plan.start.items() if s is not role}
        return {role: came.get(s, s) for role, s in state.items()}

    def _test(self, state: Moved) -> _Leave:
        """The condition, and a jump that leaves, whose target is still to be set."""
        assert self.plan.test is not None
        moved = {**self.moved, **state}
        self.emitter.items(self.item.cond, moved, self.out)
        self.out.append(_UNSET)
        return _Leave(len(self.out) - 1, self.slot(moved.get(self.plan.test, self.plan.test)))

    def _jump(self, leave: _Leave) -> None:
        """Let that jump go on at the end of what is written so far."""
        self.out[leave.at] = JumpIf(leave.slot, False, len(self.out))

    def _leave(self, state: Moved) -> None:
        """Rebind to where the values lie; what is still outside and must be our own is copied."""
        inside, held = self._inside(state), dict(state)
        for i, (role, final) in enumerate(zip(self.plan.roles.carried, self.plan.finals, strict=True)):
            lies: Storage = inside[role]
            if i in self.plan.owned and state[role] not in self.plan.roles.movable():
                lies = held[role] = self.plan.roles.target(role, held)
                self._copy_to(role, inside[role], lies)
            self.out.append(Rebind(self.slot(final), self.slot(lies)))

    def _copy_to(self, role: Storage, source: Storage, target: Storage) -> None:
        step = self.plan.copies[role]
        call = Call(self.emitter.kernels[step.decision.key], (self.slot(source), self.slot(target)), step.group.label)
        self.emitter.step_of[id(call)] = self.emitter.number[id(step)]
        self.out.append(call)
