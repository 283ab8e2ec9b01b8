"""Eager calls beside NumPy's: everyday ones of 8 elements, and public functions at 8 and at 1e6 elements.

Those beyond the limit stand together at the end.  On a busy machine `NNC_BENCHMARK_CLOCK=cpu NNC_BENCHMARK_THREADS=1`
compares the processor time of one thread.  Machine code is made before: what is timed are calls made often.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time
from typing import NamedTuple

import nnc_core as nnc
from benchmarks._eager import LARGE, Case, Operands
from benchmarks._eager_dtypes import halves, wide
from benchmarks._eager_elementwise import elementwise
from benchmarks._eager_everyday import everyday
from benchmarks._eager_movement import movement
from benchmarks._eager_names import by_name
from benchmarks._eager_order import order
from benchmarks._eager_random import draws
from benchmarks._eager_reductions import reductions
from benchmarks._eager_spellings import by_other_spellings
from benchmarks._measure import show
from nnc_cpu.blas import thread_count

CLOCK = process_time if os.environ.get("NNC_BENCHMARK_CLOCK") == "cpu" else perf_counter
ENOUGH = 2e-4
"""Seconds that a sample should take at least."""
SMALL_LIMIT, LARGE_LIMIT, ALLOWED = 5, 3, 6e-6
"""Times NumPy's own time, and seconds that any call may take."""


def _count(f: Callable[[], object]) -> int:
    """The number of calls that a sample takes, by the quickest of a few: one of them may make what later calls use."""
    f()
    quickest = min(_sample(f, 1) for _ in range(3))
    return max(1, min(200, int(ENOUGH / max(quickest, 1e-9))))


def _sample(f: Callable[[], object], calls: int) -> float:
    start = CLOCK()
    for _ in range(calls):
        f()
    return (CLOCK() - start) / calls


def compared(case: Case, repeats: int = 5) -> tuple[float, float]:
    """Median seconds of ours and of NumPy's, measured in turn."""
    both = [(f, _count(f), list[float]()) for f in (case.ours, case.numpy)]
    for _ in range(repeats):
        for f, calls, samples in both:
            samples.append(_sample(f, calls))
    ours, numpy = (median(samples) for _, _, samples in both)
    return ours, numpy


class Row(NamedTuple):
    """A case, its seconds, and whether it is beyond its limit."""

    name: str
    ours: float
    numpy: float
    is_beyond: bool

    @property
    def cells(self) -> list[str]:
        return [self.name, f"{self.ours * 1e6:,.1f}", f"{self.numpy * 1e6:,.1f}", f"{self.ours / self.numpy:.1f}",
                "beyond" if self.is_beyond else ""]


def rows(cases: list[Case], limit: float, allowed: float) -> list[Row]:
    """A row for each case, the largest ratio first."""
    found = [(c.name, *compared(c)) for c in cases]
    return sorted([Row(name, ours, numpy, ours > max(limit * numpy, allowed)) for name, ours, numpy in found],
                  key=lambda row: -row.ours / row.numpy)


def of_size(size: int) -> list[Case]:
    operands = Operands(size)
    families = order, reductions, elementwise, movement, draws, by_other_spellings, wide, halves, by_name
    return [case for family in families for case in family(operands)]


def main(*names: str) -> None:
    header = ["", "ours us", "NumPy us", "ratio", ""]
    nnc.config.compile_at_once = True
    if threads := os.environ.get("NNC_BENCHMARK_THREADS"):
        nnc.config.threads = int(threads)
        if (blas := thread_count()) is not None:  # whose threads turn for a while when their work is done
            blas.set(int(threads))

    def chosen(cases: list[Case]) -> list[Case]:
        return [c for c in cases if not names or any(name in c.name for name in names)]

    bound = f"Everyday calls; at most {SMALL_LIMIT} x NumPy, or {ALLOWED * 1e6:g} us"
    parts = [(bound, everyday(), SMALL_LIMIT, ALLOWED),
             (f"{LARGE:,} elements; at most {LARGE_LIMIT} x NumPy", of_size(LARGE), LARGE_LIMIT, ALLOWED),
             ("8 elements", of_size(8), SMALL_LIMIT, ALLOWED)]
    found = []
    for title, cases, limit, allowed in parts:
        found.append((title, rows(chosen(cases), limit, allowed)))
        show(title, header, [row.cells for row in found[-1][1]])
    for title, measured in found:
        beyond = [row for row in measured if row.is_beyond]
        show(f"Beyond: {len(beyond)} of {len(measured)}, {title}", header, [row.cells for row in beyond])


if __name__ == "__main__":
    main(*sys.argv[1:])
