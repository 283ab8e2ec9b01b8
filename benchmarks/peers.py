"""The same work in nnc and in whatever peers are installed, in turn: quartile, ratio, share of the limit, memory.

The limit is what the machine is measured to do in the same run: multiply-adds in registers for products, copies of as
many bytes for what is bound by them.  Ratios are drawn in `out/peers.svg` too, where matplotlib is installed.
PyTorch, JAX, ONNX Runtime and OpenVINO (inference alone), and NumPy by hand.  Each has a process of its own, told when
it is its turn to step, so that drift of the machine meets all of them.  `NNC_BENCHMARK_THREADS` (2) is what each may
use; `NNC_BENCHMARK_WORKS` and `NNC_BENCHMARK_FRAMEWORKS` name those that are wanted, with commas between.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks._machine import copy_rate, peak_rate_of
from benchmarks._measure import show
from benchmarks._plots import draw_ratios
from benchmarks._runner import THREADS, Runner, runner
from benchmarks._works import WORKS, Work

FRAMEWORKS = ("nnc", "torch", "torch channels_last", "torch compile", "onnxruntime", "openvino", "jax", "numpy")
ROUNDS, SECONDS = 9, 0.2
"""Rounds of a work, and how long each turn takes at least."""
ON_CPU = {"JAX_PLATFORMS": "cpu"}
AGREEMENT = 1e-4
"""The largest difference of results, as a share of the largest number."""


class Result(NamedTuple):
    """What one framework needs for a work."""

    step: float
    """Seconds, the 25th percentile."""
    first: float
    """Seconds of the first step, compiling included."""
    peak: float
    """Megabytes that the process had resident at most."""


class Framework:
    """A framework's process, and what its steps took."""

    def __init__(self, name: str, process: Runner) -> None:
        self.name, self.process, self.samples = name, process, list[float]()

    def turn(self) -> None:
        """Let it make steps for a while."""
        self.samples.append(self.process.asked(seconds=SECONDS)["step"])

    def result(self) -> Result:
        peak = self.process.asked(seconds=0)["peak"]
        return Result(sorted(self.samples)[len(self.samples) // 4], self.said["first"], peak)

    @property
    def said(self) -> dict[str, Any]:
        """What it said when it was ready."""
        assert self.process.ready is not None
        return self.process.ready


def measured(work: Work) -> tuple[dict[str, Result], dict[str, str]]:
    """Results by framework, and why the others have none."""
    with ExitStack() as stack:
        ready: list[Framework] = []
        missing: dict[str, str] = {}
        for name in wanted(FRAMEWORKS, "FRAMEWORKS"):
            process = stack.enter_context(runner("benchmarks._peer", name, work.name, environment=ON_CPU))
            if process.ready is None:
                missing[name] = process.end()
            else:
                ready.append(Framework(name, process))
        for _ in range(ROUNDS):
            for one in ready:
                one.turn()
        if work.agrees:
            check_agreement(ready)
        return {one.name: one.result() for one in ready}, missing


def check_agreement(ready: Sequence[Framework]) -> None:
    """Raise RuntimeError where two frameworks give other numbers."""
    given = {one.name: np.array(one.said["result"]) for one in ready}
    first, expected = next(iter(given.items()))
    for name, found in given.items():
        if found.shape != expected.shape:
            raise RuntimeError(f"{name} gives {found.size} numbers, {first} {expected.size}")
        apart = np.abs(found - expected).max() / np.abs(expected).max()
        if not apart <= AGREEMENT:
            raise RuntimeError(f"{name} and {first} give numbers that are {apart:.1e} of the largest one apart")


@cache
def most_flops() -> float:
    return peak_rate_of(int(THREADS))


@cache
def most_moved(nbytes: float) -> float:
    return copy_rate(int(nbytes), int(THREADS))


def of_the_limit(work: Work, seconds: float) -> str:
    """The share of what bounds a work; nothing where that is something else."""
    if work.flops:
        return f"{work.flops / seconds / most_flops():.0%}"
    return f"{work.moved / seconds / most_moved(work.moved):.0%} of a copy" if work.moved else ""


def rows_of(work: Work, results: Mapping[str, Result], missing: Mapping[str, str]) -> Iterator[list[str]]:
    """Rows of a table, ours first."""
    ours = results["nnc"]
    for name, found in results.items():
        rate = f"{work.flops / found.step / 1e9:.0f}" if work.flops else ""
        yield [work.name if name == "nnc" else "", name, _time(found.step), f"{found.step / ours.step:.2f}", rate,
               of_the_limit(work, found.step), _time(found.first), f"{found.peak:.0f}"]
    for name, why in missing.items():
        if "No module named" not in why and "not made" not in why:
            yield ["", name, why[-60:], *[""] * 5]


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def wanted(names: Sequence[str], what: str) -> list[str]:
    """Those that the environment names, or all."""
    given = os.environ.get(f"NNC_BENCHMARK_{what}")
    return [name for name in names if given is None or name in given.split(",")]


def main() -> None:
    rows, ratios = list[list[str]](), dict[str, dict[str, float]]()
    for work in WORKS:
        if not wanted([work.name], "WORKS"):
            continue
        results, missing = measured(work)
        if "nnc" not in results:
            raise RuntimeError(f"{work.name} failed: {missing['nnc']}")
        rows += rows_of(work, results, missing)
        ratios[work.name] = {name: found.step / results["nnc"].step for name, found in results.items()}
    show("the same work", ["", "", "a step", "/ nnc", "GF/s", "of the limit", "first step", "peak MB"], rows)
    print(f"at most {most_flops() / 1e9:.0f} GFLOP/s on {THREADS} threads")
    draw_ratios(ratios, Path("out/peers.svg"))
