"""A process that steps when it is told to, so that several can be measured in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

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
