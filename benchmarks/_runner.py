"""A process that steps when it is told to, so that several can be measured in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

THREADS = os.environ.get("NNC_BENCHMARK_THREADS", "2")


class Runner:
    """`python -m module arguments`, which says a line when it is ready, and then one for each that it is told."""

    def __init__(self, module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        limits = {f"{name}_NUM_THREADS": THREADS for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
        self.name = " ".join(arguments)
        self.process = subprocess.Popen([sys.executable, "-m", module, *arguments],
                                        env={**os.environ, **limits, **(environment or {})}, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.ready = self._answer()
        """What it said when it was ready; None if it ended."""

    def asked(self, **question: float) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self._answer()
        if answer is None:
            raise RuntimeError(f"{self.name} ended: {self.end()}")
        return answer

    def end(self) -> str:
        """Stop it; the last line of what it said of errors."""
        _, said = self.process.communicate()
        return said.strip().splitlines()[-1] if said.strip() else ""

    def _answer(self) -> dict[str, Any] | None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None


@contextmanager
def runner(module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[Runner]:
    found = Runner(module, *arguments, environment=environment)
    with found.process:
        yield found


class Timed(NamedTuple):
    """The seconds of a step, the least of all turns, and some numbers of its result."""

    seconds: float
    result: list[float]


def least_in_turn(frameworks: Sequence[str], work: str, turns: int = 15, seconds: float = 0.06,
                  warm: float = 0.3) -> dict[str, Timed]:
    """What each framework takes for a step of a work, all of them in turn; who is left out is said.

    `seconds`: how long each turn takes at least; `warm`: how long each steps before it is timed."""
    with ExitStack() as stack:
        found = {name: stack.enter_context(runner("benchmarks._peer", name, work)) for name in frameworks}
        for name, process in found.items():
            if process.ready is None:
                print(f"{work}: {name} is left out: {process.end()}")
        ready = {name: process for name, process in found.items() if process.ready is not None}
        for process in ready.values():
            process.asked(seconds=warm)
        samples: dict[str, list[float]] = {name: [] for name in ready}
        for _ in range(turns):
            for name, process in ready.items():
                samples[name].append(process.asked(seconds=seconds)["step"])
    return {name: Timed(min(taken), (found[name].ready or {})["result"]) for name, taken in samples.items()}
