"""A chain of 200 operations on 1,000 floats: compiled, jit, eager, NumPy with and without `out=`, in turn.

Small arrays: what is measured is the way from Python to the kernels.  A call gives a new result each time, which the
caller keeps until the next one, as training loops do.  JAX beside, if it is there.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import nnc_core as nnc
from benchmarks._measure import show

LENGTH, SIZE, ROUNDS, CALLS = 200, 1000, 60, 10


def chained(x: Any) -> Any:
    y = x
    for k in range(LENGTH // 2):
        y = (y + x) * (0.5 if k % 2 else 0.51)
    return y


def chained_by_hand(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """NumPy as a person writes it who counts: one array, written over."""
    y = x.copy()
    for k in range(LENGTH // 2):
        np.add(y, x, out=y)
        np.multiply(y, np.float32(0.5 if k % 2 else 0.51), out=y)
    return y


class Kept:
    """Calls a function and keeps its result until the next call."""

    def __init__(self, f: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        self.f, self.arguments, self.named = f, arguments, named
        self.result: Any = None

    def __call__(self) -> None:
        self.result = self.f(*self.arguments, **self.named)


def cases(host: np.ndarray[Any, Any]) -> dict[str, Callable[[], object]]:
    x = nnc.asarray(host)
    with nnc.deferred():
        y = chained(x)
    found: dict[str, Callable[[], object]] = {
        "numpy": Kept(chained, host), "numpy, out=": Kept(chained_by_hand, host), "nnc eager": Kept(chained, x),
        "nnc.jit": Kept(nnc.jit(chained), x), "nnc compiled": Kept(nnc.export({"x": x}, {"y": y}).compile(), x=x),
    }  # fmt: skip
    try:
        import jax

        found["jax.jit"] = Kept(jax.jit(chained), jax.numpy.asarray(host))
    except ImportError:
        pass
    return found


def main() -> None:
    functions = cases(np.ones(SIZE, np.float32))
    samples: dict[str, list[float]] = {name: [] for name in functions}
    for f in functions.values():
        f()
    gc.collect()
    for _ in range(ROUNDS):
        for name, f in functions.items():
            start = perf_counter()
            for _ in range(CALLS):
                f()
            samples[name].append((perf_counter() - start) / CALLS)
    base = median(samples["numpy"])
    rows = [[name, f"{min(s) * 1e6:.0f}", f"{median(s) * 1e6:.0f}", f"{median(s) / base:.2f}"]
            for name, s in samples.items()]
    print(f"device {nnc.stack_for(None).device.spec.id}")
    show(f"{LENGTH} operations on {SIZE:,} floats", ["", "us, minimum", "us, median", "x numpy"], rows)


if __name__ == "__main__":
    main()
