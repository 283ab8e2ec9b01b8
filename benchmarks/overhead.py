"""Microseconds of Python for one operation, and for a call of compiled code; NumPy (and torch if there) beside."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import nnc_core as nnc
from benchmarks._measure import least, seconds, show

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


def total(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any, j: Any) -> Any:
    return a + b + c + d + e + f + g + h + i + j


def compiled() -> list[list[str]]:
    """A call with 10 arrays, and what of it is spent where."""
    hosts = [np.full(8, k, np.float32) for k in range(10)]
    xs = [nnc.asarray(h) for h in hosts]
    step = nnc.jit(total)
    step(*xs)
    run = step.lower(*xs).program
    arrays = {f"arg{k}": x._value.array for k, x in enumerate(xs)}
    run.run(arrays)
    program = run._idle[-1]  # with the arguments of that call
    times = least({
        "numpy": lambda: total(*hosts), "nnc eager": lambda: total(*xs), "nnc.jit": lambda: step(*xs),
        "compiled graph: arguments bound, results made, launched": lambda: run.run(arrays),
        "its commands alone": program.run,
    })  # fmt: skip
    rows = [[name, f"{s * 1e6:.1f}"] for name, s in times.items()]
    whole, graph, launch = (times[name] for name in list(times)[2:])
    return [*rows, ["jit over the compiled graph", f"{(whole - graph) * 1e6:.1f}"],
            ["jit over the commands", f"{(whole - launch) * 1e6:.1f}"]]


def main() -> None:
    print(f"device {nnc.stack_for(None).device.spec.id}")
    show("9 additions of 10 arrays of 8 floats, minima", ["", "us"], compiled())
    show("add of 8 floats", ["", "us", "x numpy"], eager())
    show(f"a chain of {COUNT:,} operations", ["", "us an operation"], lazy())


if __name__ == "__main__":
    main()
