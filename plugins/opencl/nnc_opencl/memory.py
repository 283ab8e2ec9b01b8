"""Buffers, and the account of how much memory they take."""

from __future__ import annotations

import threading
from collections import deque

import pyopencl as cl

from nnc_core.base.errors import DeviceMemoryError
from nnc_core.device import DeviceSpec


class OpenCLBuffer:
    """Device memory.  `memory` is the driver's, where nothing has zero bytes: `nbytes` may be smaller.  It keeps the
    buffer alive that it is a part of."""

    __slots__ = ("__weakref__", "memory", "nbytes", "offset", "whole")

    def __init__(self, memory: cl.Buffer, nbytes: int, whole: OpenCLBuffer | None, offset: int) -> None:
        self.memory, self.nbytes, self.whole, self.offset = memory, nbytes, whole, offset

    @property
    def allocation(self) -> WholeBuffer:
        """The allocation of which this is a part; a sub-buffer has no sub-buffers of its own in OpenCL."""
        assert self.whole is not None
        return self.whole.allocation

    def __repr__(self) -> str:
        return f"<OpenCL buffer of {self.nbytes} bytes>"


class WholeBuffer(OpenCLBuffer):
    """A whole buffer; leaves its account when it is collected."""

    __slots__ = ("account",)

    def __init__(self, memory: cl.Buffer, nbytes: int, account: Account) -> None:
        super().__init__(memory, nbytes, None, 0)
        self.account = account

    @property
    def allocation(self) -> WholeBuffer:
        return self

    def __del__(self) -> None:
        self.account.give_back(self.nbytes)


class Account:
    """Bytes in use on a device.  Drivers allocate lazily and promise more than they have, so we count."""

    def __init__(self) -> None:
        self._used = 0
        self._freed: deque[int] = deque()  # the collector may free a buffer while the lock is held
        self._lock = threading.Lock()

    def take(self, nbytes: int, limit: int) -> bool:
        """Book `nbytes` unless that passes `limit`."""
        with self._lock:
            self._settle()
            if self._used + nbytes > limit:
                return False
            self._used += nbytes
            return True

    def give_back(self, nbytes: int) -> None:
        self._freed.append(nbytes)

    @property
    def used(self) -> int:
        with self._lock:
            self._settle()
            return self._used

    def _settle(self) -> None:
        while self._freed:
            self._used -= self._freed.popleft()


def reserve(context: cl.Context, nbytes: int, account: Account, spec: DeviceSpec) -> WholeBuffer:
    """A buffer within the limits of `spec`, or DeviceMemoryError."""
    if spec.max_allocation is not None and nbytes > spec.max_allocation:
        raise _refusal(f"{nbytes} bytes asked for; one allocation has at most {spec.max_allocation}", spec)
    total = spec.memory or nbytes
    if not account.take(nbytes, total):
        raise _refusal(f"{nbytes} bytes asked for; {account.used} of {total} are in use", spec)
    try:
        memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, max(nbytes, 1))
    except cl.Error as error:
        account.give_back(nbytes)
        raise _refusal(f"{nbytes} bytes asked for; the driver has no more ({error})", spec) from error
    return WholeBuffer(memory, nbytes, account)


def _refusal(text: str, spec: DeviceSpec) -> DeviceMemoryError:
    hint = "free buffers, use smaller batches, or another device"
    return DeviceMemoryError(text, device=spec.id, hint=hint)
