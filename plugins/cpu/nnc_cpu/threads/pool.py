"""The threads of this process: one set for everybody, started when a launch is first large enough for them."""

from __future__ import annotations

import ctypes
import threading
import warnings
from functools import cache
from operator import sub
from time import perf_counter
from typing import Any

from nnc_core.base.config import MOST_THREADS, config
from nnc_core.base.errors import FallbackWarning
from nnc_core.base.line import users_frame
from nnc_cpu.llvm.resident import for_ever, load_for_ever
from nnc_cpu.threads import system

SPIN = 100e-6
"""Seconds that a thread looks out for more work before it sleeps: what a loop of Python leaves between two calls, and a
few times what it takes to wake a thread."""
PARTS, PIECES = 2, 64
"""A thread takes a part of the tasks that are left, one of so many for each thread, and no less than a piece, of which
there are so many: while one is held up, others go on with what it has not begun, and all end at about the same time."""
TRIALS, PAUSES = 5, 400
"""Times that so many pauses are measured."""

_RUN = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 2)


class _PoolState(ctypes.Structure):
    """`pool.ll` says what is what, here and of helpers."""

    _fields_ = (
        ("job", ctypes.c_int64 * 16), ("taken", ctypes.c_int64 * 16), ("gate", ctypes.c_int64 * 16),
        ("owned", ctypes.c_int32), ("waiting", ctypes.c_int32), ("_", ctypes.c_char * 120),
        ("spins", ctypes.c_int64), ("locking", ctypes.c_void_p * 4), ("helpers", ctypes.c_void_p),
        ("unused", ctypes.c_char * 80), ("mutex", ctypes.c_char * 128), ("condition", ctypes.c_char * 128))


class _HelperState(ctypes.Structure):
    _fields_ = (
        ("pool", ctypes.c_void_p), ("index", ctypes.c_int64), ("asleep", ctypes.c_int32), ("_", ctypes.c_char * 108),
        ("mutex", ctypes.c_char * 128), ("condition", ctypes.c_char * 128))


class PoolCode:
    """The machine code of pools."""

    def __init__(self) -> None:
        pause = system.pause()
        self.addresses = load_for_ever("nnc_cpu.threads", "pool.ll", ("nnc_run", "nnc_help", "nnc_pauses"),
                                       PARTS=PARTS, PIECES=PIECES,
                                       PAUSE=f"call void {pause}" if pause else "",
                                       DECLARATION=f"declare void {pause.replace(' 1', '')}" if pause else "")
        self.help = self.addresses["nnc_help"]
        self.run: Any = _RUN(self.addresses["nnc_run"])

    def spins(self) -> int:
        """The number of pauses that take as long as SPIN."""
        pauses = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self.addresses["nnc_pauses"])
        took = [perf_counter()]
        for _ in range(TRIALS):
            pauses(PAUSES)
            took.append(perf_counter())
        quickest = min(map(sub, took[1:], took))  # the first call is slow, and any may be interrupted
        return max(1, int(PAUSES * SPIN / max(quickest, 1e-9)))


class ThreadPool:
    """Threads that help whoever launches something; one launch at a time has them, others do without."""

    def __init__(self, code: PoolCode) -> None:
        self.code, self.started = code, 0
        self._lock = threading.Lock()
        size = ctypes.sizeof(_PoolState) + MOST_THREADS * ctypes.sizeof(_HelperState) + 128
        room = for_ever(ctypes.create_string_buffer(size))  # threads look at it until the process ends
        self.address = -(-ctypes.addressof(room) // 128) * 128
        self.state = _PoolState.from_address(self.address)
        self.spins = code.spins()
        self.state.locking[:] = system.locking()
        self.state.helpers = self.address + ctypes.sizeof(_PoolState)
        system.initialise(self.address + _PoolState.mutex.offset, self.address + _PoolState.condition.offset)

    def helpers(self, count: int) -> int:
        """Have so many threads besides the caller's, or as many as the system gives."""
        if self.started < count:
            with self._lock:
                self.state.spins = self.spins if count < system.usable_cores() else 1
                while self.started < count and self._start(self.started):
                    self.started += 1
            if self.started < count:
                warnings.warn(f"the system gives no more than {self.started} threads besides one: kernels use these",
                              FallbackWarning, stacklevel=users_frame())
        return min(count, self.started)

    def _start(self, index: int) -> bool:
        place = self.state.helpers + index * ctypes.sizeof(_HelperState)
        helper = _HelperState.from_address(place)
        helper.pool, helper.index = self.address, index
        system.initialise(place + _HelperState.mutex.offset, place + _HelperState.condition.offset)
        return system.start(self.code.help, place)


class _Process:
    """State that a child of a fork makes anew."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pool: ThreadPool | None = None
        self.default: int | None = None
        """The number of threads where nobody says another."""


_HERE = _Process()
system.after_fork(lambda: _HERE.__init__())  # type: ignore[misc]
code = cache(PoolCode)


def pool() -> ThreadPool:
    """That of this process."""
    if _HERE.pool is None:
        with _HERE.lock:
            _HERE.pool = _HERE.pool or ThreadPool(code())
    return _HERE.pool


def wanted_threads() -> int:
    """`config.threads`; where that says nothing, the default, counted once for the process."""
    chosen: int | None = config.threads
    if chosen is not None:
        return chosen
    if _HERE.default is None:
        _HERE.default = system.default_threads()
    return _HERE.default

