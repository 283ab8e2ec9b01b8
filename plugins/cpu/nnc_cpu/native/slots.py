"""Slots and tapes as machine code sees them: addresses, which records move, and whose buffers these are."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from nnc_core.device import BufferTape
from nnc_cpu.addresses import address_of

if TYPE_CHECKING:
    from nnc_cpu.program import NumpyProgram

Words: TypeAlias = "list[ctypes.c_int64 | int]"
"""As arrays of them take several at once."""


class NativeTape:
    """The places of a tape's buffers: `program.ll` reads their count, and where they lie."""

    def __init__(self) -> None:
        self.head = (ctypes.c_int64 * 2)()
        self._room = (ctypes.c_int64 * 0)()

    @property
    def address(self) -> int:
        return ctypes.addressof(self.head)

    def load(self, places: Words) -> None:
        """Have these: three numbers each."""
        if len(places) > len(self._room):
            self._room = (ctypes.c_int64 * (2 * len(places)))()
            self.head[1] = ctypes.addressof(self._room)
        self._room[: len(places)] = places
        self.head[0] = len(places) // 3

    def append(self, place: Words) -> None:
        end = 3 * self.head[0]
        if end == len(self._room):
            self.load([*self._room, *place])
        else:
            self._room[end : end + 3] = place
            self.head[0] += 1

    def reverse(self) -> None:
        count = self.head[0]
        self.load([word for k in reversed(range(count)) for word in self._room[3 * k : 3 * k + 3]])


class NativeSlots:
    """A place for each slot: an address, the number of the whole buffer that it lies in, and bytes.

    The whole buffers are those that slots are bound to, numbered as these, and further ones: on tapes, and for slots
    whose buffer went to one.  At the begin of a run each slot has what it is bound to.
    """

    def __init__(self, count: int, moved: Collection[int], tapes: Iterable[int], filled: Iterable[int]) -> None:
        self.moved, self.count = frozenset(moved), count
        self.now, self.bound = (ctypes.c_int64 * (3 * count))(), (ctypes.c_int64 * (3 * count))()
        for slot in range(count):
            self.now[3 * slot + 1] = self.bound[3 * slot + 1] = slot
        self.tapes = {slot: NativeTape() for slot in tapes}
        self.filled = frozenset(filled)
        """Tapes that have buffers from elsewhere when a run begins."""
        self.wholes: dict[int, Any] = {}
        """Whole buffers that no slot is bound to now, by number."""
        self._next = count
        self._owners: dict[int, int] = {}
        """The slots that are bound to what has come in place of a pushed buffer when the run has ended, by number."""
        self._fresh: dict[int, Any] = {}
        """The last buffer that came so, by these slots."""
        self._shown: set[int] = set()
        self.showing = False
        self._rebound = False
        """True from when a slot was bound again until the next run: what was moved is not known any more."""

    def write(self, slot: int, buffer: Any) -> None:
        """Let a slot be bound to a buffer."""
        self._rebound = True
        if slot in self.tapes:
            self.now[3 * slot] = self.bound[3 * slot] = self.tapes[slot].address
            return
        self.now[3 * slot] = self.bound[3 * slot] = 0 if buffer is None else address_of(buffer)
        if self.moved:
            self.now[3 * slot + 1] = slot
            self.now[3 * slot + 2] = self.bound[3 * slot + 2] = 0 if buffer is None else buffer.nbytes

    def begin(self, program: NumpyProgram) -> None:
        """Forget what the last run has moved."""
        self._rebound = False
        if not self.moved:
            return
        ctypes.memmove(self.now, self.bound, ctypes.sizeof(self.bound))
        self.wholes.clear()
        self._owners.clear()
        self._next = self.count
        for slot in self.filled:
            self.tapes[slot].load([word for buffer in program.slots[slot] for word in self._place(buffer)])

    def _place(self, buffer: Any) -> Words:
        """The place of a further buffer."""
        self._next += 1
        self.wholes[self._next - 1] = buffer
        return [address_of(buffer), self._next - 1, buffer.nbytes]

    def content(self, program: NumpyProgram, slot: int) -> Any:
        """The buffer that a slot has now; that it is bound to, once slots are bound for the next run."""
        if slot not in self.moved or self._rebound:
            return program.slots[slot]
        address, number, nbytes = self.now[3 * slot : 3 * slot + 3]
        whole = self.wholes[number] if number in self.wholes else program.slots[number]
        if whole is None:
            return None
        offset = address - address_of(whole)
        return whole if not offset and nbytes == whole.nbytes else program.part(whole, offset, nbytes)

    # ---- tapes
    def push(self, program: NumpyProgram, tape: int, slot: int, nbytes: int) -> None:
        """Put a slot's buffer at the end of a tape.  A fresh one comes in its place, now and for the next run: for the
        slot that is bound to it, from which it may have been moved."""
        rows: BufferTape = program.slots[tape]
        rows.append(self.content(program, slot))
        place: Words = [*self.now[3 * slot : 3 * slot + 3]]
        self.tapes[tape].append(place)
        owner = self._owners.get(number := self.now[3 * slot + 1], number)
        fresh = rows.spare.popleft() if rows.spare else program.device.allocate(nbytes)
        self.now[3 * slot : 3 * slot + 3] = self._place(fresh)
        self._owners[self._next - 1] = owner
        self._fresh[owner] = fresh

    def reset(self, program: NumpyProgram, tape: int) -> None:
        rows: BufferTape = program.slots[tape]
        rows.spare.extend(rows)
        rows.clear()
        self.tapes[tape].load([])

    def reverse(self, program: NumpyProgram, tape: int) -> None:
        program.slots[tape].reverse()
        self.tapes[tape].reverse()

    # ---- what Python sees
    def show(self, program: NumpyProgram, slots: Iterable[int]) -> None:
        """Let Python see what some slots have now."""
        for slot in self.moved.intersection(slots):
            buffer = self.content(program, slot)
            if buffer is not program.slots[slot]:
                if slot not in self._shown:
                    self._shown.add(slot)
                    self.wholes[slot] = program.slots[slot]
                self._put(program, slot, buffer)

    def end(self, program: NumpyProgram) -> None:
        """Let slots be bound to what they were bound to before, or to what has come in place of that."""
        for slot in self._shown:
            self._put(program, slot, self.wholes.pop(slot))
        self._shown.clear()
        for slot, buffer in self._fresh.items():
            self.wholes[slot] = program.slots[slot]
            self._put(program, slot, buffer)
            self.bound[3 * slot], self.bound[3 * slot + 2] = address_of(buffer), buffer.nbytes
        self._fresh.clear()

    def _put(self, program: NumpyProgram, slot: int, buffer: Any) -> None:
        self.showing = True
        program.put(slot, buffer)
        self.showing = False
