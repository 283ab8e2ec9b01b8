"""What the machine can do at most, measured in the run that is compared with it: multiply-adds and copies."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import perf_counter, thread_time

import numpy as np

from nnc_cpu.llvm.compiler import HostCompiler, host
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.products.writing import function_text, loaded, moved, store

SUMS, STEPS = 24, 1 << 18
"""Vectors that the peak is measured with, and multiply-adds of each."""
ROUNDS = 14
COPIED = 1 << 28
"""Bytes that a round of copies moves."""


def peak_rate() -> float:
    """Operations a second of vectors that are multiplied and added in registers, on one thread."""
    run, operations = _multiply_adds()
    return operations / min(_timed(run, thread_time) for _ in range(ROUNDS))


def peak_rate_of(threads: int) -> float:
    """The same of several threads at once, by the clock on the wall."""
    run, operations = _multiply_adds()
    return _together([run] * threads, operations)


def copy_rate(nbytes: int, threads: int) -> float:
    """Bytes a second that several threads read and write at once which copy arrays of so many bytes, targets
    included."""
    count = max(1, nbytes // (8 * threads))  # float32, source and target
    repeats = max(1, COPIED // nbytes)

    def copies() -> Callable[[], None]:
        source, target = np.ones(count, np.float32), np.zeros(count, np.float32)

        def run() -> None:
            for _ in range(repeats):
                np.copyto(target, source)

        return run

    return _together([copies() for _ in range(threads)], 8.0 * count * repeats)


def _together(runs: list[Callable[[], None]], amount: float) -> float:
    """What all do in a second, of which each does the amount in its thread; the best of some rounds."""
    begin = Barrier(len(runs))

    def rate(run: Callable[[], None]) -> float:
        begin.wait()
        return amount / _timed(run, perf_counter)

    with ThreadPoolExecutor(len(runs)) as pool:
        return max(sum(pool.map(rate, runs)) for _ in range(ROUNDS))


def _timed(run: Callable[[], None], clock: Callable[[], float]) -> float:
    start = clock()
    run()
    return clock() - start


def _multiply_adds() -> tuple[Callable[[], None], float]:
    """Machine code that does nothing else, without the interpreter's lock, and its operations."""
    target, declared = host(), dict[str, None]()
    f = FunctionWriter(declared)
    sums = [f.variable("float", target.lanes) for _ in range(SUMS)]
    factor = f.spread(Register("%factor", "float"), target.lanes)
    places = [moved(f, Register("%out", "ptr"), "float", integer(n), target.lanes) for n in range(SUMS)]
    for x, place in zip(sums, places, strict=True):
        f.set(x, loaded(f, place, "float", target.lanes, 4, None))
    with f.loop(integer(0), integer(STEPS)):
        for x in sums:
            value = f.get(x, "float", target.lanes)
            f.set(x, f.call(f"llvm.fma.v{target.lanes}f32", "float", factor, factor, value, lanes=target.lanes))
    for x, place in zip(sums, places, strict=True):
        store(f, f.get(x, "float", target.lanes), place, 4, None)
    text = function_text(f, "peak", (("out", "ptr"), ("factor", "float")), linkage="")
    machine = HostCompiler(target)
    module = machine.load([machine.compile("\n".join([*declared, text]))], ["peak"])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_float)(module.addresses["peak"])

    def run() -> None:
        assert module  # whose code it is
        out = np.zeros(SUMS * target.lanes, np.float32)
        function(out.ctypes.data, 0.5)

    return run, 2.0 * SUMS * STEPS * target.lanes
