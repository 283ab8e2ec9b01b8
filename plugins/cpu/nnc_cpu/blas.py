"""NumPy's BLAS on one thread, for commands between which threads of ours work.

Its threads go on turning for some 30 ms when a product is done, on the cores that machine code wants next.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from nnc_core.device import Launch
from nnc_cpu.threads import system

SHORT, LONG = 1 << 13, 1 << 29
"""Multiply-adds from which on a BLAS may have several threads, and from which on these are worth it all the same."""
NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads64_",
         "openblas_{}_num_threads")  # fmt: skip
_WORDS = ctypes.c_int64 * 5
_ON_HELD = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
GET, SET = ctypes.CFUNCTYPE(ctypes.c_int), ctypes.CFUNCTYPE(None, ctypes.c_int)
"""Of functions that say and take a number of threads."""


class ThreadCount(NamedTuple):
    """Functions of a BLAS, as `ctypes` calls them, that say and take the number of its threads."""

    get: Any
    set: Any


class Holding(NamedTuple):
    """Functions that hold a BLAS to one thread, from machine code too: `hold(held)`, and `release(held)` as often."""

    hold: int
    release: int
    held: int


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


def holding() -> Holding | None:
    """For NumPy's BLAS; None where its number of threads is not known."""
    count = thread_count()
    return None if count is None else _holding(*[ctypes.cast(f, ctypes.c_void_p).value or 0 for f in count])


@cache
def _holding(get: int, set: int) -> Holding:
    """LLVM, a tenth of a second, is loaded late."""
    functions = import_module("nnc_cpu.llvm.resident").load_for_ever("nnc_cpu", "held.ll", ("nnc_hold", "nnc_release"))
    words = _WORDS(0, 0, 1, get, set)
    _KEPT.append(words)
    return Holding(functions["nnc_hold"], functions["nnc_release"], ctypes.addressof(words))


_KEPT = list[Any]()
"""Words of `held.ll`, which machine code has the addresses of."""


def _begin_anew() -> None:
    """Nobody holds it in the child of a fork, where it has as many threads as it had before it was held."""
    for words in _KEPT:
        if words[1]:
            SET(words[4])(words[2])
        words[:2] = [0, 0]


system.after_fork(_begin_anew)


def on_one_thread(launch: Launch) -> Launch:
    """The launch with BLAS held to one thread."""
    found = holding()
    if found is None:
        return launch
    hold, release, held = _ON_HELD(found.hold), _ON_HELD(found.release), found.held

    def run() -> None:
        hold(held)
        try:
            launch()
        finally:
            release(held)

    return run


def is_in_the_way(work: int) -> bool:
    """Tell whether a BLAS would have several threads for so many multiply-adds, and they turn longer than they work."""
    return SHORT <= work < LONG
