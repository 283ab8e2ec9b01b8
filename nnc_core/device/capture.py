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
    started: bool = True
    """Whether the last run came as far as launching anything: before that nothing is overwritten."""

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
    """Runs records one after another.  A run costs the launches alone, and the setting of arguments for those whose
    buffers have changed since the last one."""

    def __init__(self, device: Device, records: Sequence[Record], slots: Sequence[Buffer | None],
                 streams: Sequence[Stream]) -> None:
        self.device, self.records, self.streams = device, tuple(records), streams
        self.slots = list(slots)
        self.events: dict[int, Event] = {}
        self.calls = _calls(self.records)
        self.number = {id(call): n for n, call in enumerate(self.calls)}  # records live as long as the program
        self.launches: list[Launch] = [_unbound] * len(self.calls)
        self.stale = set(range(len(self.calls)))
        self.users: dict[int, list[int]] = {}
        for n, call in enumerate(self.calls):
            for slot in set(call.slots):
                self.users.setdefault(slot, []).append(n)
        self.flat = list(self.records) == self.calls

    def bind(self, slot: int, buffer: Buffer) -> None:
        if self.slots[slot] is not buffer:
            self.slots[slot] = buffer
            self.stale.update(self.users.get(slot, ()))

    def run(self) -> None:
        if not self.flat:
            self._interpret(self.records)
            return
        self.started = False
        for n in sorted(self.stale):
            self.position = n
            self._set_arguments(n)
        self.started = True
        position = 0
        try:
            for launch in self.launches:
                launch()
                position += 1
        finally:
            self.position = position

    def launch(self, call: Call) -> Launch:
        n = self.number[id(call)]
        if n in self.stale:
            self._set_arguments(n)
        return self.launches[n]

    def _set_arguments(self, n: int) -> None:
        call = self.calls[n]
        self.launches[n] = call.kernel.bind([self.slots[s] for s in call.slots], self.streams[call.stream])
        self.stale.discard(n)

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
    """All calls, those of sub-lists included, each object once."""
    found: dict[int, Call] = {}
    pending = list(records)
    for record in pending:
        if isinstance(record, Call):
            found[id(record)] = record
        elif isinstance(record, SubList):
            pending.extend(record.records)
    return list(found.values())


def _unbound() -> None:
    raise AssertionError("a launch without arguments")
