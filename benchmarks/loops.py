"""A round of compiled loops beside JAX': small work, where going back to Python would cost more than all of it.

`NNC_BENCHMARK_WORKS` names the works that are wanted.  On a busy machine `NNC_BENCHMARK_THREADS=1
NNC_BENCHMARK_CLOCK=cpu` compares processor time.
"""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from benchmarks._loops import COUNT, WORKS
from benchmarks._measure import show
from benchmarks._runner import runner
from benchmarks.peers import wanted

FRAMEWORKS = ("loops_nnc", "loops_jax")
TURNS, SECONDS, WARM = 15, 0.05, 0.3
"""Turns of a work, how long each takes at least, and how long each steps before it is timed."""


def row(work: str) -> list[str]:
    """Microseconds of a round, the least of all turns, and the ratio where JAX is there."""
    with ExitStack() as stack:
        found = {name: stack.enter_context(runner("benchmarks._peer", name, work)) for name in FRAMEWORKS}
        ready = {name: process for name, process in found.items() if process.ready is not None}
        results = [process.ready["result"] for process in ready.values() if process.ready is not None]
        for result in results[1:]:
            np.testing.assert_allclose(result, results[0], rtol=1e-3, atol=1e-3)
        for process in ready.values():
            process.asked(seconds=WARM)
        samples: dict[str, list[float]] = {name: [] for name in ready}
        for _ in range(TURNS):
            for name, process in ready.items():
                samples[name].append(process.asked(seconds=SECONDS)["step"])
    rounds = [min(samples[name]) / COUNT * 1e6 if name in samples else None for name in FRAMEWORKS]
    ours, jax = rounds
    ratio = f"{jax / ours:.2f}" if ours and jax else ""
    return [work, *["" if x is None else f"{x:.2f}" for x in rounds], ratio]


def main() -> None:
    show("us of a round", ["", "nnc", "JAX", "JAX / nnc"], [row(work) for work in wanted([*WORKS], "WORKS")])


if __name__ == "__main__":
    main()
