"""The way of a program through machine code: records run without Python, which is called for what only it can do."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from nnc_core.base.loopnest import NOTE_WORDS
from nnc_core.base.record import Call, TapePush, TapeReset
from nnc_core.device import Around
from nnc_core.device.interpret import no_branch, tape_slots
from nnc_core.device.launches import InLoops
from nnc_cpu.llvm.resident import load_for_ever
from nnc_cpu.native.lent import KNOWN, Lent
from nnc_cpu.native.slots import NativeSlots
from nnc_cpu.native.words import Words
from nnc_cpu.nests import TieredKernel, machine_of
from nnc_cpu.threads.pool import code, pool, wanted_threads

if TYPE_CHECKING:
    from nnc_cpu.program import NumpyProgram

LOOK = 20_000_000
"""Nanoseconds, as estimated, after which Python may look at signals at the end of a round."""
_PYTHONS_CALL, _LOOK, _NO_BRANCH, _TAPES_RECORD, _NOTED = range(1, 6)

_ENTER = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


class _State(ctypes.Structure):
    """`program.ll` says what is what."""

    _fields_ = (
        ("words", ctypes.c_void_p), ("next", ctypes.c_int64), ("slots", ctypes.c_void_p), ("rounds", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p), ("pool", ctypes.c_void_p), ("helpers", ctypes.c_int64),
        ("position", ctypes.c_int64), ("watched", ctypes.c_int64), ("fuel", ctypes.c_int64),
        ("branch", ctypes.c_int64), ("run", ctypes.c_void_p))


@cache
def _enter() -> Any:
    names = ("nnc_program",)
    return _ENTER(load_for_ever("nnc_cpu.native", "program.ll", names,
                                NOTE_BYTES=8 * NOTE_WORDS)["nnc_program"])


class NativeWay(InLoops):
    """Records as words, slots as addresses.  Calls that are Python's are launched as in any program with loops.

    At the begin of a run each slot has what it was bound to.  What records move, they move among the addresses; Python
    is shown it where it launches something, and is asked for it where a result lies there.
    """

    def __init__(self, program: NumpyProgram) -> None:
        super().__init__(program.calls, tape_slots(program.records))
        self.words = Words(program.records, lambda call: self.number[id(call)])
        count = len(program.slots)
        self._text = (ctypes.c_int64 * len(self.words.written))(*self.words.written)
        self.slots = NativeSlots(count, self.words.moved, self.words.tapes, self.words.tapes - self.words.emptied)
        self._rounds = (ctypes.c_int64 * (2 * self.words.rounds))()
        self._arguments = (ctypes.c_size_t * self.words.most_slots)()
        self._state = _State(
            ctypes.addressof(self._text), 0, ctypes.addressof(self.slots.now), ctypes.addressof(self._rounds),
            ctypes.addressof(self._arguments), None, 0, -1, 0, LOOK, 0, code().addresses["nnc_run"])
        self._place = ctypes.addressof(self._state)
        self._enter, self._most_threads = _enter(), 1
        self._pythons = dict(enumerate(program.calls))
        """Calls that are Python's, by number."""
        self._waiting: list[Any] = []
        """Kernels of these that may have machine code later."""
        for slot, buffer in enumerate(program.slots):
            self.slots.write(slot, buffer)
        self.take_over()

    # ---- calls
    def take_over(self) -> None:
        """Let calls whose machine code is there run without Python."""
        ready = {n: machine.tasks for n, call in self._pythons.items()
                 if (machine := machine_of(call.kernel)) is not None}
        for n, tasks in ready.items():
            del self._pythons[n]
            self._most_threads = max(self._most_threads, tasks.most_threads)
            for place, word in self.words.take_over(n, tasks).items():
                self._text[place] = word
        self._waiting = [call.kernel for call in self._pythons.values() if isinstance(call.kernel, TieredKernel)]

    def _pythons_calls(self, program: NumpyProgram, around: Around | None) -> None:
        """The call that Python was asked for, and those of Python right behind it."""
        state = self._state
        number, end = state.position, state.next
        while True:
            call = program.calls[number]
            self.slots.show(program, call.slots)
            launch = self.launch(program, call)
            if around is None:
                launch()
            else:
                around(call, launch)
            following = self.words.pythons_call(end)
            if following is None:
                break
            number, end = following
        state.position, state.next = number, end
        self._look_for_machine_code()

    def _look_for_machine_code(self) -> None:
        if self._waiting and any([machine_of(kernel) is not None for kernel in self._waiting]):
            self.take_over()

    # ---- slots
    @property
    def is_straight(self) -> bool:
        """Tell whether machine code alone looks at the slots, and leaves them where they are."""
        return KNOWN and not (self._pythons or self.slots.moved or self.slots.tapes)

    def lent(self, slots: Sequence[int]) -> Lent:
        """Make what puts arrays into these slots."""
        return Lent(slots, self.slots)

    def moved(self, program: Any, slot: int) -> None:
        super().moved(program, slot)
        if not self.slots.showing:
            self.slots.write(slot, program.slots[slot])

    def _tapes_record(self, program: NumpyProgram, record: Any) -> None:
        """Fill, empty or reverse a tape."""
        if isinstance(record, TapePush):
            self.slots.push(program, record.tape, record.slot, record.nbytes)
        elif isinstance(record, TapeReset):
            self.slots.reset(program, record.tape)
        else:
            self.slots.reverse(program, record.tape)

    # ---- runs
    def run_with(self, program: Any, around: Around | None) -> None:
        self._look_for_machine_code()
        state = self._state
        state.next, state.position, state.fuel, state.watched = 0, -1, LOOK, around is not None
        self.slots.begin(program)
        if self._pythons or around is not None:
            self.see_passing(program)
        if self._most_threads > 1:
            self._take_threads()
        try:
            while status := self._enter(self._place):
                self._serve(program, status, around)
        finally:
            self.slots.end(program)
        program.position = state.position

    def _serve(self, program: NumpyProgram, status: int, around: Around | None) -> None:
        state = self._state
        program.started = program.started or state.fuel != LOOK
        if status == _PYTHONS_CALL:
            self._pythons_calls(program, around)
        elif status == _LOOK:
            state.fuel = LOOK - 1  # here Python runs the handlers of signals
        elif status == _TAPES_RECORD:
            self._tapes_record(program, self.words.of_tapes[state.branch])
        elif status == _NOTED:
            program.position = state.position
            self._noted(program.calls[state.position])
        else:
            program.position = state.position
            raise no_branch(self.words.switches[state.next], state.branch)

    def _noted(self, call: Call) -> None:
        machine = machine_of(call.kernel)
        assert machine is not None
        machine.noted(self._arguments[: len(call.slots)])

    def _take_threads(self) -> None:
        helpers = min(self._most_threads, wanted_threads()) - 1
        helpers = pool().helpers(helpers) if helpers > 0 else 0
        self._state.helpers, self._state.pool = helpers, pool().address if helpers else None

    # ---- what is kept between runs
    def let_go(self, program: Any, slots: Sequence[int]) -> None:
        for slot in slots:
            buffer = program.slots[slot]
            if buffer is not None and not program.device.pool.owns(buffer):
                program.put(slot, None)
            self.unbind(program, slot)
        self.slots.wholes.clear()

    def release(self) -> None:
        super().release()
        self.slots.wholes.clear()

    def holds(self, blocks: frozenset[int]) -> bool:
        return bool(self._pythons or self.parts or self.slots.wholes)
