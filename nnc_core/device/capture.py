"""A program of records bound to buffers: the default one runs them from Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from nnc_core.base.record import Call, Record
from nnc_core.device.buffer import Buffer
from nnc_core.device.interpret import Interpreter
from nnc_core.device.kernel import Launch
from nnc_core.device.origin import enqueued_for
from nnc_core.device.stream import Stream

if TYPE_CHECKING:
    from nnc_core.device.device import Device

Around: TypeAlias = Callable[[Call, Launch], object]


class Program(ABC):
    """Records with a table of buffers.  Used by one call at a time."""

    position: int = 0
    """Number of the call, counted in the order of `calls_of`, that ran last, to name it when it fails; -1 when the
    device cannot tell."""
    started: bool = True
    """True if the last run came as far as launching anything: before that nothing is overwritten."""

    @abstractmethod
    def bind(self, slot: int, buffer: Any) -> None:
        """Put a buffer, or a tape, into a slot; what was bound before is kept alive no longer."""

    @abstractmethod
    def buffer(self, slot: int) -> Any:
        """The content of a slot now."""

    @abstractmethod
    def release(self, slot: int) -> None:
        """Keep the content of a slot alive no longer: it is bound again before the next run."""

    @abstractmethod
    def run(self) -> None:
        """Enqueue everything.  All slots are bound."""

    @abstractmethod
    def run_with(self, around: Around) -> None:
        """Run from Python, one call at a time: `around(call, launch)` is to launch it."""


class PythonProgram(Program):
    """Runs records one after another.  A run costs the launches alone, and the setting of arguments for those whose
    buffers have changed since the last one."""

    def __init__(self, device: Device, records: Sequence[Record], slots: Sequence[Buffer | None],
                 stream: Stream) -> None:
        self.device, self.records, self.stream = device, tuple(records), stream
        self.slots: list[Any] = list(slots)
        self.calls = calls_of(self.records)
        self.number = {id(call): n for n, call in enumerate(self.calls)}  # records live as long as the program
        self.launches: list[Launch] = [_unbound] * len(self.calls)
        self.stale = set(range(len(self.calls)))
        self.users: dict[int, list[int]] = {}
        for n, call in enumerate(self.calls):
            for slot in set(call.slots):
                self.users.setdefault(slot, []).append(n)
        self.interpreter = None if list(self.records) == self.calls else Interpreter(self)

    def bind(self, slot: int, buffer: Any) -> None:
        if self.slots[slot] is not buffer:
            self.slots[slot] = buffer
            self.stale.update(self.users.get(slot, ()))

    def buffer(self, slot: int) -> Any:
        return self.slots[slot]

    def release(self, slot: int) -> None:
        self.slots[slot] = None
        for n in self.users.get(slot, ()):
            self.launches[n] = _unbound
            self.stale.add(n)

    def run(self) -> None:
        self.started = False
        if self.interpreter is not None:
            self.interpreter.run(self.records)
            return
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

    def run_with(self, around: Around) -> None:
        self.started = False
        Interpreter(self, around).run(self.records)

    def launch(self, call: Call) -> Launch:
        """One of the calls with its arguments set."""
        n = self.position = self.number[id(call)]
        if n in self.stale:
            self._set_arguments(n)
        self.started = True
        return self.launches[n]

    def _set_arguments(self, n: int) -> None:
        call = self.calls[n]
        with enqueued_for(call.line):
            self.launches[n] = call.kernel.bind([self.slots[s] for s in call.slots], self.stream)
        self.stale.discard(n)


def calls_of(records: Sequence[Record]) -> list[Call]:
    """All calls in the order in which they are written, those of inner lists included, each object once."""
    found: dict[int, Call] = {}
    pending = list(reversed(records))
    while pending:
        record = pending.pop()
        if isinstance(record, Call):
            found.setdefault(id(record), record)
        else:
            pending.extend(reversed(getattr(record, "records", ())))
    return list(found.values())


def _unbound() -> None:
    raise AssertionError("a launch without arguments")
