"""Differences between systems: the CPUs and registers that a process may use, locks, and how a thread starts."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from nnc_core.base.config import MOST_THREADS

CGROUPS = Path("/sys/fs/cgroup")
STACK = 1 << 22
"""Bytes of the stacks of threads that start here: some times what kernels keep there, whatever the system, or a limit
of the user's, gives to threads by itself."""


def usable_cores() -> int:
    """CPUs that this process may run on: those of its affinity, and no more than the quota of its control group."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *map(ceil, quotas(Path("/proc/self/cgroup"), CGROUPS))]))


def quotas(membership: Path, root: Path) -> Iterator[float]:
    """CPUs' worth of time that the control groups of a process, and those around them, allow."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, place = line.partition(":")
        controllers, _, path = place.partition(":")
        if "cpu" in controllers.split(",") or place.startswith(":"):  # of version 2, which has no controllers here
            top = root / controllers
            group = top / path.lstrip("/")
            while group.is_relative_to(top):
                yield from _quota(group)
                group = group.parent


def _quota(group: Path) -> Iterator[float]:
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):  # of version 2, of version 1
        try:
            quota, period = " ".join([(group / name).read_text() for name in names]).split()
        except (OSError, ValueError):
            continue
        if quota.isdigit() and period.isdigit() and int(quota) and int(period):  # "max", or -1, is no limit
            yield int(quota) / int(period)


def limit_of_environment() -> int | None:
    """OMP_NUM_THREADS, of which the first number counts; None if it is not set to one."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdigit() and int(first) else None


def default_threads() -> int:
    """CPUs that this process may use, but no more than OMP_NUM_THREADS says."""
    cores = usable_cores()
    return min(cores, limit_of_environment() or cores, MOST_THREADS)


def allows_amx() -> bool:
    """Ask for the registers of AMX, which Linux gives to processes that do: for all threads, and for good.  It refuses
    where a thread handles signals on a stack that is too small to keep them."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    call, ask, registers = 158, 0x1023, 18  # arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
    return int(ctypes.CDLL(None).syscall(call, ask, registers)) == 0


def pause() -> str | None:
    """The function of LLVM that leaves the core to its other thread for a moment, called, if there is one."""
    kind = platform.machine().lower()
    if kind in ("x86_64", "amd64"):
        return "@llvm.x86.sse2.pause()"
    return "@llvm.aarch64.hint(i32 1)" if kind in ("aarch64", "arm64") else None


class Locking(NamedTuple):
    """Addresses of the functions that lock and unlock a mutex, wait for a condition under one, and wake its waiters."""

    lock: int
    unlock: int
    wait: int
    wake: int


if sys.platform == "win32":
    _KERNEL32 = ctypes.WinDLL("kernel32", use_last_error=True)

    def locking() -> Locking:
        """Functions of slim locks and condition variables."""
        return Locking(*map(_address, (_KERNEL32.AcquireSRWLockExclusive, _KERNEL32.ReleaseSRWLockExclusive,
                                       _KERNEL32.SleepConditionVariableSRW, _KERNEL32.WakeAllConditionVariable)))

    def initialise(mutex: int, condition: int) -> None:
        """Make them of zeroed memory, which they are here."""

    def start(function: int, argument: int) -> bool:
        """Run `function(argument)` in a thread that nobody joins; False if the system has none to give."""
        create = _KERNEL32.CreateThread
        create.restype = ctypes.c_void_p
        handle = create(None, ctypes.c_size_t(STACK), ctypes.c_void_p(function), ctypes.c_void_p(argument), 0, None)
        if handle:
            _KERNEL32.CloseHandle(ctypes.c_void_p(handle))
        return bool(handle)

else:
    import signal

    _PROCESS = ctypes.CDLL(None)
    _ATTRIBUTES = 256
    """Bytes that have room for the attributes of a thread on any system."""

    def locking() -> Locking:
        """Functions of POSIX threads."""
        return Locking(*map(_address, (_PROCESS.pthread_mutex_lock, _PROCESS.pthread_mutex_unlock,
                                       _PROCESS.pthread_cond_wait, _PROCESS.pthread_cond_broadcast)))

    def initialise(mutex: int, condition: int) -> None:
        """Make them of zeroed memory."""
        _PROCESS.pthread_mutex_init(ctypes.c_void_p(mutex), None)
        _PROCESS.pthread_cond_init(ctypes.c_void_p(condition), None)

    def start(function: int, argument: int) -> bool:
        """Run `function(argument)` in a thread that nobody joins; False if the system has none to give."""
        thread, attributes = ctypes.c_void_p(), ctypes.create_string_buffer(_ATTRIBUTES)
        _PROCESS.pthread_attr_init(attributes)
        _PROCESS.pthread_attr_setstacksize(attributes, ctypes.c_size_t(STACK))
        with _no_signals():
            failed = _PROCESS.pthread_create(
                ctypes.byref(thread), attributes, ctypes.c_void_p(function), ctypes.c_void_p(argument))
        _PROCESS.pthread_attr_destroy(attributes)
        if not failed:
            _PROCESS.pthread_detach(thread)
        return not failed

    @contextmanager
    def _no_signals() -> Iterator[None]:
        """Threads that begin here take none: signals are for those of Python."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def after_fork(function: Callable[[], None]) -> None:
    """Call a function in each child that a fork makes; systems without forks need nothing."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def _address(function: Any) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found
