"""Timing the commands of a compiled graph one by one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from nnc_core.base.atomic import open_atomically
from nnc_core.base.cost import NOTHING, Cost
from nnc_core.base.record import Call
from nnc_core.device import Device, Launch, Program
from nnc_core.engine.plan_types import Plan
from nnc_core.operator.cost import cost_of
from nnc_core.symbol import show_line


@dataclass(frozen=True, slots=True)
class Timing:
    """One command; seconds are the median over repeats, the wait for its end included."""

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
    """Run the program `repeats` times, waiting after each command; one in a loop counts with all of its rounds."""
    samples: list[dict[int, float]] = []

    def timed(call: Call, launch: Launch) -> None:
        start = perf_counter()
        launch()
        device.default_stream.synchronize()
        step = step_of[id(call)]
        samples[-1][step] = samples[-1].get(step, 0.0) + perf_counter() - start

    for _ in range(max(repeats, 1)):
        samples.append({})
        program.run_with(timed)
    timings = [Timing(step.text, step.decision.backend, median(s.get(i, 0.0) for s in samples),
                      show_line(step.group.line), cost_of(step.decision.op, step.command))
               for i, step in enumerate(plan.steps)]
    return Profile(device.spec.id, tuple(timings))
