"""Launches of a program that runs from Python: made once for each set of buffers, kept for when they come back."""

from __future__ import annotations

from collections.abc import Sequence
from operator import length_hint
from typing import TYPE_CHECKING, Any

from nnc_core.base.record import Call
from nnc_core.device.buffer import Buffer
from nnc_core.device.interpret import Interpreter
from nnc_core.device.kernel import Launch

if TYPE_CHECKING:
    from nnc_core.device.capture import Around, PythonProgram

BINDINGS = 8
"""Sets of buffers with the launches made for them that a program keeps: results go round through a few blocks of a
pool."""
PARTS = 4096
"""Parts of buffers that a program with loops keeps for when they come by again."""


class InLine:
    """Calls alone: all launches for one set of buffers are a list, and there are lists for the sets met lately."""

    def __init__(self, count: int) -> None:
        self.launches: list[Launch] = [_unbound] * count
        self.unbound = set(range(count))
        self.slots_moved: set[int] = set()
        self.bindings: dict[tuple[int, ...], tuple[list[Launch], list[Any]]] = {}
        """Launches, and what is in the varying slots, by the ids of that."""
        self.made = 0
        """Launches made for the bindings that are kept, beyond those of the first."""

    def varies(self) -> None:
        """There is one more varying slot: what is kept is by the ids of fewer."""
        self.bindings.clear()

    def moved(self, program: PythonProgram, slot: int) -> None:
        """A slot has another buffer."""
        self.slots_moved.add(slot)

    def run(self, program: PythonProgram) -> None:
        if self.slots_moved or self.unbound:
            self._bind(program)
        program.started = True
        left = iter(self.launches)
        try:
            for launch in left:
                launch()
        finally:
            program.position = len(self.launches) - length_hint(left) - 1

    def run_with(self, program: PythonProgram, around: Around) -> None:
        self._bind(program)
        program.started = True
        for n, launch in enumerate(self.launches):
            program.position = n
            around(program.calls[n], launch)

    def release(self) -> None:
        """Make every launch anew."""
        self.bindings.clear()
        self.launches = [_unbound] * len(self.launches)
        self.unbound = set(range(len(self.launches)))

    def let_go(self, program: PythonProgram, slots: Sequence[int]) -> None:
        """Empty slots with buffers that are no blocks of the pool."""
        for slot in slots:
            buffer = program.slots[slot]
            if buffer is not None and not program.device.pool.owns(buffer):
                program.put(slot, None)
                self.bindings.clear()
                for n in program.users.get(slot, ()):
                    self.launches[n] = _unbound

    def holds(self, blocks: frozenset[int]) -> bool:
        return any(not blocks.isdisjoint(key) for key in self.bindings)

    def _bind(self, program: PythonProgram) -> None:
        """Take the launches made for what is in the slots now, or make those that there are not."""
        slots, varying, owns = program.slots, program.varying, program.device.pool.owns
        key = tuple([id(slots[slot]) for slot in varying])
        found = self.bindings.get(key)
        if found is None:
            made = self.made
            found = self._made(program), [slots[slot] for slot in varying]
            passing = not all([owns(slots[slot]) for slot in self.slots_moved.intersection(varying)])
            if passing or self.made > program.device.kept_launches:
                self.bindings.clear()
                self.made -= made
            elif len(self.bindings) >= BINDINGS:
                del self.bindings[next(iter(self.bindings))]
            self.bindings[key] = found
        self.launches = found[0]
        self.slots_moved.clear()
        self.unbound.clear()

    def _made(self, program: PythonProgram) -> list[Launch]:
        launches = list(self.launches)
        numbers = sorted(self.unbound.union(*[program.users.get(slot, ()) for slot in self.slots_moved]))
        for n in numbers:
            program.position = n
            launches[n] = program.bound(n)
        self.made += 0 if self.unbound else len(numbers)
        return launches


