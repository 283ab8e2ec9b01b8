"""Timing the commands of a compiled graph one by one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from nnc_core.base.atomic import open_atomically
from nnc_core.base.cost import NOTHING, Cost
from nnc_core.base.record import Call
from nnc_core.device import Device, Event, Launch, Program, Stream
from nnc_core.engine.plan_types import Plan
from nnc_core.operator.cost import cost_of
from nnc_core.symbol import show_line


@dataclass(frozen=True, slots=True)
class Timing:
    """One command; seconds are the median over repeats, by the device's clock or with the wait for its end included."""

    command: str
    backend: str
    seconds: float
    line: str
    cost: Cost = NOTHING
    """Of one round, for a command in a loop."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Timings in the order of the program."""

    device: str
    timings: tuple[Timing, ...]

    @property
    def seconds(self) -> float:
        return sum(t.seconds for t in self.timings)

    def __str__(self) -> str:
        """The commands, slowest first, with their share of the time, their arithmetic operations and their bytes."""
        rows = [f"{self.device}: {len(self.timings)} commands, {self.seconds * 1e3:.3f} ms"]
        for t in sorted(self.timings, key=lambda t: -t.seconds):
            share = t.seconds / self.seconds if self.seconds else 0.0
            work = f"{_scaled(t.cost.flops)}flop {_scaled(t.cost.bytes)}B"
            rows.append(f"{t.seconds * 1e6:12.1f} us {share:6.1%} {work}  {t.command}  [{t.backend}]  # {t.line}")
        return "\n".join(rows)

    def save_trace(self, path: str | Path) -> Path:
        """Write a trace that chrome://tracing and Perfetto open."""
        at, events = 0.0, []
        for t in self.timings:
            events.append({"name": t.command, "cat": t.backend, "ph": "X", "pid": self.device, "tid": 0,
                           "ts": at * 1e6, "dur": t.seconds * 1e6, "args": {"line": t.line, **t.cost._asdict()}})
            at += t.seconds
        with open_atomically(path) as file:
            file.write(json.dumps({"traceEvents": events}).encode())
        return Path(path)


def _scaled(count: float) -> str:
    """The number in six columns and the unit's prefix."""
    steps = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
    size, prefix = next(((size, prefix) for size, prefix in steps if count >= size), (1.0, " "))
    return f"{count / size:6.1f} {prefix}"


def measure(plan: Plan, step_of: Mapping[int, int], program: Program, device: Device, repeats: int) -> Profile:
    """Run the program `repeats` times; a command in a loop counts with all of its rounds.  The device's clock tells the
    time of each command; the host's, with a wait behind each, where the device has none."""
    time = _by_events if _has_clock(device) else _by_waiting
    samples = [time(program, device.default_stream, step_of) for _ in range(max(repeats, 1))]
    timings = [Timing(step.text, step.decision.backend, median(s.get(i, 0.0) for s in samples),
                      show_line(step.group.line), cost_of(step.decision.op, step.command))
               for i, step in enumerate(plan.steps)]
    return Profile(device.spec.id, tuple(timings))


def _has_clock(device: Device) -> bool:
    first, second = (device.default_stream.record(timed=True) for _ in range(2))
    device.default_stream.synchronize()
    return second.seconds_since(first) is not None


def _by_events(program: Program, stream: Stream, step_of: Mapping[int, int]) -> dict[int, float]:
    """Seconds of each step in one run, by the device's clock."""
    spans: list[tuple[int, Event, Event]] = []

    def timed(call: Call, launch: Launch) -> None:
        before = stream.record(timed=True)
        launch()
        spans.append((step_of[id(call)], before, stream.record(timed=True)))

    program.run_with(timed)
    stream.synchronize()
    return _sums((step, after.seconds_since(before) or 0.0) for step, before, after in spans)


def _by_waiting(program: Program, stream: Stream, step_of: Mapping[int, int]) -> dict[int, float]:
    """The same by the host's clock."""
    spans: list[tuple[int, float]] = []

    def timed(call: Call, launch: Launch) -> None:
        start = perf_counter()
        launch()
        stream.synchronize()
        spans.append((step_of[id(call)], perf_counter() - start))

    program.run_with(timed)
    return _sums(spans)


def _sums(spans: Iterable[tuple[int, float]]) -> dict[int, float]:
    seconds: dict[int, float] = {}
    for step, span in spans:
        seconds[step] = seconds.get(step, 0.0) + span
    return seconds
