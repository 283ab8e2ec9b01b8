"""An LSTM as a loop: planned memory and time against its length, beside the same network unrolled.

Batch 32, 64 inputs, 128 hidden units, float32; the loss is the sum of squares of all outputs.  Forward is the loop
alone, gradient a training step's forward and backward, in one graph.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import nnc_core as nnc
from benchmarks._measure import seconds, show

BATCH, INPUTS, HIDDEN = 32, 64, 128
LENGTHS = (16, 64, 256, 1024)
UNROLLED = 256
"""The longest that is unrolled: beyond it takes minutes to compile."""


def cell(state: tuple[nnc.Tensor, nnc.Tensor], x: nnc.Tensor, w: nnc.Tensor,
         u: nnc.Tensor) -> tuple[tuple[nnc.Tensor, nnc.Tensor], nnc.Tensor]:
    h, c = state
    z = x @ w + h @ u
    i, f, o, g = (z[:, k * HIDDEN : (k + 1) * HIDDEN] for k in range(4))
    c = nnc.sigmoid(f) * c + nnc.sigmoid(i) * nnc.tanh(g)
    h = nnc.sigmoid(o) * nnc.tanh(c)
    return (h, c), h


def by_scan(xs: nnc.Tensor, w: nnc.Tensor, u: nnc.Tensor) -> nnc.Tensor:
    zero = nnc.zeros((BATCH, HIDDEN))
    return nnc.sum(nnc.square(nnc.scan(lambda s, x: cell(s, x, w, u), (zero, zero), xs)[1]))


def unrolled(xs: nnc.Tensor, w: nnc.Tensor, u: nnc.Tensor) -> nnc.Tensor:
    state, ys = (nnc.zeros((BATCH, HIDDEN)),) * 2, []
    for t in range(xs.shape[0].__index__()):
        state, y = cell(state, xs[t], w, u)
        ys.append(y)
    return nnc.sum(nnc.square(nnc.stack(ys)))


def measured(name: str, f: Callable[..., Any], length: int) -> list[str]:
    rng = np.random.default_rng(0)
    xs, w, u = (nnc.asarray(rng.normal(0, 0.1, shape).astype(np.float32)) for shape in (
        (length, BATCH, INPUTS), (INPUTS, 4 * HIDDEN), (HIDDEN, 4 * HIDDEN)))
    row = [name, str(length)]
    for g in (f, nnc.value_and_grad(f, (1, 2))):
        step = nnc.jit(g)
        start = perf_counter()
        plan = step.lower(xs, w, u).memory_plan
        compiled = perf_counter() - start
        def run(step: Any = step) -> None:
            result = step(xs, w, u)
            (result[0] if isinstance(result, tuple) else result).numpy()
        row += [f"{compiled * 1e3:.0f}", f"{plan.peak / 2**20:.2f}", f"{plan.ratio:.2f}",
                f"{seconds(run, repeats=5) * 1e3:.1f}"]
    return row


def main() -> None:
    rows = []
    for length in LENGTHS:
        rows.append(measured("scan", by_scan, length))
        if length <= UNROLLED:
            rows.append(measured("unrolled", unrolled, length))
    columns = ["compile ms", "peak MiB", "/ bound", "run ms"]
    show(f"LSTM on {nnc.stack_for(None).device.spec.id}: forward, then forward and backward",
         ["", "length", *columns, *columns], rows)


if __name__ == "__main__":
    main()
