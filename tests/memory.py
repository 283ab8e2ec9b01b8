"""Keeps processes small that run thousands of tests each."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from nnc_core.device import device
from nnc_core.engine import build, decide
from nnc_core.stacks import opened

M_MMAP_THRESHOLD = -3  # of glibc's mallopt
LARGE = 1 << 20
MUCH = 64 << 20
IDLE = 16 << 20
"""Bytes that lie ready in each device's pool."""
KERNELS = 256
DECISIONS = 1024
"""Of each device; with their commands they take 3 KiB each."""
OFTEN = 500
"""Tests after which the collector has grown slow by what they left."""
_PAGES = Path("/proc/self/statm")


def return_large_arrays() -> None:
    """Have large arrays go back to the system when they are freed.

    Left to itself glibc raises the bound with each array that is freed, and larger ones leave holes too.
    """
    with suppress(AttributeError, OSError, TypeError):  # another C library
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE)


def keep_few_kernels() -> None:
    """Thousands of commands run once each here; kernels of OpenCL take half a MiB each, and are on disk."""
    build.EAGER_KERNELS = KERNELS
    decide.DECISIONS = DECISIONS


def keep_little_idle_memory() -> None:
    """A dozen devices have pools here, with arrays of the largest tests."""
    device.POOLED = IDLE


@contextmanager
def without_collector() -> Iterator[None]:
    """Within it pytest makes thousands of items that live as long as the process: there is nothing to collect."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def leave_alone_what_is_there() -> None:
    """Let the collector pass over what is alive now: thousands of pytest's items and what tests that ran have left in
    caches, which live as long as the process."""
    gc.collect()
    gc.freeze()


def resident() -> int:
    """Bytes of this process in memory; 0 where the system does not say."""
    pages = _pages()
    return 0 if pages is None else int(os.pread(pages, 128, 0).split()[1]) * mmap.PAGESIZE


@lru_cache(maxsize=1)
def _pages() -> int | None:
    """Descriptor of the file that tells it: asked after each test."""
    return os.open(_PAGES, os.O_RDONLY) if _PAGES.exists() else None


class Floor:
    """How large the process is between tests; after a test that leaves much behind all is collected and returned."""

    def __init__(self) -> None:
        self.bytes, self.tests = resident(), 0

    def sweep(self) -> None:
        self.tests += 1
        if self.tests % OFTEN == 0:
            leave_alone_what_is_there()
        self.bytes = min(self.bytes, now := resident())
        if now > self.bytes + MUCH:
            gc.unfreeze()  # what has left the caches since is garbage that the collector passes over
            gc.collect()
            _return_all()
            self.bytes = resident()


def _return_all() -> None:
    """Have what is free go back to the system: idle memory of all devices, and what lies between thousands of small
    pieces of dead kernels."""
    for stack in opened():
        stack.device.trim()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
