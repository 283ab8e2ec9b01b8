"""Records: a compiled graph, when it reaches the device, is a flat list of them over numbered slots.

A slot is a place for a buffer.  Slots of inputs and outputs are bound anew at each call, all others once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Call:
    """Run a kernel on the buffers in `slots`: inputs, outputs, then its workspace if it has one."""

    kernel: Any  # a device.Kernel: floor 0 cannot name it
    slots: tuple[int, ...]
    label: str = ""
    line: Any = None  # of the user, opaque here: asynchronous work names it when it fails
    stream: int = 0
    """The number of its stream: 0 is that of the program."""


@dataclass(frozen=True, slots=True)
class Signal:
    """Mark what a stream has been given so far with a number."""

    stream: int
    number: int


@dataclass(frozen=True, slots=True)
class Await:
    """Let what a stream is given from here on begin after a signal, which stands before this."""

    stream: int
    number: int


@dataclass(frozen=True, slots=True)
class JumpIf:
    """Go on at record `target` if the boolean in `slot` equals `when`."""

    slot: int
    when: bool
    target: int


@dataclass(frozen=True, slots=True)
class Jump:
    """Go on at record `target`."""

    target: int


@dataclass(frozen=True, slots=True)
class RotatePointer:
    """Shift the buffers of `slots` by one place: the first slot receives the last one's buffer (multi-view loops)."""

    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Switch:
    """Go on at the target that the integer of `dtype` in `slot` chooses; at `otherwise` for any other number, which
    is an error if that is -1."""

    slot: int
    dtype: str
    targets: tuple[int, ...]
    otherwise: int
    label: str = ""


@dataclass(frozen=True, slots=True)
class Repeat:
    """Run records of their own, with jump targets of their own, `count` times, or once for each buffer of the tape in
    slot `tape`."""

    records: tuple[Record, ...]
    count: int
    tape: int = -1


@dataclass(frozen=True, slots=True)
class Rebind:
    """Let `slot` have the buffer of `source`."""

    slot: int
    source: int


@dataclass(frozen=True, slots=True)
class Window:
    """Let `slot` have the `nbytes` bytes of `source` that begin at offset + step * (rounds of the innermost Repeat)."""

    slot: int
    source: int
    offset: int
    step: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class TapePush:
    """Put the buffer in `slot` at the end of a tape, and let the slot have a fresh one of `nbytes` bytes."""

    tape: int
    slot: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class TapeRead:
    """Let `slot` have the tape's buffer that belongs to the round of the innermost Repeat, counted from the end if
    `reverse`; the tape keeps it."""

    slot: int
    tape: int
    reverse: bool


@dataclass(frozen=True, slots=True)
class TapeReset:
    """Begin a tape: what was on it may be used again."""

    tape: int


@dataclass(frozen=True, slots=True)
class TapeReverse:
    """Reverse a tape: a loop that went backwards has pushed its last part first."""

    tape: int


Record: TypeAlias = (Call | Signal | Await | JumpIf | Jump | RotatePointer | Switch | Repeat | Rebind | Window
                     | TapePush | TapeRead | TapeReset | TapeReverse)
"""Jump targets are indices into the list that the jump stands in; its length is its end."""
