"""Eager calls beside NumPy's: everyday ones of 8 elements, and public functions at 8 and at 1e6 elements."""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

from benchmarks._eager import LARGE, Case, Operands
from benchmarks._eager_elementwise import elementwise
from benchmarks._eager_everyday import everyday
from benchmarks._eager_movement import movement
from benchmarks._eager_order import order
from benchmarks._eager_reductions import reductions
from benchmarks._measure import show

ENOUGH = 2e-4
"""Seconds that a sample should take at least."""
SMALL_LIMIT, LARGE_LIMIT, ALLOWED = 5, 3, 6e-6
"""Times NumPy's own time, and seconds that any call may take."""


def _count(f: Callable[[], object]) -> int:
    """The number of calls that a sample takes."""
    f()
    start = perf_counter()
    f()
    return max(1, min(200, int(ENOUGH / max(perf_counter() - start, 1e-9))))


def _sample(f: Callable[[], object], calls: int) -> float:
    start = perf_counter()
    for _ in range(calls):
        f()
    return (perf_counter() - start) / calls


def compared(case: Case, repeats: int = 7) -> tuple[float, float]:
    """Median seconds of ours and of NumPy's, measured in turn."""
    both = [(f, _count(f), list[float]()) for f in (case.ours, case.numpy)]
    for _ in range(repeats):
        for f, calls, samples in both:
            samples.append(_sample(f, calls))
    ours, numpy = (median(samples) for _, _, samples in both)
    return ours, numpy


def rows(cases: list[Case], limit: float, allowed: float) -> list[list[str]]:
    """A row for each case, the largest ratio first; those beyond the limit are marked."""
    found = sorted([(c.name, *compared(c)) for c in cases], key=lambda row: -row[1] / row[2])
    return [[name, f"{ours * 1e6:,.1f}", f"{numpy * 1e6:,.1f}", f"{ours / numpy:.1f}",
             "beyond" if ours > max(limit * numpy, allowed) else ""] for name, ours, numpy in found]


def of_size(size: int) -> list[Case]:
    operands = Operands(size)
    return [case for family in (order, reductions, elementwise, movement) for case in family(operands)]


def main(*names: str) -> None:
    header = ["", "ours us", "NumPy us", "ratio", ""]

    def chosen(cases: list[Case]) -> list[Case]:
        return [c for c in cases if not names or any(name in c.name for name in names)]

    show(f"Everyday calls; at most {SMALL_LIMIT} x NumPy, or {ALLOWED * 1e6:g} us", header,
         rows(chosen(everyday()), SMALL_LIMIT, ALLOWED))
    large, small = of_size(LARGE), of_size(8)
    show(f"{LARGE:,} elements; at most {LARGE_LIMIT} x NumPy", header, rows(chosen(large), LARGE_LIMIT, 0.0))
    show("8 elements", header, rows(chosen(small), SMALL_LIMIT, ALLOWED))


if __name__ == "__main__":
    main(*sys.argv[1:])
