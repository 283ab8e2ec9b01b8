"""Running records from Python: jumps, loops, moving pointers, tapes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nnc_core.base.errors import OutOfRangeError
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

if TYPE_CHECKING:
    from nnc_core.device.capture import Around, PythonProgram


class BufferTape(list[Any]):
    """Buffers in the order in which a loop has pushed them, and those of earlier runs that may be used again."""

    def __init__(self) -> None:
        super().__init__()
        self.spare: deque[Any] = deque()

    @property
    def nbytes(self) -> int:
        """Bytes of all its buffers, which are alike."""
        first = self[0] if self else self.spare[0] if self.spare else None
        return 0 if first is None else (len(self) + len(self.spare)) * int(first.nbytes)


class Interpreter:
    """Runs the records of one program."""

    def __init__(self, program: PythonProgram, around: Around | None = None) -> None:
        self.program, self.around = program, around
        self.actions: dict[type, Callable[[Any, int], int | None]] = {
            Call: self._call, JumpIf: self._jump, Jump: lambda r, i: r.target, RotatePointer: self._rotate,
            Switch: self._switch, Repeat: self._repeat, Rebind: self._point, Window: self._window,
            TapePush: self._push, TapeRead: self._pull, TapeReset: self._clear,
            TapeReverse: lambda r, i: self.program.slots[r.tape].reverse()}  # fmt: skip

    def run(self, records: Sequence[Record], round: int = 0) -> None:
        """`round` counts those of the innermost Repeat."""
        at, actions, end = 0, self.actions, len(records)
        while at < end:
            record = records[at]
            jump = actions[record.__class__](record, round)
            at = at + 1 if jump is None else jump

    def _call(self, record: Call, round: int) -> None:
        launch = self.program.launch(record)
        if self.around is None:
            launch()
        else:
            self.around(record, launch)

    def _jump(self, record: JumpIf, round: int) -> int | None:
        return record.target if bool(self._scalar(record.slot, np.bool_)) == record.when else None

    def _switch(self, record: Switch, round: int) -> int:
        number = int(self._scalar(record.slot, record.dtype))
        if 0 <= number < len(record.targets):
            return record.targets[number]
        if record.otherwise < 0:
            raise no_branch(record, number)
        return record.otherwise

    def _scalar(self, slot: int, dtype: Any) -> Any:
        host = np.empty((), dtype)
        self.program.device.download(self.program.slots[slot], host).wait()
        return host

    def _rotate(self, record: RotatePointer, round: int) -> None:
        slots = record.slots
        buffers = [self.program.slots[s] for s in slots]
        for slot, buffer in zip(slots, [buffers[-1], *buffers[:-1]], strict=True):
            self.program.put(slot, buffer)

    def _point(self, record: Rebind, round: int) -> None:
        self.program.put(record.slot, self.program.slots[record.source])

    def _repeat(self, record: Repeat, round: int) -> None:
        count = record.count if record.tape < 0 else len(self.program.slots[record.tape])
        for i in range(count):
            self.run(record.records, i)

    def _window(self, record: Window, round: int) -> None:
        program = self.program
        part = program.part(program.slots[record.source], record.offset + record.step * round, record.nbytes)
        program.put(record.slot, part)

    def _push(self, record: TapePush, round: int) -> None:
        program, tape = self.program, self.program.slots[record.tape]
        tape.append(program.slots[record.slot])
        program.put(record.slot, tape.spare.popleft() if tape.spare else program.device.allocate(record.nbytes))

    def _pull(self, record: TapeRead, round: int) -> None:
        tape = self.program.slots[record.tape]
        self.program.put(record.slot, tape[len(tape) - 1 - round if record.reverse else round])

    def _clear(self, record: TapeReset, round: int) -> None:
        tape = self.program.slots[record.tape]
        tape.spare.extend(tape)
        tape.clear()


def no_branch(switch: Switch, number: int) -> OutOfRangeError:
    """The error of a number for which there is no branch."""
    return OutOfRangeError(f"there is no branch {number} among {len(switch.targets)}", operator="case_of",
                           line=switch.label or None, hint="give replacements for when no branch runs")


def tape_slots(records: Sequence[Record]) -> frozenset[int]:
    """The slots that buffers of tapes may come to."""
    found = {r.slot for r in _all(records) if isinstance(r, TapePush | TapeRead)}
    before = -1
    while len(found) > before:
        before = len(found)
        for record in _all(records):
            if isinstance(record, RotatePointer) and not found.isdisjoint(record.slots):
                found.update(record.slots)
            elif isinstance(record, Rebind | Window) and record.source in found:
                found.add(record.slot)
    return frozenset(found)


def _all(records: Sequence[Record]) -> Iterator[Record]:
    """The records, those of inner lists included."""
    pending = list(records)
    while pending:
        record = pending.pop()
        yield record
        if isinstance(record, Repeat):
            pending.extend(record.records)
