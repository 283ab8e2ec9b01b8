"""What benchmarks share: timing in turn, peak memory, tables."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

WIDTH = 110


def seconds(f: Callable[[], object], repeats: int = 7, calls: int = 1) -> float:
    """Median time of one call of f, after one that is not counted."""
    f()
    samples = []
    for _ in range(repeats):
        start = perf_counter()
        for _ in range(calls):
            f()
        samples.append((perf_counter() - start) / calls)
    return median(samples)


def least(functions: dict[str, Callable[[], object]], repeats: int = 60, calls: int = 200) -> dict[str, float]:
    """The shortest mean time of a call of each, round by round: what it takes where nobody else uses the machine."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, f in functions.items():
            start = perf_counter()
            for _ in range(calls):
                f()
            best[name] = min(best[name], (perf_counter() - start) / calls)
    return best


def in_turn(functions: dict[str, Callable[[], object]], repeats: int = 7,
            clock: Callable[[], float] = perf_counter) -> dict[str, float]:
    """Medians of several functions called one after another, round by round, so that drift meets all of them."""
    samples: dict[str, list[float]] = {name: [] for name in functions}
    for f in functions.values():
        f()
    for _ in range(repeats):
        for name, f in functions.items():
            start = clock()
            f()
            samples[name].append(clock() - start)
    return {name: median(s) for name, s in samples.items()}


def peak_megabytes() -> float:
    """Largest resident size of this process so far, or since `forget_peak`.

    Linux keeps the parent's figure in getrusage across exec, so the kernel's own count comes first.
    """
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def forget_peak() -> float:
    """Megabytes that this process has resident now; what it had at most counts from here, where Linux lets it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return peak_megabytes()
    return _status("VmRSS")


def _status(field: str) -> float:
    """Megabytes by the kernel's count, 0 where it does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:")), 0.0)


def child(module: str, *arguments: str) -> str:
    """The last line printed by `python -m module arguments`, run in a process of its own (for peak memory)."""
    done = subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{module} {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout.strip().splitlines()[-1]


def show(title: str, header: list[str], rows: list[list[str]]) -> None:
    """A rich table where rich is installed, else columns of plain text."""
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        _show_plain(title, [header, *rows])
        return
    table = Table(title=title)
    for column in header:
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(width=max(Console().width, WIDTH), markup=False).print(table)


def _show_plain(title: str, rows: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    print(title)
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


