"""NumPy's BLAS on one thread, for commands between which threads of ours work.

Its threads go on turning for some 30 ms when a product is done, on the cores that machine code wants next.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from nnc_core.device import Launch
from nnc_cpu.threads import system

SHORT, LONG = 1 << 13, 1 << 29
"""Multiply-adds from which on a BLAS may have several threads, and from which on these are worth it all the same."""
NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads64_",
         "openblas_{}_num_threads")  # fmt: skip


class ThreadCount(NamedTuple):
    """Functions of a BLAS that say and take the number of its threads."""

    get: Callable[[], int]
    set: Callable[[int], Any]


class _Held:
    """State that a child of a fork makes anew."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.within = 0
        """Launches that hold the BLAS to one thread."""
        self.before = 1


_HERE = _Held()
system.after_fork(lambda: _HERE.__init__())  # type: ignore[misc]


@cache
def thread_count() -> ThreadCount | None:
    """NumPy's OpenBLAS; None where it has another BLAS, or the system does not find what a library has loaded."""
    try:
        library = ctypes.PyDLL(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return None
    for name in NAMES:
        get, set = (getattr(library, name.format(verb), None) for verb in ("get", "set"))
        if get is not None and set is not None:
            return ThreadCount(get, set)
    return None


def on_one_thread(launch: Launch) -> Launch:
    """The launch with BLAS held to one thread."""
    found = thread_count()
    if found is None:
        return launch
    count = found

    def run() -> None:
        with _HERE.lock:
            if not _HERE.within:
                _HERE.before = count.get()
                count.set(1)
            _HERE.within += 1
        try:
            launch()
        finally:
            with _HERE.lock:
                _HERE.within -= 1
                if not _HERE.within:
                    count.set(_HERE.before)

    return run


def is_in_the_way(work: int) -> bool:
    """Tell whether a BLAS would have several threads for so many multiply-adds, and they turn longer than they work."""
    return SHORT <= work < LONG
