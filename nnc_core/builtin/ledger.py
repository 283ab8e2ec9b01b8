"""Counting the bytes that live on a device."""

from __future__ import annotations

import threading
from collections import deque

from nnc_core.base.errors import AttributeValueError, DeviceMemoryError


class Ledger:
    """Live and peak bytes, within limits where there are any."""

    def __init__(self, device: str, memory: int | None = None, max_allocation: int | None = None) -> None:
        self.device, self.memory, self.max_allocation = device, memory, max_allocation
        self._live = self._peak = 0
        self._lock = threading.Lock()
        # Finalisers run anywhere, even in a thread that holds the lock: they only append.
        self._returned: deque[int] = deque()

    def take(self, nbytes: int) -> None:
        """Count an allocation; DeviceMemoryError beyond a limit, AttributeValueError below nothing."""
        if nbytes < 0:
            raise AttributeValueError(f"cannot allocate {nbytes} bytes", device=self.device)
        with self._lock:
            self._settle()
            self._check(nbytes)
            self._live += nbytes
            self._peak = max(self._peak, self._live)

    def give_back(self, nbytes: int) -> None:
        """Count something freed; safe in finalisers."""
        self._returned.append(nbytes)

    @property
    def live(self) -> int:
        """Bytes allocated and not freed."""
        with self._lock:
            self._settle()
            return self._live

    @property
    def peak(self) -> int:
        """The most bytes that ever lived at once."""
        return self._peak

    def _settle(self) -> None:
        while self._returned:
            self._live -= self._returned.popleft()

    def _check(self, nbytes: int) -> None:
        if self.max_allocation is not None and nbytes > self.max_allocation:
            raise DeviceMemoryError(f"{nbytes} bytes at once are more than the {self.max_allocation} allowed",
                                    device=self.device, hint="use smaller batches or arrays")
        if self.memory is not None and self._live + nbytes > self.memory:
            raise DeviceMemoryError(f"{nbytes} bytes do not fit: {self._live} of {self.memory} are in use",
                                    device=self.device, hint="free arrays, or use smaller batches")
