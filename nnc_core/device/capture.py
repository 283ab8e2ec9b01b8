"""A program of records bound to buffers: the default one runs them from Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nnc_core.base.record import Await, Call, JumpIf, LoopEnd, Record, RotatePointer, Signal, SubList
from nnc_core.device.buffer import Buffer
from nnc_core.device.kernel import Launch
from nnc_core.device.stream import Event, Stream

if TYPE_CHECKING:
    from nnc_core.device.device import Device


class Program(ABC):
    """Records with a table of buffers.  Used by one call at a time."""

    position: int = 0
    """Index of the record that ran last, to name it when it fails; -1 when the device cannot tell."""

    @abstractmethod
    def bind(self, slot: int, buffer: Buffer) -> None:
        """Put a buffer into a slot; what was bound before is kept alive no longer."""

    @abstractmethod
    def run(self) -> None:
        """Enqueue everything.  All slots are bound."""

    @abstractmethod
    def launch(self, call: Call) -> Launch:
        """One of the calls with its arguments set, to run alone."""


class PythonProgram(Program):
    """Runs records one after another.  A list of plain calls costs the launches alone; arguments are set by `bind`."""

    def __init__(self, device: Device, records: Sequence[Record], slots: Sequence[Buffer | None],
                 streams: Sequence[Stream]) -> None:
        self.device, self.records, self.streams = device, tuple(records), streams
        self.slots = list(slots)
        self.events: dict[int, Event] = {}
        self.launches: dict[Call, Launch | None] = {}
        self.users: dict[int, list[Call]] = {}
        for call in _calls(self.records):
            self._add(call)
        self.flat = all(isinstance(r, Call) for r in self.records)
        self.program: list[Launch] | None = None

    def _add(self, call: Call) -> None:
        self.launches[call] = None
        for slot in set(call.slots):
            self.users.setdefault(slot, []).append(call)

    def bind(self, slot: int, buffer: Buffer) -> None:
        if self.slots[slot] is not buffer:
            self.slots[slot] = buffer
            self.program = None
            for call in self.users.get(slot, ()):
                self.launches[call] = None

    def run(self) -> None:
        if not self.flat:
            self._interpret(self.records)
            return
        if self.program is None:
            self.program = [self.launch(call) for call in self.records if isinstance(call, Call)]
        position = 0
        try:
            for launch in self.program:
                launch()
                position += 1
        finally:
            self.position = position

    def launch(self, call: Call) -> Launch:
        launch = self.launches[call]
        if launch is None:
            buffers = [self.slots[s] for s in call.slots]
            launch = call.kernel.bind(buffers, self.streams[call.stream])
            self.launches[call] = launch
        return launch

    def _interpret(self, records: Sequence[Record]) -> None:
        at = 0
        while at < len(records):
            self.position = at
            jump = self._step(records[at])
            at = at + 1 if jump is None else jump

    def _step(self, record: Record) -> int | None:
        match record:
            case Call():
                self.launch(record)()
            case JumpIf(slot, when, target):
                return target if self._truth(slot) == when else None
            case LoopEnd(target):
                return target
            case RotatePointer(slots):
                self._rotate(slots)
            case SubList(records):
                self._interpret(records)
            case Signal(event, stream):
                self.events[event] = self.streams[stream].record()
            case Await(event, stream):
                self.streams[stream].wait(self.events[event])
        return None

    def _truth(self, slot: int) -> bool:
        buffer, host = self.slots[slot], np.empty((), np.bool_)
        assert buffer is not None
        self.device.download(buffer, host).wait()
        return bool(host)

    def _rotate(self, slots: tuple[int, ...]) -> None:
        buffers = [self.slots[s] for s in slots]
        for slot, buffer in zip(slots, [buffers[-1], *buffers[:-1]], strict=True):
            assert buffer is not None
            self.bind(slot, buffer)


def _calls(records: Sequence[Record]) -> list[Call]:
    """All calls, those of sub-lists included, each once."""
    found: dict[Call, None] = {}
    pending = list(records)
    for record in pending:
        if isinstance(record, Call):
            found[record] = None
        elif isinstance(record, SubList):
            pending.extend(record.records)
    return list(found)
