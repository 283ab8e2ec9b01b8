"""A program of records bound to buffers: the default one runs them from Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import ref

from nnc_core.base.record import Await, Call, Record, Signal
from nnc_core.device.buffer import Buffer
from nnc_core.device.in_streams import InStreams
from nnc_core.device.interpret import tape_slots
from nnc_core.device.kernel import Launch
from nnc_core.device.launches import InLine, InLoops
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
    used: int = 0
    """Number of the last run, counted over all programs: what ran longest ago is dropped first."""

    @abstractmethod
    def bind(self, slot: int, buffer: Any) -> None:
        """Put a buffer, or a tape, into a slot.  Blocks of the pool may be held until `forget`, others until the slot
        is bound again."""

    def has(self, slot: int, array: Any) -> bool:
        """Tell whether a slot has the buffer of an array that was noted: it needs not be bound again then."""
        return False

    def note(self, slot: int, array: Any) -> bool:
        """Take note of an array that has been bound by its own buffer; False where `has` will not know it."""
        return False

    def lends(self, slots: Sequence[int]) -> bool:
        """Tell whether slots, the same at each call, may have their arrays for one run alone; then nothing is bound to
        them any more.  False where each array has to be bound."""
        return False

    def lend(self, arrays: list[Any]) -> list[Any]:
        """Let the slots that `lends` was asked about have arrays, or buffers, for the next `run`.  Gives those, and
        packed copies of arrays that are not packed: the caller keeps them until the run has ended."""
        raise NotImplementedError("slots are lent nothing")

    @abstractmethod
    def buffer(self, slot: int) -> Any:
        """The content of a slot now."""

    @abstractmethod
    def release(self, slots: Sequence[int]) -> None:
        """Keep what is in some slots alive no longer: they are bound again, or moved, before the next run uses them.
        Only blocks of the pool, and parts of these, may stay."""

    @abstractmethod
    def run(self) -> None:
        """Enqueue everything.  All slots are bound."""

    @abstractmethod
    def run_with(self, around: Around) -> None:
        """Run from Python, one call at a time: `around(call, launch)` is to launch it."""

    @abstractmethod
    def forget(self) -> None:
        """Hold nothing any more of what was bound."""

    def holds(self, blocks: frozenset[int]) -> bool:
        """Tell whether there may be buffers with these ids among what it holds."""
        return True


class PythonProgram(Program):
    """Runs records one after another.  A run costs the launches alone, and the setting of arguments for those whose
    buffers have not been there together before."""

    def __init__(self, device: Device, records: Sequence[Record], slots: Sequence[Buffer | None],
                 stream: Stream) -> None:
        self.device, self.records, self.stream = device, tuple(records), stream
        self.slots: list[Any] = list(slots)
        self.empty = [slot for slot, buffer in enumerate(self.slots) if buffer is None]
        self.varying: dict[int, None] = {}
        """The slots that `bind` is called for, in the order in which it was at first."""
        self.calls = calls_of(self.records)
        self.users: dict[int, list[int]] = {}
        for n, call in enumerate(self.calls):
            for slot in set(call.slots):
                self.users.setdefault(slot, []).append(n)
        self.noted: dict[int, tuple[int, ref[Any] | None, int]] = {}
        """By slots: ids of arrays that were bound to them, what refers to these if they came twice, ids of their
        buffers."""
        self.streams = (stream, *device.side_streams) if any([call.stream for call in self.calls]) else (stream,)
        self.way = self._way_of_running()

    def _way_of_running(self) -> InLine | InLoops:
        if list(self.records) == self.calls:
            return InLine(len(self.calls))
        if all([isinstance(record, Call | Signal | Await) for record in self.records]):
            return InStreams(self.records, len(self.calls))
        return InLoops(self.calls, tape_slots(self.records))

    def bind(self, slot: int, buffer: Any) -> None:
        if self.slots[slot] is buffer:
            return
        if slot not in self.varying:
            self.varying[slot] = None
            self.way.varies()
        self.put(slot, buffer)

    def has(self, slot: int, array: Any) -> bool:
        known = self.noted.get(slot)
        if known is None or known[0] != id(array) or known[1] is None:
            return False
        return known[1]() is array and id(self.slots[slot]) == known[2]

    def note(self, slot: int, array: Any) -> bool:
        known, again = self.noted.get(slot), None
        if known is not None and known[0] == id(array):
            with suppress(TypeError):  # a device's arrays may be anything
                again = ref(array)
        self.noted[slot] = id(array), again, id(self.slots[slot])
        return again is not None

    def put(self, slot: int, buffer: Any) -> None:
        """Let a slot have a buffer, as records do."""
        if self.slots[slot] is not buffer:
            self.slots[slot] = buffer
            self.way.moved(self, slot)

    def buffer(self, slot: int) -> Any:
        return self.slots[slot]

    def run(self) -> None:
        self.started = False
        self.way.run(self)

    def run_with(self, around: Around) -> None:
        self.started = False
        self.way.run_with(self, around)

    def release(self, slots: Sequence[int]) -> None:
        self.way.let_go(self, slots)

    def forget(self) -> None:
        for slot in {*self.empty, *self.varying}:
            self.put(slot, None)
        self.way.release()

    def holds(self, blocks: frozenset[int]) -> bool:
        bound = [id(self.slots[slot]) for slot in self.varying]
        return not blocks.isdisjoint(bound) or self.way.holds(blocks)

    def bound(self, n: int) -> Launch:
        """One of the calls with its arguments set."""
        call = self.calls[n]
        with enqueued_for(call.line):
            return self.make_launch(n, call)

    def make_launch(self, n: int, call: Call) -> Launch:
        """A launch with what is in the call's slots."""
        return call.kernel.bind([self.slots[s] for s in call.slots], self.streams[call.stream])  # type: ignore[no-any-return]

    # ---- for the interpreter
    def part(self, source: Buffer, offset: int, nbytes: int) -> Buffer:
        """Part of a buffer, for a moving pointer."""
        assert isinstance(self.way, InLoops)
        return self.way.part(self, source, offset, nbytes)

    def launch(self, call: Call) -> Launch:
        """One of the calls with its arguments set, about to be launched."""
        assert isinstance(self.way, InLoops)
        return self.way.launch(self, call)


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

