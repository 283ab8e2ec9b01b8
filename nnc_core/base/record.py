"""What a compiled graph is made of when it reaches the device: a flat list of records over numbered slots.

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
    stream: int = 0


@dataclass(frozen=True, slots=True)
class JumpIf:
    """Go on at record `target` if the boolean in `slot` equals `when`."""

    slot: int
    when: bool
    target: int


@dataclass(frozen=True, slots=True)
class LoopEnd:
    """Go back to record `target`."""

    target: int


@dataclass(frozen=True, slots=True)
class RotatePointer:
    """Shift the buffers of `slots` by one place: the first slot receives the last one's buffer (multi-view loops)."""

    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SubList:
    """Run records of their own, with jump targets of their own, over the same slots."""

    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Signal:
    """Record event number `event` on a stream."""

    event: int
    stream: int


@dataclass(frozen=True, slots=True)
class Await:
    """Let a stream wait for event number `event`."""

    event: int
    stream: int


Record: TypeAlias = Call | JumpIf | LoopEnd | RotatePointer | SubList | Signal | Await
