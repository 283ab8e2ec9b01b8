"""A check of programs on several streams: whatever touches the same bytes, one of them writing, comes in order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from nnc_core.base.record import Await, Call, Record, Signal
from nnc_core.device import NO_VIEWS
from nnc_core.engine import ComputationGraph
from tests.engine.plan_meaning import PlanError

Bytes = tuple[object, int, int]


def check_order(compiled: ComputationGraph, records: Sequence[Record]) -> None:
    """PlanError if two calls of a program are free to run in an order that gives other values."""
    before, calls, end = _seen(records)
    touched = _touched(compiled, calls)
    for early, late in combinations(range(len(calls)), 2):
        if not before[late] >> early & 1 and _clash(touched[early], touched[late]):
            raise PlanError(f"nothing orders call {early} ({calls[early].label}) before {late} ({calls[late].label})")
    if end != (1 << len(calls)) - 1:
        raise PlanError("the program's stream goes on before all of its calls are done")


def _seen(records: Sequence[Record]) -> tuple[list[int], list[Call], int]:
    """For each call the set of those before it, as bits; the calls; and what the program's stream has seen at the
    end."""
    seen: dict[int, int] = {0: 0}
    signals: dict[int, int] = {}
    before: list[int] = []
    calls: list[Call] = []
    for record in records:
        if isinstance(record, Signal):
            signals[record.number] = seen[record.stream]
        elif isinstance(record, Await):
            seen[record.stream] = seen.get(record.stream, 0) | signals[record.number]
        else:
            assert isinstance(record, Call)
            if record.stream not in seen:
                raise PlanError(f"stream {record.stream} begins before what is on the program's stream")
            before.append(seen[record.stream])
            seen[record.stream] |= 1 << len(calls)
            calls.append(record)
    return before, calls, seen[0]


def _touched(compiled: ComputationGraph, calls: Sequence[Call]) -> list[tuple[list[Bytes], list[Bytes]]]:
    """The bytes that each call reads, and those that it writes."""
    apart = NO_VIEWS in compiled.device.spec.features
    place: dict[int, Bytes] = {slot: (slot, 0, 1 << 62) for slot in compiled._slots.of.values()}
    for storage in compiled.plan.arena if not apart else ():
        place[compiled._slots.of[storage]] = ("arena", storage.offset, storage.offset + storage.nbytes)
    found = []
    for call, number in zip(calls, compiled._step_of, strict=True):
        inputs = len(compiled.plan.steps[number].command.inputs)
        slots = [place[slot] for slot in call.slots]
        found.append((slots[:inputs], slots[inputs:]))
    return found


def _clash(early: tuple[list[Bytes], list[Bytes]], late: tuple[list[Bytes], list[Bytes]]) -> bool:
    pairs = [(a, b) for a in early[1] for b in (*late[0], *late[1])] + [(a, b) for a in early[0] for b in late[1]]
    return any(a[0] == b[0] and a[1] < b[2] and b[1] < a[2] for a, b in pairs)
