"""Fourier transforms of float32 on one thread, beside NumPy, SciPy and JAX where they are installed.

Measured are calls of compiled functions, in seconds of this process, which other processes disturb least; the least of
many turns.  Before the first import of JAX it is told to use one thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from math import prod
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import nnc_core as nnc
from benchmarks._measure import show

WARM, TURNS, PIECE = 5, 9, 0.01
"""Calls that are not measured, turns of each library, and seconds of one."""
SHAPES: tuple[tuple[int, ...], ...] = (
    (8,), (64,), (1000,), (1024,), (4096,), (1 << 16,), (1_000_000,), (1 << 20,),
    (1 << 16, 8), (4096, 64), (1000, 1000), (1024, 1024), (37,), (1009,), (100, 1009), (65537,))  # fmt: skip
PLANES = ((64, 64), (512, 512))
LIBRARIES = ("numpy", "scipy", "jax")


class Transform(NamedTuple):
    """A transform that has the same name in all libraries, and its operand."""

    name: str
    x: np.ndarray[Any, Any]


def transforms() -> Iterator[Transform]:
    rng = np.random.default_rng(0)
    for shapes, plane in ((SHAPES, ""), (PLANES, "2")):
        for shape in shapes:
            x = rng.standard_normal((2, *shape), np.float32)
            yield Transform(f"fft{plane}", x[0] + 1j * x[1])
            yield Transform(f"rfft{plane}", x[0])
            yield Transform(f"irfft{plane}", np.fft.rfft(x[0]).astype(np.complex64))


def ready(library: str, made: Transform) -> Callable[[], object]:
    """A call, with an operand of the library."""
    if library in ("numpy", "scipy"):
        f = getattr(import_module(f"{library}.fft"), made.name)
        return lambda: f(made.x)
    jax = import_module("jax")
    compiled, x = jax.jit(getattr(jax.numpy.fft, made.name)), jax.numpy.asarray(made.x)
    return lambda: compiled(x).block_until_ready()


def own(made: Transform) -> Callable[[], object]:
    compiled, x = nnc.jit(getattr(nnc.fft, made.name)), nnc.asarray(made.x)
    return lambda: compiled(x)


def least(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds of a call of each, the least of several turns."""
    counts, best = {}, dict.fromkeys(calls, float("inf"))
    for name, call in calls.items():
        for _ in range(WARM):
            call()
        begin = process_time()
        call()
        counts[name] = max(1, int(PIECE / max(process_time() - begin, 1e-6)))
    for _ in range(TURNS):
        for name, call in calls.items():
            begin = process_time()
            for _ in range(counts[name]):
                call()
            best[name] = min(best[name], (process_time() - begin) / counts[name])
    return best


def main() -> None:
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    libraries = [name for name in LIBRARIES if find_spec(name) is not None]
    rows = []
    with nnc.config.using(threads=1):
        for made in transforms():
            found = least({"nnc": own(made), **{name: ready(name, made) for name in libraries}})
            rows.append([f"{made.name} {' x '.join(map(str, made.x.shape))}", f"{found['nnc'] * 1e6:,.1f}",
                         f"{prod(made.x.shape) / found['nnc'] / 1e6:,.0f}",
                         *[f"{found[name] / found['nnc']:.2f}" for name in libraries]])
    show("one thread; of other libraries the time beside ours",
         ["transform", "us", "million elements/s", *libraries], rows)


if __name__ == "__main__":
    main()
