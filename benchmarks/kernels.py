"""Machine code of loop nests on one thread: single and fused operators, beside NumPy and beside copying.

256k elements lie in the caches, 16M do not (`python -m benchmarks.kernels 16777216`).  What is measured is a call of a
compiled function, with what it costs to get from Python to the kernel, in seconds of this thread, which other processes
disturb least.  Bytes are those that must be read and written,
against those of a copy measured in the same run.  PyTorch beside, if it is there.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from time import thread_time
from typing import Any, NamedTuple

import numpy as np

import nnc_core as nnc
from benchmarks._measure import in_turn, show

Array = np.ndarray[Any, Any]
SIZES = (1 << 18,)
COLUMNS = 512
ROUNDS = 15


class KernelCase(NamedTuple):
    """A function of arrays that has the same name, or the same words, in all libraries."""

    name: str
    f: Callable[..., Any]
    """Of a library, then arrays."""
    inputs: tuple[Any, ...]
    moved: int
    """Bytes that must be read and written."""


def softmax(xp: Any, x: Any) -> Any:
    if xp is np:
        powers = np.exp(x - x.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)
    return nnc.softmax(x, axis=1) if xp is nnc else xp.softmax(x, 1)


def layer_norm(xp: Any, x: Any) -> Any:
    if xp is np:
        centred = x - x.mean(axis=1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(1e-5))
    if xp is nnc:
        centred = x - nnc.mean(x, axis=1, keepdims=True)
        return centred / nnc.sqrt(nnc.mean(centred * centred, axis=1, keepdims=True) + 1e-5)
    return xp.nn.functional.layer_norm(x, x.shape[1:])


def gelu(xp: Any, x: Any) -> Any:
    """NumPy has no error function: there by the hyperbolic tangent."""
    if xp is np:
        return np.float32(0.5) * x * (1 + np.tanh(np.float32(0.7978846) * (x + np.float32(0.044715) * x * x * x)))
    return nnc.gelu(x) if xp is nnc else xp.nn.functional.gelu(x)


def gated(xp: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return xp.tanh(a * b + c) * d


def adam(xp: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
    m = m * 0.9 + g * 0.1
    v = v * 0.999 + g * g * 0.001
    return p - 0.001 * m / (xp.sqrt(v) + 1e-8), m, v


def turned(xp: Any, x: Any) -> Any:
    """In the order of the result: NumPy and PyTorch would leave it as it lies."""
    if xp is np:
        return np.ascontiguousarray(x.T)
    return x.T + 0 if xp is nnc else x.T.contiguous()


def flipped(xp: Any, x: Any) -> Any:
    return -xp.flip(x, axis=1) if xp in (np, nnc) else -xp.flip(x, (1,))


def cast_to(dtype: str) -> Callable[..., Any]:
    def cast(xp: Any, x: Any) -> Any:
        return xp.astype(x, getattr(xp, dtype)) if xp in (np, nnc) else x.to(getattr(xp, dtype))

    return cast


def along(name: str, axis: int) -> Callable[..., Any]:
    return lambda xp, x: getattr(xp, name)(x, axis=axis)


def rows_at(xp: Any, x: Any, i: Any) -> Any:
    return xp.take(x, i, axis=0) if xp in (np, nnc) else x[i]


def running_sums(axis: int) -> Callable[..., Any]:
    return lambda xp, x: nnc.cumulative_sum(x, axis=axis) if xp is nnc else xp.cumsum(x, axis)


def cases(size: int) -> Iterator[KernelCase]:
    rng = np.random.default_rng(0)
    shape = size // COLUMNS, COLUMNS
    a, b, c, d = (rng.standard_normal(shape, np.float32) for _ in range(4))
    nbytes, rows = a.nbytes, 4 * shape[0]

    def call(name: str) -> Callable[..., Any]:
        return lambda xp, *x: getattr(xp, name)(*x)

    yield KernelCase("a + b", lambda xp, a, b: a + b, (a, b), 3 * nbytes)
    for name in ("exp", "log", "sin", "tanh", "sqrt"):
        yield KernelCase(name, call(name), (abs(a),), 2 * nbytes)
    for name in ("sum", "argmax"):
        yield KernelCase(f"{name} of rows", along(name, 1), (a,), nbytes + rows)
        yield KernelCase(f"{name} of columns", along(name, 0), (a,), nbytes)
    yield KernelCase("running sums in rows", running_sums(1), (a,), 2 * nbytes)
    yield KernelCase("running sums in columns", running_sums(0), (a,), 2 * nbytes)
    for dtype, width in (("float16", 2), ("int32", 4), ("float64", 8)):
        yield KernelCase(f"cast to {dtype}", cast_to(dtype), (a,), nbytes * (4 + width) // 4)
    yield KernelCase("cast from float16", cast_to("float32"), (a.astype(np.float16),), nbytes * 3 // 2)
    yield KernelCase("reversed rows", flipped, (a,), 2 * nbytes)
    yield KernelCase("transposed", turned, (a,), 2 * nbytes)
    yield KernelCase("a + transposed b", lambda xp, a, b: a + b.T, (a, b.reshape(COLUMNS, -1)), 3 * nbytes)
    i, j = rng.integers(0, shape[0], shape[0]), rng.integers(0, size, size)
    yield KernelCase("rows by index", rows_at, (a, i), 2 * nbytes)
    yield KernelCase("elements by index", rows_at, (a.reshape(-1), j), 2 * nbytes + j.nbytes)
    yield KernelCase("rows by index * 2 + 1", lambda xp, x, i: rows_at(xp, x, i) * 2 + 1, (a, i), 2 * nbytes)
    yield KernelCase("layer norm of rows by index", lambda xp, x, i: layer_norm(xp, rows_at(xp, x, i)), (a, i),
                     2 * nbytes)
    yield KernelCase("softmax", softmax, (a,), 2 * nbytes)
    yield KernelCase("layer norm", layer_norm, (a,), 2 * nbytes)
    yield KernelCase("gelu", gelu, (a,), 2 * nbytes)
    yield KernelCase("tanh(a * b + c) * d", gated, (a, b, c, d), 5 * nbytes)
    yield KernelCase("update by Adam", adam, (a, b, c, abs(d)), 7 * nbytes)


def peers() -> dict[str, Any]:
    found: dict[str, Any] = {"numpy": np}
    try:
        import torch
    except ImportError:
        return found
    torch.set_num_threads(1)
    return found | {"torch": torch}


def measured(case: KernelCase, others: dict[str, Any]) -> dict[str, float]:
    """Seconds of a call, by library and of a copy of a million elements."""
    ours, tensors = nnc.jit(partial(case.f, nnc)), [nnc.asarray(x) for x in case.inputs]
    functions: dict[str, Callable[[], object]] = {"nnc": lambda: ours(*tensors)}
    for name, library in others.items():
        arrays = case.inputs if library is np else [library.from_numpy(x) for x in case.inputs]
        functions[name] = lambda library=library, arrays=arrays: case.f(library, *arrays)
    for _ in range(2):  # ours is traced, then run
        functions["nnc"]()
    return in_turn(functions, ROUNDS, thread_time)


def copying(nbytes: int) -> float:
    """Bytes of copying in a second, those read and those written."""
    source, target = np.ones(nbytes, np.uint8), np.ones(nbytes, np.uint8)
    return 2 * nbytes / in_turn({"copy": lambda: np.copyto(target, source)}, 4 * ROUNDS, thread_time)["copy"]


def main(sizes: tuple[int, ...] = SIZES) -> None:
    others = peers()
    nnc.config.threads, nnc.config.compile_at_once = 1, True
    for size in sizes:
        speed, rows = copying(4 * size), []
        for case in cases(size):
            seconds = measured(case, others)
            ours = seconds["nnc"]
            rows.append([case.name, f"{ours * 1e6:,.0f}", f"{case.moved / ours / speed:.2f}",
                         *[f"{seconds[name] * 1e6:,.0f}" for name in others],
                         f"{min(seconds[name] for name in others) / ours:.2f}"])
        show(f"{size:,} elements, medians of {ROUNDS} rounds in turn; a copy moves {speed / 1e9:.1f} GB/s",
             ["", "nnc us", "of a copy's GB/s", *[f"{name} us" for name in others], "best peer / nnc"], rows)


if __name__ == "__main__":
    warnings.simplefilter("ignore", RuntimeWarning)
    main(tuple(map(int, sys.argv[1:])) or SIZES)
