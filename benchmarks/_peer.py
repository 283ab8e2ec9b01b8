"""One framework's process: makes a work ready, then steps for as long as it is told, and says what a step took."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks._measure import peak_megabytes

SAMPLES = 500
"""Numbers of a result that are compared."""
SETTLING = 0.1
"""Seconds of steps in each turn before those that count: threads of whoever stepped before may look for work as long
(OpenBLAS' do for some 50 ms), and the caches are theirs."""
CLOCK = process_time if os.environ.get("NNC_BENCHMARK_CLOCK") == "cpu" else perf_counter
"""The clock of steps; "cpu": processor time, which other processes disturb little."""


def stepper(framework: str, work: str) -> Callable[[], object]:
    """A function that makes one step and returns when its result is there."""
    name, _, variant = framework.partition(" ")
    make: Callable[[str, str], Callable[[], object] | None] = import_module(f"benchmarks._works_{name}").make
    found = make(work, variant)
    if found is None:
        raise SystemExit(f"{framework}: {work} is not made")
    return found


def for_a_while(step: Callable[[], object], seconds: float) -> float:
    """Seconds of a step: the mean of as many as fill the time, once those before have settled."""
    _mean(step, SETTLING)
    return _mean(step, seconds)


def _mean(step: Callable[[], object], seconds: float) -> float:
    count, begin = 0, CLOCK()
    while not count or CLOCK() - begin < seconds:
        step()
        count += 1
    return (CLOCK() - begin) / count


def sampled(result: object) -> list[float]:
    """Some numbers of an array; none of anything else."""
    if not hasattr(result, "__array__"):
        return []
    numbers = np.asarray(result).ravel()
    return [float(x) for x in numbers[:: max(1, numbers.size // SAMPLES)]]


def main() -> None:
    step = stepper(sys.argv[1], sys.argv[2])
    begin = perf_counter()
    result = step()
    say({"first": perf_counter() - begin, "result": sampled(result)})
    for _ in range(3):
        step()
    for line in sys.stdin:
        seconds = json.loads(line)["seconds"]
        say({"step": for_a_while(step, seconds) if seconds else 0.0, "peak": peak_megabytes()})


def say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
