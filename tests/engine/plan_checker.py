"""A checker of plans: a compiled program run on names of values instead of values.

The records run on memory that holds a number for each element (`Walk`): each call must find what it should read
(`Meaning`) at every byte, each jump and switch the number that it should ask, each output its value, and what nobody
gave away must be as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pytest

from nnc_core.base.layout import Layout
from nnc_core.base.record import Await, Call, JumpIf, Record, Signal, Switch
from nnc_core.device.capture import calls_of
from nnc_core.device.interpret import BufferTape, Interpreter
from nnc_core.engine import ComputationGraph
from nnc_core.engine.plan import row_layout, written_part
from nnc_core.engine.program_tree import BranchesItem, Item, LoopItem, PlannedCommand, walk
from nnc_core.operator.control import is_tape
from nnc_core.symbol import Node, postorder
from nnc_core.type import TensorSpec
from tests.engine.plan_meaning import MOST_CALLS, Meaning, Numbers, PlanError, TooLongError
from tests.engine.stream_order import check_order

RUNS = 3
"""How often a program with control flow is walked through."""
MOST_BYTES = 1 << 22
"""Programs with more memory are not followed: the numbers take up to eight times as much."""


class Memory(NamedTuple):
    """A part of an allocation."""

    numbers: Numbers
    """Of the whole allocation, one for each grain."""
    offset: int
    nbytes: int


Read: TypeAlias = tuple[Memory, Layout]


class Walk:
    """The records of one program run on numbers: it looks to the interpreter like a program and its device."""

    def __init__(self, compiled: ComputationGraph, records: Sequence[Record]) -> None:
        self.compiled, self.records, self.plan = compiled, records, compiled.plan
        self.device = self
        self.grain = _grain(compiled)
        steps = zip(calls_of(compiled.records), compiled._step_of, strict=True)
        self.step_of = {id(call): self.plan.steps[number] for call, number in steps}
        self.unnamed = {id(step) for loop in _loops(self.plan.items) for step in loop.plan.copies.values()}
        """Commands that copy whatever a loop carries at the moment."""
        self.slots: list[Any] = [None] * len(compiled._slots.of)
        for storage, part in zip(self.plan.arena, self.arena(), strict=True):
            self.slots[compiled._slots.of[storage]] = part
        for slot, nbytes in compiled._slots.pushed.items():
            self.slots[slot] = self.allocate(nbytes)
        for slot in compiled._slots.tapes:
            self.slots[slot] = BufferTape()

    def arena(self) -> list[Memory]:
        if "no-views" in self.compiled.device.spec.features:
            return [self.allocate(s.nbytes) for s in self.plan.arena]
        segments, size = [self.allocate(max(n, 1)) for n in self.plan.allocation.segments], self.plan.segment
        return [self.part(segments[s.offset // size], s.offset % size, s.nbytes) for s in self.plan.arena]

    # ---- what the interpreter asks of a device and of a program
    def allocate(self, nbytes: int) -> Memory:
        return Memory(np.zeros(-(-nbytes // self.grain), np.int64), 0, nbytes)

    def part(self, whole: Memory, offset: int, nbytes: int) -> Memory:
        if not 0 <= offset <= whole.nbytes - nbytes:
            raise PlanError(f"a window of {nbytes} bytes at {offset} in {whole.nbytes}")
        return Memory(whole.numbers, whole.offset + offset, nbytes)

    def put(self, slot: int, buffer: Any) -> None:
        self.slots[slot] = buffer

    def launch(self, call: Call) -> Any:
        return lambda: self.call(call)

    # ---- one run
    def run(self, meaning: Meaning) -> None:
        self.executions = {step: iter(found) for step, found in meaning.executions.items()}
        self.decisions = iter(meaning.decisions)
        leaves = self.bind_leaves(meaning)
        _Jumps(self).run(self.records)
        for name, (slot, layout) in self.compiled._slots.outputs.items():
            self.expect(self.slots[slot], layout, meaning.outputs[name], "output ", name)
        for step, left in self.executions.items():
            if next(left, None) is not None:
                raise PlanError(f"{next(s for s in self.plan.steps if id(s) == step).command} did not run")
        if next(self.decisions, None) is not None:
            raise PlanError("a condition is asked too seldom")
        for node, memory in leaves:
            self.expect(memory, node.spec.layout(), meaning.leaf(node), node, ", which is only read,")

    def bind_leaves(self, meaning: Meaning) -> list[tuple[Node, Memory]]:
        """Give inputs, constants and fresh outputs their slots; what must not change."""
        slots, donated, kept = self.compiled._slots, set(self.plan.donated.values()), []
        inputs = {self.compiled.graph.inputs[name]: slot for name, slot in slots.inputs.items()}
        for node, slot in [*inputs.items(), *slots.constants.items()]:
            value = meaning.leaf(node)
            if is_tape(node.spec):
                self.slots[slot] = BufferTape()
                self.slots[slot].extend(self.holding(row_layout(node.spec), x) for x in value)
                continue
            self.slots[slot] = self.holding(node.spec.layout(), value)
            if node not in donated:
                kept.append((node, self.slots[slot]))
        for slot, nbytes in slots.fresh.items():
            self.slots[slot] = self.allocate(nbytes) if nbytes else BufferTape()
        return kept

    def holding(self, layout: Layout, value: Numbers) -> Memory:
        memory = self.allocate(max(layout.nbytes, 1))
        self.elements(memory, layout)[...] = value[..., None]
        return memory

    def call(self, call: Call) -> None:
        step = self.step_of[id(call)]
        command = step.command
        n, m = len(command.inputs), len(command.outputs)
        reads = [(self.slots[s], x) for s, x in zip(call.slots[:n], command.inputs, strict=True)]
        writes = [(self.slots[s], x) for s, x in zip(call.slots[n : n + m], command.outputs, strict=True)]
        for slot in call.slots[n + m :]:
            scratch: Memory = self.slots[slot]
            writes.append((scratch, Layout.packed((scratch.nbytes // self.grain * self.grain,), np.dtype(np.uint8))))
        outputs: list[Any]
        if id(step) in self.unnamed:
            outputs = [self.elements(*reads[0])[..., 0].copy()]
        else:
            execution = next(self.executions.get(id(step), iter(())), None)
            if execution is None:
                raise PlanError(f"{command} runs too often")
            for (memory, layout), wanted, x in zip(reads, execution.inputs, step.group.inputs, strict=True):
                self.expect(memory, layout, wanted, x, ", operand of ", command, ",")
            outputs = execution.outputs
        if step.command.name == "update_slice" and _alike(reads[0], writes[0]) and 0 in step.decision.inplace:
            self.check_apart(step, reads[1:], [(writes[0][0], written_part(step.command))])
        else:
            self.check_apart(step, reads, writes)
        for (memory, layout), value in zip(writes[:m], outputs, strict=True):
            self.elements(memory, layout)[...] = value[..., None]
        for slot in call.slots[n + m :]:
            memory = self.slots[slot]
            memory.numbers[memory.offset // self.grain : -(-(memory.offset + memory.nbytes) // self.grain)] = -1

    def check_apart(self, step: PlannedCommand, reads: Sequence[Read], writes: Sequence[Read]) -> None:
        """No command writes where it reads, unless its kernel has said that it can."""
        for k, (target, out) in enumerate(writes):
            consents = step.decision.consents[k] if k < len(step.decision.consents) else ()
            for i, (source, x) in enumerate(reads):
                if source.numbers is not target.numbers or not x.size or not out.size:
                    continue
                there = _alike((source, x), (target, out)) and i in consents
                if not there and np.shares_memory(self.elements(source, x), self.elements(target, out)):
                    raise PlanError(f"{step.command} writes where it reads operand {i}")

    def expect(self, memory: Any, layout: Layout, wanted: Any, *what: object) -> None:
        if isinstance(memory, BufferTape):
            if len(memory) != len(wanted):
                raise PlanError(f"{_text(what)} is a tape of {len(memory)} rounds instead of {len(wanted)}")
            for row, value in zip(memory, wanted, strict=True):
                self.expect(row, layout, value, "a row of ", *what)
        elif not (self.elements(memory, layout) == wanted[..., None]).all():
            raise PlanError(f"{_text(what)} does not lie where it is read\n{self.compiled.explain()}")

    def elements(self, memory: Memory, layout: Layout) -> Numbers:
        """The numbers of each element, one for each grain of it."""
        shape, offset, strides, extent = _in_grains(layout, self.grain)
        if extent > memory.nbytes:
            raise PlanError(f"{layout} reaches beyond {memory.nbytes} bytes")
        if 0 in shape:
            return np.empty(shape, np.int64)
        return np.ndarray(shape, np.int64, memory.numbers, memory.offset // self.grain * 8 + offset, strides)


class _Jumps(Interpreter):
    """The interpreter of records, with answers that are made up."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)  # type: ignore[arg-type]
        self.walk = walk
        self.actions |= {Signal: lambda record, round: None, Await: lambda record, round: None}

    def _jump(self, record: JumpIf, round: int) -> int | None:
        return record.target if bool(self._asked(record.slot, np.dtype(np.bool_))) == record.when else None

    def _switch(self, record: Switch, round: int) -> int:
        number = self._asked(record.slot, np.dtype(record.dtype))
        return record.targets[number] if number < len(record.targets) else record.otherwise

    def _asked(self, slot: int, dtype: Any) -> int:
        decision = next(self.walk.decisions, None)
        if decision is None:
            raise PlanError("a condition is asked too often")
        self.walk.expect(self.walk.slots[slot], Layout.packed((), dtype), decision[0], "what a jump asks")
        return decision[1]


