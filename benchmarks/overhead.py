"""Microseconds of Python for one operation: eager, recorded, optimised, planned; NumPy (and torch if there) beside."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

import nnc_core as nnc
from benchmarks._measure import seconds, show

COUNT = 20_000


def eager() -> list[list[str]]:
    """Adding 8 floats."""
    host = np.ones(8, np.float32)
    x = nnc.asarray(host)
    v = nnc.variable(host)
    cases: dict[str, Callable[[], object]] = {
        "numpy": lambda: host + host, "nnc eager": lambda: x + x, "nnc eager, + 1.0": lambda: x + 1.0,
        "nnc eager, recorded for a gradient": lambda: v + v,
    }  # fmt: skip
    try:
        import torch

        t = torch.ones(8)
        cases["torch eager"] = lambda: t + t
    except ImportError:
        pass
    base = seconds(cases["numpy"], calls=COUNT)
    rows = []
    for name, f in cases.items():
        s = seconds(f, calls=COUNT)
        rows.append([name, f"{s * 1e6:.2f}", f"{s / base:.1f}"])
    return rows


def lazy() -> list[list[str]]:
    """A chain: recorded, exported, optimised, compiled (planned) and run, for each operation or node."""
    x = nnc.asarray(np.ones(8, np.float32))
    times: list[tuple[str, float]] = []

    def clock(name: str, f: Callable[[], object]) -> object:
        start = perf_counter()
        result = f()
        times.append((name, (perf_counter() - start) / COUNT))
        return result

    def record() -> nnc.Tensor:
        with nnc.deferred():
            y = x
            for _ in range(COUNT // 2):
                y = nnc.sin(y + x)
        return y

    record()
    y = clock("recorded", record)
    graph = clock("exported", lambda: nnc.export({"x": x}, {"y": y}))
    stack = nnc.stack_for(None)
    clock("optimised", lambda: stack.graph.optimise(graph))
    compiled = clock("compiled without optimising: scheduled, planned, bound", lambda: graph.compile(optimise=False))
    compiled(x=x)
    clock("run", lambda: compiled(x=x))
    return [[name, f"{s * 1e6:.2f}"] for name, s in times]


def main() -> None:
    print(f"device {nnc.stack_for(None).device.spec.id}")
    show("add of 8 floats", ["", "us", "x numpy"], eager())
    show(f"a chain of {COUNT:,} operations", ["", "us an operation"], lazy())


if __name__ == "__main__":
    main()
