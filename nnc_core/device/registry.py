"""Which devices there are: ids and how to open them.  Knows no plugin; somebody fills it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from nnc_core.base.errors import DeviceError, Error
from nnc_core.device.device import Device

_NAMED = 32
"""Ids in an error; there may be thousands."""


class Registry:
    """Opens each device once, at its first use."""

    def __init__(self) -> None:
        self._openers: dict[str, Callable[[], Device]] = {}
        self._open: dict[str, Device] = {}
        self._lock = threading.RLock()

    def add(self, id: str, open: Callable[[], Device]) -> None:
        """Offer a device; the first offer of an id wins."""
        self._openers.setdefault(id, open)

    @property
    def ids(self) -> list[str]:
        return list(self._openers)

    def get(self, id: str) -> Device:
        """The open device of that id."""
        with self._lock:
            if id not in self._open:
                self._open[id] = self._start(id)
            return self._open[id]

    def _start(self, id: str) -> Device:
        if id not in self._openers:
            more = len(self._openers) - _NAMED
            there = ", ".join(self.ids[:_NAMED]) + (f" and {more} more" if more > 0 else "") or "none"
            raise DeviceError(f"no device {id!r}; there are: {there}",
                              hint="`nnc devices` says which plugins are installed and what is wrong with them")
        try:
            return self._openers[id]()
        except Error as error:
            raise error.locate(device=id)  # noqa: B904 - the same error, with the device named
        except Exception as error:
            raise DeviceError(f"device {id!r} cannot be opened: {type(error).__name__}: {error}",
                              hint="`nnc devices` examines the driver") from error