class InLoops:
    """Records with jumps and moving pointers: rounds of a loop meet the same buffers at each run, so each launch is
    kept with the buffers that it was made for."""

    def __init__(self, calls: Sequence[Call], taped: frozenset[int]) -> None:
        self.number = {id(call): n for n, call in enumerate(calls)}  # records live as long as the program
        self.launches: list[Launch] = [_unbound] * len(calls)
        self.stale = set(range(len(calls)))
        """Calls some slot of which has another buffer than their launch."""
        self.known: dict[tuple[int, ...], tuple[Launch, list[Any]]] = {}
        """Launches and their buffers, by number of call and ids of the buffers."""
        self.parts: dict[tuple[int, int, int], tuple[Any, Any]] = {}
        """Parts, and what they are parts of, by its id, offset and size."""
        self.taped = taped
        self.lasting = [taped.isdisjoint(call.slots) for call in calls]
        """Calls that see no buffers of tapes, which may be the caller's."""
        self.passing: set[int] = set()
        """Ids of buffers of this run that are somebody else's: nothing that sees them is kept."""

    def varies(self) -> None:
        """There is one more varying slot: launches are kept by the slots of their calls."""

    def moved(self, program: PythonProgram, slot: int) -> None:
        """A slot has another buffer."""
        self.stale.update(program.users.get(slot, ()))

    def run(self, program: PythonProgram) -> None:
        self.run_with(program, None)

    def see_passing(self, program: PythonProgram) -> None:
        """Look which buffers are somebody else's."""
        owns = program.device.pool.owns
        self.passing = {id(buffer) for buffer in [program.slots[s] for s in program.varying] if not owns(buffer)}

    def run_with(self, program: PythonProgram, around: Around | None) -> None:
        self.see_passing(program)
        Interpreter(program, around).run(program.records)

    def let_go(self, program: PythonProgram, slots: Sequence[int]) -> None:
        """Empty slots with passing buffers."""
        for slot in slots:
            buffer = program.slots[slot]
            if slot in self.taped or id(buffer) in self.passing:
                program.put(slot, None)
                self.unbind(program, slot)

    def unbind(self, program: PythonProgram, slot: int) -> None:
        """Drop the launches that see a slot."""
        for n in program.users.get(slot, ()):
            self.launches[n] = _unbound
            self.stale.add(n)

    def release(self) -> None:
        """Make every launch anew."""
        self.known.clear()
        self.parts.clear()
        self.launches = [_unbound] * len(self.launches)
        self.stale = set(range(len(self.launches)))

    def holds(self, blocks: frozenset[int]) -> bool:
        return True

    def part(self, program: PythonProgram, source: Buffer, offset: int, nbytes: int) -> Buffer:
        """Part of a buffer, the same object for as long as it is kept."""
        key = (id(source), offset, nbytes)
        found = self.parts.get(key)
        if found is None:
            found = program.device.view(source, offset, nbytes), source
            if id(source) in self.passing or len(self.parts) >= PARTS:
                self.passing.add(id(found[0]))
            else:
                self.parts[key] = found
        return found[0]

    def launch(self, program: PythonProgram, call: Call) -> Launch:
        """One of the calls with its arguments set."""
        n = program.position = self.number[id(call)]
        if n in self.stale:
            self.launches[n] = self._known(program, n, call) if self.lasting[n] else program.bound(n)
            self.stale.discard(n)
        program.started = True
        return self.launches[n]

    def _known(self, program: PythonProgram, n: int, call: Call) -> Launch:
        slots = program.slots
        key = (n, *[id(slots[slot]) for slot in call.slots])
        found = self.known.get(key)
        if found is None:
            found = program.bound(n), [slots[slot] for slot in call.slots]
            if self.passing.isdisjoint(key) and len(self.known) < program.device.kept_launches:
                self.known[key] = found
        return found[0]


def _unbound() -> None:
    raise AssertionError("a launch without arguments")
