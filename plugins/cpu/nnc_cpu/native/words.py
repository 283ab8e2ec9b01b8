"""Records as the words that `program.ll` runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

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
from nnc_cpu.threads.tasks import Tasks

(CALL, PYTHON, JUMP, JUMP_IF, SWITCH, ROTATE, REBIND, WINDOW, REPEAT, AGAIN, TAPE_READ, REPEAT_TAPE,
 TAPES_RECORD) = range(1, 14)
END = 0
HEAD = 9
"""Words of a call before its slots."""

_Target: TypeAlias = tuple[int, int]
"""A word that is to be the place of a record, and the index of that record."""


class Words:
    """The words of a program; calls are Python's until `take_over`."""

    def __init__(self, records: Sequence[Record], number_of: Callable[[Call], int]) -> None:
        self.number_of = number_of
        self.written: list[int] = []
        self.at: dict[int, list[int]] = {}
        """The places of each call, by number."""
        self.switches: dict[int, Switch] = {}
        """Switches by their places."""
        self.moved: set[int] = set()
        """Slots that records let have other buffers."""
        self.tapes: set[int] = set()
        self.emptied: set[int] = set()
        """Tapes that records begin."""
        self.of_tapes: list[Record] = []
        """Records that Python carries out, as they may allocate."""
        self.most_slots, self.rounds, self.loops = 1, 1, False
        self._writers: dict[type, Callable[[Any, int], list[_Target]]] = {
            Call: self._call, Jump: self._jump, JumpIf: self._jump_if, Switch: self._switch, Repeat: self._repeat,
            RotatePointer: self._rotate, Rebind: self._rebind, Window: self._window,
            TapeRead: self._read, TapePush: self._tape, TapeReset: self._tape, TapeReverse: self._tape}  # fmt: skip
        self._list(records, 0)
        self.written.append(END)
        assert self.tapes.isdisjoint(self.moved), "tapes stay in their slots"

    def take_over(self, number: int, tasks: Tasks) -> dict[int, int]:
        """The words that let a call run without Python, by their places."""
        words = (CALL, number, tasks.address, tasks.numbers, tasks.total, tasks.most_threads,
                 max(1, int(tasks.seconds * 1e9)), int(tasks.notes))
        changed = {at + k: word for at in self.at[number] for k, word in enumerate(words)}
        for place, word in changed.items():
            self.written[place] = word
        return changed

    def pythons_call(self, at: int) -> tuple[int, int] | None:
        """The number of a call of Python at some place, and the place behind it; None for anything else."""
        if self.written[at] != PYTHON:
            return None
        return self.written[at + 1], at + HEAD + self.written[at + HEAD - 1]

    def _list(self, records: Sequence[Record], round: int) -> None:
        """A list with targets of its own; `round` numbers the innermost repetition, 0 none."""
        places, targets = [], list[_Target]()
        for record in records:
            places.append(len(self.written))
            targets += self._writers[record.__class__](record, round)
        places.append(len(self.written))
        for at, index in targets:
            self.written[at] = places[index]
            self.loops = self.loops or places[index] <= at

    def _write(self, *words: int) -> int:
        """Append an instruction; the place of its end."""
        self.written += words
        return len(self.written)

    def _call(self, call: Call, round: int) -> list[_Target]:
        number = self.number_of(call)
        self.at.setdefault(number, []).append(len(self.written))
        self.most_slots = max(self.most_slots, len(call.slots))
        self._write(PYTHON, number, 0, 0, 0, 0, 0, 0, len(call.slots), *call.slots)
        return []

    def _jump(self, jump: Jump, round: int) -> list[_Target]:
        return [(self._write(JUMP, 0) - 1, jump.target)]

    def _jump_if(self, jump: JumpIf, round: int) -> list[_Target]:
        return [(self._write(JUMP_IF, jump.slot, int(jump.when), 0) - 1, jump.target)]

    def _switch(self, switch: Switch, round: int) -> list[_Target]:
        self.switches[len(self.written)] = switch
        dtype, count = np.dtype(switch.dtype), len(switch.targets)
        kind = 8 * dtype.itemsize * (-1 if dtype.kind == "i" else 1)
        end = self._write(SWITCH, switch.slot, kind, -1, count, *[0] * count)
        targets = [*enumerate(switch.targets, end - count)]
        return targets if switch.otherwise < 0 else [*targets, (end - count - 2, switch.otherwise)]

    def _rotate(self, rotation: RotatePointer, round: int) -> list[_Target]:
        self.moved.update(rotation.slots)
        self._write(ROTATE, len(rotation.slots), *rotation.slots)
        return []

    def _rebind(self, rebind: Rebind, round: int) -> list[_Target]:
        self.moved.add(rebind.slot)
        self._write(REBIND, rebind.slot, rebind.source)
        return []

    def _window(self, window: Window, round: int) -> list[_Target]:
        self.moved.add(window.slot)
        self._write(WINDOW, window.slot, window.source, window.offset, window.step, round, window.nbytes)
        return []

    def _repeat(self, repeat: Repeat, round: int) -> list[_Target]:
        number, self.rounds, self.loops = self.rounds, self.rounds + 1, True
        if repeat.tape < 0:
            top = self._write(REPEAT, number, repeat.count, 0)
        else:
            self.tapes.add(repeat.tape)
            top = self._write(REPEAT_TAPE, number, repeat.tape, 0)
        self._list(repeat.records, number)
        self.written[top - 1] = self._write(AGAIN, number, top)
        return []

    def _read(self, read: TapeRead, round: int) -> list[_Target]:
        self.moved.add(read.slot)
        self.tapes.add(read.tape)
        self._write(TAPE_READ, read.slot, read.tape, round, int(read.reverse))
        return []

    def _tape(self, record: TapePush | TapeReset | TapeReverse, round: int) -> list[_Target]:
        self.tapes.add(record.tape)
        if isinstance(record, TapePush):
            self.moved.add(record.slot)
        if isinstance(record, TapeReset):
            self.emptied.add(record.tape)
        self._write(TAPES_RECORD, len(self.of_tapes))
        self.of_tapes.append(record)
        return []
