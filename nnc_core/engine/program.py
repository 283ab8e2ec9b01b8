"""A compiled graph: records, slots, and calls that may run at the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from nnc_core.base.config import config
from nnc_core.base.errors import Error, GraphError, as_error
from nnc_core.base.layout import Layout
from nnc_core.base.record import Call
from nnc_core.device import NO_VIEWS, Around, Array, Buffer, BufferTape, Launch, Program, calls_of
from nnc_core.device.arenas import tick
from nnc_core.engine.by_address import ByAddress
from nnc_core.engine.emit import Emitter
from nnc_core.engine.execute import Executor
from nnc_core.engine.explain import explain
from nnc_core.engine.index_checks import check_indices, check_program
from nnc_core.engine.memory import MemoryPlan
from nnc_core.engine.nonfinite import run_watched
from nnc_core.engine.noted import say_noted
from nnc_core.engine.plan_types import Plan
from nnc_core.engine.profile import Profile, measure
from nnc_core.engine.program_slots import Slots
from nnc_core.engine.storage import FOREVER
from nnc_core.engine.watched_program import watch_program
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import CONSTANT
from nnc_core.operator.control import is_tape
from nnc_core.operator.fused import FUSED
from nnc_core.symbol import Node, show_line

UNWATCHED = (False, "off", False)
"""`config.of_runs` of calls that nobody waits for and whose operands nobody looks at."""


class ComputationGraph:
    """A graph compiled for one device: takes and gives arrays of that device.

    Calls are independent: each concurrent one has an arena of its own.  Inputs that an iopair names give up their
    memory: the caller hands in an array that nothing else reads, and uses the output in its place.
    """

    def __init__(self, graph: SymbolicGraph, outputs: Mapping[str, Node], plan: Plan, emitter: Emitter,
                 executor: Executor) -> None:
        self.graph, self.plan, self.executor, self.device = graph, plan, executor, executor.device
        self.outputs = dict(outputs)
        self._slots = Slots(graph, self.outputs, plan, emitter)
        self._constants = {slot: self._constant_buffer(node) for node, slot in self._slots.constants.items()}
        self.records = emitter.records
        self._step_of = [emitter.step_of[id(call)] for call in calls_of(self.records)]
        self._makers = [(name, slot, self._maker(layout, is_tape(self.outputs[name].spec)))
                        for name, (slot, layout) in self._slots.outputs.items()]
        self._by_address = self._by_addresses([*self._slots.inputs], [*self.outputs])
        self._idle: deque[Program] = deque()
        self._arenas = self.device.arenas
        self._nbytes = sum([s.nbytes for s in plan.arena]) if self._scattered else sum(plan.allocation.segments)
        """Bytes that each program has for itself, those of tapes left out."""
        self.device.pool.follow(self)

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

    def _maker(self, layout: Layout, taped: bool) -> Callable[[Any], Array]:
        """Makes an output of what is in its slot."""
        return (lambda tape: TapeArray(tape, layout)) if taped else self.device.arrays(layout)

    def run(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """One call.  Arrays by name in, arrays by name out.

        An error is of the class that it has where the operator runs alone, and names the command and its line; its
        `lost` are the inputs that the call had begun to overwrite."""
        call = self._by_address
        if call is not None:
            found = self._run_by_addresses(call, [given[name] for name in self._slots.inputs])
            if found is not None:
                return dict(zip(self.outputs, found))  # noqa: B905 as many, at each call
        waits, nonfinite, indices = config.of_runs
        program = self._program()
        arrays = self._bound(program, given, nonfinite, indices, waits)
        self._has_run(program)
        return arrays

    def in_order(self, inputs: Sequence[str], outputs: Sequence[str]) -> Callable[[Sequence[Array]], Sequence[Array]]:
        """`run` for a caller who has arrays of the inputs in this order, and wants outputs in that."""
        call = self._by_addresses(inputs, outputs)

        def run(arrays: Sequence[Array]) -> Sequence[Array]:
            found = None if call is None else self._run_by_addresses(call, arrays)
            if found is None:
                by_name = self.run(dict(zip(inputs, arrays, strict=True)))
                found = [by_name[name] for name in outputs]
            return found

        return run

    def _by_addresses(self, inputs: Sequence[str], outputs: Sequence[str]) -> ByAddress | None:
        return ByAddress(self._slots, self.device, inputs, outputs) if self._slots.are_arrays else None

    def _run_by_addresses(self, call: ByAddress, arrays: Sequence[Array]) -> list[Array] | None:
        """One call; None where its arrays have to be bound."""
        if config.of_runs != UNWATCHED:
            return None
        program = self._program()
        if not program.lends(call.slots):
            self._idle.append(program)
            return None
        lent = call.lend(program, arrays)
        self._run(program, None, kept=False)
        results = call.results(program, lent)
        self._has_run(program)
        return results

    def _has_run(self, program: Program) -> None:
        program.used = tick()
        self._idle.append(program)
        if self._slots.tapes:
            self._arenas.resize(program, self._nbytes + self._bytes_on_tapes(program))
        if self._arenas.over:
            self._arenas.settle()

    def _bound(self, program: Program, given: Mapping[str, Array], nonfinite: str, indices: bool,
               waits: bool) -> dict[str, Array]:
        """One call of a program to which its arrays are bound."""
        watched = indices or nonfinite != "off"
        given_back = self.device.pool.given_back
        claims = self._bind(program, self._safe(given) if watched else given)
        around = self._watching(program, nonfinite, indices) if watched else self._wait_after if waits else None
        self._run(program, around, kept=watched)
        arrays = {}
        for name, slot, array_in in self._makers:
            buffer = program.buffer(slot)
            arrays[name] = array_in(claims.get(id(buffer), buffer))
        if self._slots.lent:
            program.release(self._slots.lent)
        if given_back != self.device.pool.given_back:
            program.forget()  # it was not there to be told
        return arrays

    def _run(self, program: Program, around: Around | None, kept: bool) -> None:
        """Run what has its arrays.  `kept`: the caller's have been copied, and are not overwritten."""
        try:
            if around is None:
                program.run()
            else:
                program.run_with(around)
        except Exception as error:
            known = as_error(error)
            self._locate(known, program, kept=kept)
            if known is error:
                raise
            raise known from error

    def forget(self, blocks: frozenset[int]) -> None:
        """Let programs that wait for a call go of blocks that the pool gives back to the device."""
        for _ in range(len(self._idle)):
            with suppress(IndexError):  # another thread calls it
                program = self._idle.popleft()
                if program.holds(blocks):
                    program.forget()
                self._idle.append(program)

    def _watching(self, program: Program, nonfinite: str, indices: bool) -> Around:
        """The function called around each command while a setting asks for a look at its operands."""

        def watched(call: Call, launch: Launch) -> None:
            step = self.plan.steps[self._step_of[program.position]]
            command, buffers = step.command, [program.buffer(s) for s in call.slots]
            operands = list(zip(command.inputs, buffers, strict=False))
            if step.group.op is FUSED and nonfinite != "off":
                watch_program(self.device, step.group, operands, nonfinite, indices)
            elif step.group.op is FUSED:
                check_program(self.device, step.group, operands)
            elif indices:
                check_indices(self.device, step.group.op, command.attributes, operands)
            if nonfinite == "off":
                launch()
            else:
                run_watched(self.device, nonfinite, command, buffers, launch)

        return watched

    def _wait_after(self, call: Call, launch: Launch) -> None:
        """So that an error is raised where it happened."""
        launch()
        self.device.default_stream.synchronize()

    def _bind(self, program: Program, given: Mapping[str, Array]) -> dict[int, Buffer]:
        """Give a program this call's inputs and outputs.  Returns the claims on outputs, on inputs that are overwritten
        and on copies, by the ids of their blocks: they are held for as long as the call lasts."""
        claims = dict[int, Buffer]()
        self._bind_inputs(program, given, claims)
        for slot, nbytes in self._slots.fresh.items():
            if not nbytes:
                program.bind(slot, BufferTape())
                continue
            block, claim = self.device.pool.claim(self.device, nbytes, None, program.buffer(slot))
            claims[id(block)] = claim
            program.bind(slot, block)
        return claims

    def _bind_inputs(self, program: Program, given: Mapping[str, Array], claims: dict[int, Buffer]) -> None:
        device, slots = self.device, self._slots
        for name, slot in slots.inputs.items():
            array = given[name]
            if program.has(slot, array):
                continue
            if array.__class__ is TapeArray:
                program.bind(slot, array.buffers)
                continue
            buffer = device.pooled_buffer(array)
            if buffer is None:
                buffer = device.packed_buffer(array)
                program.bind(slot, self._packed_copy(array, claims) if buffer is None else buffer)
                if buffer is not None and slot not in slots.overwritten:
                    program.note(slot, array)
                continue
            program.bind(slot, buffer)
            if slot in slots.overwritten:
                claims[id(buffer)] = device.buffer_of(array)
            else:
                program.note(slot, array)

    def _packed_copy(self, array: Array, claims: dict[int, Buffer]) -> Buffer:
        """The buffer of a packed copy."""
        copy = self.executor.pack(array)
        claim = self.device.buffer_of(copy)
        block = self.device.pooled_buffer(copy)
        if block is None:
            return claim
        claims[id(block)] = claim
        return block

    def reserve(self) -> None:
        """Allocate the memory of one call now."""
        self._idle.append(self._program())

    def _program(self) -> Program:
        try:
            return self._idle.pop()
        except IndexError:
            return self._another()

    def _another(self) -> Program:
        device, nbytes = self.device, self._nbytes
        self._arenas.make_room(nbytes)
        table: list[Any] = [None] * len(self._slots.of)
        for slot, buffer in self._constants.items():
            table[slot] = buffer
        for storage, buffer in zip(self.plan.arena, self._arena(), strict=True):
            table[self._slots.of[storage]] = buffer
        for slot, bytes_of_row in self._slots.pushed.items():
            table[slot] = device.allocate(bytes_of_row)
        for slot in self._slots.tapes:
            table[slot] = BufferTape()
        program = device.capture(self.records, table, device.default_stream)
        program.used = tick()
        if nbytes or self._slots.tapes:
            self._arenas.keep(program, self._idle, nbytes)
        return program

    def _bytes_on_tapes(self, program: Program) -> int:
        return sum([program.buffer(slot).nbytes for slot in self._slots.tapes])

    @property
    def _scattered(self) -> bool:
        return NO_VIEWS in self.device.spec.features

    def _arena(self) -> list[Buffer]:
        """One buffer a storage: parts of the arena, or of their own where the device has no views."""
        plan, device = self.plan, self.device
        if self._scattered:
            return [device.allocate(s.nbytes) for s in plan.arena]
        segments = [device.allocate(max(n, 1)) for n in plan.allocation.segments]
        size = plan.segment
        return [device.view(segments[s.offset // size], s.offset % size, s.nbytes) for s in plan.arena]

    def _safe(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """The given arrays, with copies of those that a call overwrites."""
        return {k: self.executor.duplicate(a) if k in self.donated else a for k, a in given.items()}

    def _locate(self, error: Error, program: Program, kept: bool) -> None:
        """Say which command failed and what is lost.  `kept`: the caller's arrays have not been overwritten."""
        position = self._step_of[program.position] if 0 <= program.position < len(self._step_of) else -1
        error.lost = self._begun(position) if program.started and not kept else frozenset()
        if 0 <= position < len(self.plan.steps):
            step = self.plan.steps[position]
            say_noted(error, step.group.op, step.command, step.group.lines)
            name = step.group.op.name
            own = error.operator in (None, name)  # a choice between branches is no command
            error.locate(operator=name, operands=str(step.command) if own else None,
                         line=show_line(step.group.line))
        error.locate(device=self.device.spec.id)

    def _begun(self, position: int) -> frozenset[str]:
        """Inputs whose memory a call that failed there may have begun to overwrite."""
        names = {node: name for name, node in self.graph.inputs.items()}
        reached = self.plan.steps[position].at if position >= 0 else FOREVER
        return frozenset([names[target] for node, target in self.plan.donated.items()
                          if self.plan.updated_at[node] <= reached])

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
        program = self._program()
        claims = self._bind(program, self._safe(given))
        step_of = dict(zip(map(id, calls_of(self.records)), self._step_of, strict=True))
        try:
            return measure(self.plan, step_of, program, self.device, repeats)
        except Error as error:
            self._locate(error, program, kept=True)
            raise
        finally:
            del claims


class TapeArray:
    """The rows that a loop has stacked up while a condition held: a buffer for each round.  Only loops read it."""

    __slots__ = ("buffers", "layout")

    def __init__(self, buffers: BufferTape, layout: Layout) -> None:
        self.buffers, self.layout = buffers, layout

    @property
    def dtype(self) -> Any:
        return self.layout.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.buffers), *self.layout.shape)
