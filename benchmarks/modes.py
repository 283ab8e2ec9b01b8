"""Owl's comparison: networks eager, deferred and compiled, in turn, each in a process: time, memory, graph, compiling.

Training steps of the LeNet-like network and of Owl's LSTM (batches of 100), inference of one image of 299 x 299 by
ResNet-50 and InceptionV3, of 768 x 768 by Mask R-CNN.  Owl's book says 30 s and 4 GB eager, 5 s and 0.75 GB compiled
for the first; 15,105 nodes and 21,335 edges, optimised 8,224 and 14,444, for the LSTM; 11 GB eager and 1 GB compiled
for Mask R-CNN.

`python -m benchmarks.modes [NETWORK ...]`
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from statistics import median
from typing import Any, NamedTuple

from benchmarks._measure import show
from benchmarks._modes import MODES
from benchmarks._modes_networks import WORKS
from benchmarks._runner import Runner, runner

ROUNDS, SECONDS = 7, 0.1
"""Turns of each mode, and how long a turn takes at least."""
OWL = {"LeNet": ("6.0", "5.3"), "Mask R-CNN": ("", "11")}
"""Owl's eager time and memory as multiples of its compiled ones, where the book says them in words."""


class Mode(NamedTuple):
    """What a network needs in one mode."""

    step: float
    """Seconds of an evaluation, the median."""
    peak: float
    """Megabytes that the process had resident at most, beyond what it had before the network was made."""
    said: dict[str, Any]
    """What the process said when it was ready."""


def measured(name: str, rounds: int = ROUNDS) -> dict[str, Mode]:
    with ExitStack() as stack:
        running = {mode: stack.enter_context(runner("benchmarks._modes", name, mode)) for mode in MODES}
        for mode, process in running.items():
            if process.ready is None:
                raise RuntimeError(f"{name} {mode} failed: {process.end()}")
        steps: dict[str, list[float]] = {mode: [] for mode in MODES}
        for _ in range(rounds):
            for mode, process in running.items():
                steps[mode].append(process.asked(seconds=SECONDS)["step"])
        return {mode: Mode(median(steps[mode]), peak(process), process.ready or {})
                for mode, process in running.items()}


def peak(process: Runner) -> float:
    found: float = process.asked(seconds=0)["peak"]
    return found


def rows(name: str, found: dict[str, Mode]) -> Iterator[list[str]]:
    """A row for each mode; ratios are to the compiled one."""
    base = found["compiled"]
    for mode, (step, most, said) in found.items():
        title, owl = (name, OWL.get(name, ("", ""))) if mode == "eager" else ("", ("", ""))
        planned = f"{said['planned']:,.1f}" if "planned" in said else ""
        yield [title, mode, f"{step * 1e3:,.1f}", f"{step / base.step:.2f}", owl[0], f"{most:,.0f}",
               f"{most / base.peak:.2f}", owl[1], f"{said['weights']:,.0f}", planned]


def compiling(name: str, found: dict[str, Mode]) -> list[str]:
    """Seconds of the first evaluation in each mode, and what compiling makes of the graph."""
    graphs = [f"{count:,}" for kind in ("written", "optimised") for count in found["compiled"].said[kind]]
    return [name, *[f"{mode.said['first']:.2f}" for mode in found.values()], *graphs]


def table(names: Sequence[str], rounds: int = ROUNDS) -> None:
    found = {name: measured(name, rounds) for name in names}
    show("An evaluation: median ms; most MB, weights and code included, those of the weights, MiB planned",
         ["", "", "ms", "/ compiled", "Owl", "MB", "/ compiled", "Owl", "weights", "planned"],
         [row for name, modes in found.items() for row in rows(name, modes)])
    show("The first evaluation, with compiling, in s; the graph",
         ["", *MODES, "nodes", "edges", "optimised", "edges"], [compiling(*item) for item in found.items()])


def main(arguments: Sequence[str] = ()) -> None:
    if unknown := sorted(set(arguments) - set(WORKS)):
        raise SystemExit(f"no network {', '.join(unknown)}; there are {', '.join(WORKS)}")
    table(arguments or list(WORKS))


if __name__ == "__main__":
    main(sys.argv[1:])
