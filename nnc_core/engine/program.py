"""A compiled graph: records, slots, and calls that may run at the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from nnc_core.base.config import config
from nnc_core.base.errors import Error, ExecutionError, GraphError
from nnc_core.base.record import Call
from nnc_core.device import Array, Buffer, Program
from nnc_core.engine.execute import Executor
from nnc_core.engine.explain import explain
from nnc_core.engine.memory import MemoryPlan
from nnc_core.engine.plan import Plan, Step, Storage
from nnc_core.engine.profile import Profile, measure
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import CONSTANT
from nnc_core.symbol import Node, show_line


class ComputationGraph:
    """A graph compiled for one device: takes and gives arrays of that device.

    Calls are independent: each concurrent one has an arena of its own.  Inputs that an iopair names give up their
    memory: the caller hands in an array that nothing else reads, and uses the output in its place.
    """

    def __init__(self, graph: SymbolicGraph, outputs: Mapping[str, Node], plan: Plan, executor: Executor) -> None:
        self.graph, self.plan, self.executor, self.device = graph, plan, executor, executor.device
        self.outputs = dict(outputs)
        self._slots = _Slots(graph, self.outputs, plan)
        self._constants = {slot: self._constant_buffer(node) for node, slot in self._slots.constants.items()}
        self.records = tuple(self._record(step) for step in plan.steps)
        self._idle: deque[Program] = deque()

    def _constant_buffer(self, node: Node) -> Buffer:
        if node.op is not CONSTANT:
            assert node.op.reference is not None
            return self.device.buffer_of(self.executor.upload(node.op.reference(*node.attributes)))
        literal: Any = node.attributes[0]
        if literal.device == self.device.spec.id:
            return self.device.buffer_of(self.executor.pack(literal.array))
        if literal.device:
            raise GraphError(f"a constant is on {literal.device}", device=self.device.spec.id,
                             line=show_line(node.line),
                             hint="export with the array as an input, or move it with .to(...) first")
        return self.device.buffer_of(self.executor.upload(literal.array))

    def _record(self, step: Step) -> Call:
        places = [self.plan.place[x].storage for x in (*step.group.inputs, step.group.node)]
        if step.workspace is not None:
            places.append(step.workspace)
        return Call(step.choice.kernel, tuple(self._slots.of[s] for s in places), step.group.op.name)

    def run(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """One call.  Arrays by name in, arrays by name out; ExecutionError names the command and line that failed."""
        program, arrays = self._bound(given)
        try:
            self._run_stepwise(program) if config.eager else program.run()
        except Exception as error:
            raise self._failure(program, error) from error
        self._idle.append(program)
        return arrays

    def _bound(self, given: Mapping[str, Array]) -> tuple[Program, dict[str, Array]]:
        """A program of our own with this call's inputs and fresh outputs."""
        device, slots = self.device, self._slots
        program = self._program()
        buffers: dict[int, Buffer] = {}
        for name, slot in slots.inputs.items():
            buffers[slot] = device.buffer_of(self.executor.pack(given[name]))
        for slot, nbytes in slots.fresh.items():
            buffers[slot] = device.allocate(nbytes)
        for slot, buffer in buffers.items():
            program.bind(slot, buffer)
        return program, {name: device.array(buffers[slot], layout) for name, (slot, layout) in slots.outputs.items()}

    def _program(self) -> Program:
        with suppress(IndexError):
            return self._idle.popleft()
        device = self.device
        table: list[Buffer | None] = [None] * len(self._slots.of)
        for slot, buffer in self._constants.items():
            table[slot] = buffer
        for storage, buffer in zip(self.plan.arena, self._arena(), strict=True):
            table[self._slots.of[storage]] = buffer
        return device.capture(self.records, table, [device.default_stream])

    def _arena(self) -> list[Buffer]:
        """One buffer a storage: parts of the arena, or of their own where the device has no views."""
        plan, device = self.plan, self.device
        if "no-views" in device.spec.features:
            return [device.allocate(s.nbytes) for s in plan.arena]
        segments = [device.allocate(max(n, 1)) for n in plan.allocation.segments]
        size = plan.segment
        return [device.view(segments[s.offset // size], s.offset % size, s.nbytes) for s in plan.arena]

    def _run_stepwise(self, program: Program) -> None:
        """Command by command, waiting after each, so that an error is raised where it happened."""
        for index, record in enumerate(self.records):
            program.position = index
            program.launch(record)()
            self.device.default_stream.synchronize()

    def _failure(self, program: Program, error: Exception) -> ExecutionError:
        position = program.position
        lost = self._begun(position) if program.started else frozenset()
        text = f"{type(error).__name__}: {error.message if isinstance(error, Error) else error}"
        if not 0 <= position < len(self.plan.steps):
            return LostStateError.of(f"a call failed: {text}", lost, device=self.device.spec.id)
        step = self.plan.steps[position]
        return LostStateError.of(text, lost, operator=step.group.op.name, operands=str(step.command),
                                 device=self.device.spec.id, line=show_line(step.group.node.line))

    def _begun(self, position: int) -> frozenset[str]:
        """Inputs whose memory a call that failed there may have begun to overwrite."""
        updates = {node: i for i, step in enumerate(self.plan.steps) if (node := step.group.node) in self.plan.donated}
        names = {node: name for name, node in self.graph.inputs.items()}
        return frozenset(names[self.plan.donated[node]] for node, i in updates.items() if position < 0 or i <= position)

    @property
    def donated(self) -> frozenset[str]:
        """Names of the inputs whose memory a call takes over."""
        targets = set(self.plan.donated.values())
        return frozenset(name for name, node in self.graph.inputs.items() if node in targets)

    @property
    def memory_plan(self) -> MemoryPlan:
        """Peak, bound, and where everything lies."""
        return MemoryPlan.of(self.plan)

    def explain(self) -> str:
        """Each command with its backend, its memory and its line, as text."""
        return explain(self.plan, self.device)

    def profile_arrays(self, given: Mapping[str, Array], repeats: int = 5) -> Profile:
        """Time each command, waiting after it; donated inputs are copied first."""
        safe = {k: self.executor.duplicate(a) if k in self.donated else a for k, a in given.items()}
        program, _ = self._bound(safe)
        return measure(self.plan, self.records, program, self.device, repeats)


class LostStateError(ExecutionError):
    """`lost` names the inputs that the failing call had begun to overwrite."""

    lost: frozenset[str] = frozenset()

    @staticmethod
    def of(message: str, lost: frozenset[str], **where: str) -> LostStateError:
        error = LostStateError(message, **where)
        error.lost = lost
        return error


class _Slots:
    """A number for each storage, and which of them change with each call."""

    def __init__(self, graph: SymbolicGraph, outputs: Mapping[str, Node], plan: Plan) -> None:
        self.of: dict[Storage, int] = {}
        for storage in [p.storage for p in plan.place.values()] + [s.workspace for s in plan.steps if s.workspace]:
            self.of.setdefault(storage, len(self.of))
        place = plan.place
        self.inputs = {k: self.of[place[node].storage] for k, node in graph.inputs.items() if node in place}
        self.constants = {node: self.of[p.storage] for node, p in plan.place.items() if p.storage.kind == "constant"
                          and not node.inputs}
        self.fresh = {slot: s.nbytes for s, slot in self.of.items() if s.kind == "output"}
        self.outputs = {k: (self.of[place[node].storage], place[node].layout) for k, node in outputs.items()}
