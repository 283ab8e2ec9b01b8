"""Calls of a straight program spread over streams: what does not depend on each other may run at the same time.

Whatever touches the same bytes, one of them writing, is ordered: by its stream, or by a signal that the later one
waits for.  That holds for values and for memory of the arena that several values have in turn alike, so that the plan
is the same as for one stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from nnc_core.base.record import Await, Call, Record, Signal
from nnc_core.engine.program_tree import PlannedCommand
from nnc_core.engine.storage import Storage

ARENA = -1


class ByteRange(NamedTuple):
    """Bytes of one stretch of memory."""

    memory: int
    begin: int
    end: int

    def meets(self, other: ByteRange) -> bool:
        return self.memory == other.memory and self.begin < other.end and other.begin < self.end


class TouchedMemory(NamedTuple):
    """Bytes that a call reads, and those that it writes."""

    reads: tuple[ByteRange, ...]
    writes: tuple[ByteRange, ...]

    def conflicts(self, later: TouchedMemory) -> bool:
        """Tell whether a later call has to come after this one."""
        return (_meet(self.writes, later.reads) or _meet(self.writes, later.writes) or _meet(self.reads, later.writes))


def touched(step: PlannedCommand, slot: Callable[[Storage], int], one_arena: bool) -> TouchedMemory:
    """Memory of a command.  `one_arena`: storages there are parts of one stretch."""

    def bytes_of(storage: Storage) -> ByteRange:
        if one_arena and storage.kind == "arena":
            return ByteRange(ARENA, storage.offset, storage.offset + storage.nbytes)
        return ByteRange(slot(storage), 0, storage.nbytes)

    scratch = () if step.workspace is None else (step.workspace,)
    return TouchedMemory(tuple(map(bytes_of, step.reads)), tuple(map(bytes_of, (*step.writes, *scratch))))


def _meet(some: Sequence[ByteRange], others: Sequence[ByteRange]) -> bool:
    return any(a.meets(b) for a in some for b in others)


def spread(calls: Sequence[Call], memory: Sequence[TouchedMemory], count: int) -> tuple[Record, ...]:
    """The calls, in their order, on up to `count` streams, with signals; the calls alone where one is enough.

    A call goes on where the value was made that it reads, if nothing has come there since, else to the stream that has
    had the fewest calls.  The program's stream comes before all of them, and after.
    """
    places = _Placement(memory, count).places
    if not any(places):
        return tuple(calls)
    return _SignalWriter(calls, memory, places).records()


class _Placement:
    """The stream of each call."""

    def __init__(self, memory: Sequence[TouchedMemory], count: int) -> None:
        self.memory, self.last, self.given = memory, [-1] * count, [0] * count
        self.places: list[int] = []
        for n in range(len(memory)):
            place = self._of(n)
            self.last[place], self.given[place] = n, self.given[place] + 1
            self.places.append(place)

    def _of(self, n: int) -> int:
        reads = self.memory[n].reads
        going_on = [s for s, k in enumerate(self.last) if k >= 0 and _meet(self.memory[k].writes, reads)]
        if going_on:
            return max(going_on, key=lambda s: self.last[s])
        return min(range(len(self.last)), key=lambda s: self.given[s])


class _SignalWriter:
    """Records with the signals that are needed, each at most once.

    `seen[s][t]`: the number of the last call of stream t that everything on stream s from now on comes after.
    """

    def __init__(self, calls: Sequence[Call], memory: Sequence[TouchedMemory], places: Sequence[int]) -> None:
        self.calls, self.memory, self.places = calls, memory, places
        used = {0, *places}
        self.seen = {s: dict.fromkeys(used, -1) for s in used}
        self.after: list[dict[int, int]] = []
        """What comes before the end of each call."""
        self.waits: list[list[int]] = []
        """The calls that each call waits for."""
        for n in range(len(calls)):
            self._order(n)

    def _order(self, n: int) -> None:
        own, touched = self.places[n], self.memory[n]
        known, waits = self.seen[own], list[int]()
        for k in range(n - 1, -1, -1):
            at = self.places[k]
            if at != own and k > known[at] and self.memory[k].conflicts(touched):
                waits.append(k)
                for s, last in self.after[k].items():
                    known[s] = max(known[s], last)
        known[own] = n
        self.waits.append(waits)
        self.after.append(dict(known))

    def records(self) -> tuple[Record, ...]:
        """A stream without anything to wait for waits for the begin, and the end for what nothing has waited for."""
        signals = {k: number for number, k in enumerate(sorted({k for waits in self.waits for k in waits}), 1)}
        found: list[Record] = [Signal(0, 0)]
        begun = {0}
        for n, (call, place) in enumerate(zip(self.calls, self.places, strict=True)):
            waits = [signals[k] for k in self.waits[n]] or [0] * (place not in begun)
            found += [Await(place, number) for number in waits]
            found.append(replace(call, stream=place))
            if n in signals:
                found.append(Signal(place, signals[n]))
            begun.add(place)
        for number, s in enumerate(self._unseen(), len(signals) + 1):
            found += [Signal(s, number), Await(0, number)]
        return tuple(found)

    def _unseen(self) -> Iterator[int]:
        """Streams that the program's stream has to wait for at the end; what one of them has seen it sees then, too."""
        last, known = {place: n for n, place in enumerate(self.places)}, self.seen[0]
        for s in sorted(last, key=lambda s: -last[s]):
            if last[s] > known[s]:
                yield s
                for other, n in self.after[last[s]].items():
                    known[other] = max(known[other], n)
