"""The way of a program through machine code: records run without Python, which is called for what only it can do."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from nnc_core.base.record import Call
from nnc_core.device import Around
from nnc_core.device.interpret import no_branch
from nnc_core.device.launches import InLoops
from nnc_cpu.llvm.resident import load_for_ever
from nnc_cpu.native.words import PYTHON, Words
from nnc_cpu.nests import TieredKernel, machine_of
from nnc_cpu.threads.pool import code, pool, wanted_threads
from nnc_cpu.threads.tasks import PIECES, address_of

if TYPE_CHECKING:
    from nnc_cpu.program import NumpyProgram

LOOK = 20_000_000
"""Nanoseconds, as estimated, after which Python may look at signals at the end of a round."""
_PYTHONS_CALL, _LOOK, _NO_BRANCH = 1, 2, 3

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
    return _ENTER(load_for_ever("nnc_cpu.native", "program.ll", names, PIECES=PIECES)["nnc_program"])


class NativeWay(InLoops):
    """Records as words, slots as addresses.  Calls that are Python's are launched as in any program with loops.

    At the begin of a run each slot has what it was bound to.  What records move, they move among the addresses; Python
    is shown it where it launches something, and is asked for it where a result lies there.
    """

    def __init__(self, program: NumpyProgram) -> None:
        super().__init__(program.calls, frozenset())
        self.words = Words(program.records, lambda call: self.number[id(call)])
        count = len(program.slots)
        self._text = (ctypes.c_int64 * len(self.words.written))(*self.words.written)
        self._slots, self._bound = (ctypes.c_int64 * (3 * count))(), (ctypes.c_int64 * (3 * count))()
        """Address, slot of the whole buffer, and bytes of what each slot has now, and at the begin of a run."""
        self._rounds = (ctypes.c_int64 * (2 * self.words.rounds))()
        self._arguments = (ctypes.c_size_t * self.words.most_slots)()
        self._state = _State(
            ctypes.addressof(self._text), 0, ctypes.addressof(self._slots), ctypes.addressof(self._rounds),
            ctypes.addressof(self._arguments), None, 0, -1, 0, LOOK, 0, code().addresses["nnc_run"])
        self._place = ctypes.addressof(self._state)
        self._enter, self._most_threads = _enter(), 1
        self._pythons = dict(enumerate(program.calls))
        """Calls that are Python's, by number."""
        self._waiting: list[Any] = []
        """Kernels of these that may have machine code later."""
        self._behind: dict[int, Call] = {}
        """Calls that are Python's, by the number of the one right before them that is so too."""
        self._replaced: dict[int, Any] = {}
        """The buffers that slots are bound to while Python is shown what they have now."""
        self._showing = False
        for slot in range(count):
            self._slots[3 * slot + 1] = self._bound[3 * slot + 1] = slot
            self._write(program, slot)
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
        text, ends = self.words.written, {n: self.words.end(n) for n in self._pythons}
        self._behind = {n: self._pythons[text[end + 1]] for n, end in ends.items() if text[end] == PYTHON}
        self._waiting = [call.kernel for call in self._pythons.values() if isinstance(call.kernel, TieredKernel)]

    def _pythons_calls(self, program: NumpyProgram, around: Around | None) -> None:
        """The call that Python was asked for, and those of Python right behind it."""
        call: Call | None = program.calls[self._state.position]
        while call is not None:
            self._show(program, call)
            launch = self.launch(program, call)
            if around is None:
                launch()
            else:
                around(call, launch)
            number = self._state.position = self.number[id(call)]
            call = self._behind.get(number)
        self._state.next = self.words.end(number)
        self._look_for_machine_code()

    def _look_for_machine_code(self) -> None:
        if self._waiting and any([machine_of(kernel) is not None for kernel in self._waiting]):
            self.take_over()

    # ---- slots
    def moved(self, program: Any, slot: int) -> None:
        super().moved(program, slot)
        if not self._showing:
            self._write(program, slot)

    def _write(self, program: Any, slot: int) -> None:
        buffer = program.slots[slot]
        self._slots[3 * slot] = self._bound[3 * slot] = 0 if buffer is None else address_of(buffer)
        if self.words.moved:
            self._slots[3 * slot + 1] = slot
            self._slots[3 * slot + 2] = self._bound[3 * slot + 2] = 0 if buffer is None else buffer.nbytes

    def content(self, program: NumpyProgram, slot: int) -> Any:
        """The buffer that a slot has now."""
        if slot not in self.words.moved:
            return program.slots[slot]
        address, root, nbytes = self._slots[3 * slot : 3 * slot + 3]
        whole = self._replaced[root] if root in self._replaced else program.slots[root]
        if whole is None:
            return None
        offset = address - address_of(whole)
        if not 0 <= offset <= whole.nbytes - nbytes:
            return program.slots[slot]  # another buffer has been bound since the last run
        return whole if not offset and nbytes == whole.nbytes else self.part(program, whole, offset, nbytes)

    def _show(self, program: NumpyProgram, call: Call) -> None:
        """Let Python see what the slots of a call have now."""
        for slot in self.words.moved.intersection(call.slots):
            buffer = self.content(program, slot)
            if buffer is not program.slots[slot]:
                self._replaced.setdefault(slot, program.slots[slot])
                self._put_for_python(program, slot, buffer)

    def _put_for_python(self, program: NumpyProgram, slot: int, buffer: Any) -> None:
        self._showing = True
        program.put(slot, buffer)
        self._showing = False

    def _hide(self, program: NumpyProgram) -> None:
        """Undo what `_show` has done."""
        for slot, buffer in self._replaced.items():
            self._put_for_python(program, slot, buffer)
        self._replaced.clear()

    # ---- runs
    def run_with(self, program: Any, around: Around | None) -> None:
        self._look_for_machine_code()
        state = self._state
        state.next, state.position, state.fuel, state.watched = 0, -1, LOOK, around is not None
        if self.words.moved:
            ctypes.memmove(self._slots, self._bound, ctypes.sizeof(self._bound))
        if self._pythons or around is not None:
            self.see_passing(program)
        if self._most_threads > 1:
            self._take_threads()
        try:
            while status := self._enter(self._place):
                self._serve(program, status, around)
        finally:
            if self._replaced:
                self._hide(program)
        program.position = state.position

    def _serve(self, program: NumpyProgram, status: int, around: Around | None) -> None:
        state = self._state
        program.started = program.started or state.fuel != LOOK
        if status == _PYTHONS_CALL:
            self._pythons_calls(program, around)
        elif status == _LOOK:
            state.fuel = LOOK - 1  # here Python runs the handlers of signals
        else:
            program.position = state.position
            raise no_branch(self.words.switches[state.next], state.branch)

    def _take_threads(self) -> None:
        helpers = min(self._most_threads, wanted_threads()) - 1
        helpers = pool().helpers(helpers) if helpers > 0 else 0
        self._state.helpers, self._state.pool = helpers, pool().address if helpers else None

    # ---- what is kept between runs
    def let_go(self, program: Any, slots: Sequence[int]) -> None:
        for slot in slots:
            buffer = program.slots[slot]
            if slot in self.words.moved:
                self.unbind(program, slot)
            elif buffer is not None and not program.device.pool.owns(buffer):
                program.put(slot, None)
                self.unbind(program, slot)

    def holds(self, blocks: frozenset[int]) -> bool:
        return bool(self._pythons or self.parts)
