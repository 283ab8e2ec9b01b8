"""Host memory that a GPU reads and writes by itself, through which arrays of the host go.

Copies from and to other memory of the host are the driver's own, and keep the calling thread until they are done.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from contextlib import suppress

from nnc_cuda.driver import CudaError, Driver

SMALLEST = 1 << 12
LARGEST = 16 << 20
"""Bytes of the largest block: the driver goes through larger arrays in pieces as quickly."""
KEPT = 128 << 20
"""The most bytes that are idle: pinning memory waits for the device, and takes it from everybody else."""


class StagingBlock:
    """Pinned memory of at least so many bytes, which goes back to its pool with this."""

    __slots__ = ("address", "pool", "size")

    def __init__(self, address: int, size: int, pool: Staging) -> None:
        self.address, self.size, self.pool = address, size, pool

    def __del__(self) -> None:
        self.pool.give_back(self.address, self.size)


class Staging:
    """The pinned memory of one device, in blocks of powers of two.  Any thread may take and give back."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._idle: dict[int, list[int]] = {}
        self._kept = 0
        self._returned: deque[tuple[int, int]] = deque()  # the collector may give back while the lock is held
        self._lock = threading.Lock()

    def take(self, nbytes: int) -> StagingBlock | None:
        """A block; None for more than `LARGEST`, and where the host has no more memory to pin."""
        if nbytes > LARGEST:
            return None
        size = max(SMALLEST, 1 << (nbytes - 1).bit_length())
        with self._lock:
            surplus = self._settle()
            row = self._idle.get(size)
            address = row.pop() if row else 0
            self._kept -= size if address else 0
        self._unpin(surplus)
        if not address:
            try:
                address = self.driver.pin(size)
            except CudaError:
                return None
        return StagingBlock(address, size, self)

    def give_back(self, address: int, size: int) -> None:
        self._returned.append((address, size))

    def trim(self) -> None:
        """Unpin what is idle."""
        with self._lock:
            gone = [*self._settle(), *[address for row in self._idle.values() for address in row]]
            self._idle.clear()
            self._kept = 0
        self._unpin(gone)

    def _settle(self) -> list[int]:
        """Take back what was given back; the addresses that are too many."""
        surplus = []
        while self._returned:
            address, size = self._returned.popleft()
            if self._kept + size > KEPT:
                surplus.append(address)
            else:
                self._idle.setdefault(size, []).append(address)
                self._kept += size
        return surplus

    def _unpin(self, addresses: list[int]) -> None:
        for address in addresses:
            with suppress(CudaError):  # the context has died, and the memory with it
                self.driver.unpin(address)


def copy_on_host(target: int, source: int, nbytes: int) -> None:
    """Copy bytes of the host's memory; other threads run meanwhile."""
    ctypes.memmove(target, source, nbytes)