@lru_cache(maxsize=4096)
def _in_grains(layout: Layout, grain: int) -> tuple[tuple[int, ...], int, tuple[int, ...], int]:
    """Shape, offset and strides of the numbers, and the bytes that the layout reaches."""
    return ((*layout.shape, layout.dtype.itemsize // grain), layout.offset // grain * 8,
            (*[s // grain * 8 for s in layout.strides], 8), layout.extent)


def _text(what: Sequence[object]) -> str:
    return "".join(map(str, what))


def _alike(a: Read, b: Read) -> bool:
    return a[0].numbers is b[0].numbers and a[0].offset == b[0].offset and a[1] == b[1]


def _grain(compiled: ComputationGraph) -> int:
    """The bytes that are always together."""
    found = {layout.dtype.itemsize for step in compiled.plan.steps
             for layout in (*step.command.inputs, *step.command.outputs)}
    found |= {p.layout.dtype.itemsize for p in compiled.plan.place.values()}
    for item in walk(compiled.plan.items):
        if isinstance(item, LoopItem):
            found.add(8 if item.test is None else 1)
        elif isinstance(item, BranchesItem):
            found.add(item.group.inputs[0].dtype.itemsize)
    return min(found, default=1)


def _loops(items: Sequence[Item]) -> list[LoopItem]:
    return [item for item in walk(items) if isinstance(item, LoopItem)]


def check_plan(compiled: ComputationGraph, records: Sequence[Record] | None = None) -> bool:
    """PlanError if the records of a compiled graph, or those given, would hand over a wrong value; False for programs
    too long or too large to be followed."""
    plan, records = compiled.plan, compiled.records if records is None else records
    if any(isinstance(record, Signal) for record in records):
        check_order(compiled, records)
    storages = {id(p.storage): p.storage.nbytes for p in plan.place.values()}
    if len(plan.steps) > MOST_CALLS or sum(storages.values()) > MOST_BYTES:
        return False
    shapes = [n.shape for n in postorder(compiled.outputs.values()) if isinstance(n.spec, TensorSpec)]
    # views may show a few bytes many times; tapes have sizes without numbers
    if any(prod(d for d in shape if isinstance(d, int)) > MOST_BYTES for shape in shapes):
        return False
    try:
        meanings = [Meaning(compiled, run) for run in range(_runs(plan.items))]
    except TooLongError:
        return False
    walk = Walk(compiled, records)
    for meaning in meanings:
        walk.run(meaning)
    return True


def _runs(items: Sequence[Item]) -> int:
    """How often a program is walked through: until its branches have run, as far as that can be told."""
    ways = [1]
    for item in walk(items):
        if isinstance(item, BranchesItem):
            ways.append(len(item.arms))
        elif isinstance(item, LoopItem) and not isinstance(item.loop.length, int):
            ways.append(RUNS)
    return min(max(ways), RUNS)


@contextmanager
def every_plan_checked() -> Iterator[None]:
    """Within it, whatever is compiled is checked."""
    init = ComputationGraph.__init__

    def checked(self: ComputationGraph, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        check_plan(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ComputationGraph, "__init__", checked)
        yield
