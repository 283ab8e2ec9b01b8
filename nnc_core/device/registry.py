"""The table of devices: ids and how to open them.  Knows no plugin; `nnc_core.stacks` fills it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from nnc_core.base.errors import DeviceError, Error
from nnc_core.device.device import Device
from nnc_core.device.kernel import CommandBackend
from nnc_core.device.names import named, similar

Make: TypeAlias = Callable[[Device], CommandBackend | None]
"""Library code for a device; None where it cannot be had."""
_NAMED = 32
"""Ids in an error; there may be thousands."""


class Registry:
    """Opens each device once, at its first use."""

    def __init__(self) -> None:
        self._openers: dict[str, Callable[[], Device]] = {}
        self._texts: dict[str, tuple[str, ...]] = {}
        self._testing: set[str] = set()
        self._open: dict[str, Device] = {}
        self._backends: list[tuple[str, str, Make]] = []
        self._lock = threading.RLock()

    def add(self, id: str, open: Callable[[], Device], testing: bool = False, texts: Sequence[str] = ()) -> None:
        """Offer a device, perhaps one for tests alone; the first offer of an id wins.  `texts` say which device it is,
        the most telling ones first: `find` looks for words in them."""
        if testing and id not in self._openers:
            self._testing.add(id)
        self._openers.setdefault(id, open)
        self._texts.setdefault(id, tuple(texts))

    def is_testing(self, id: str) -> bool:
        """Tell whether a device is there for tests alone."""
        return id in self._testing

    def add_backend(self, kind: str, operator: str, make: Make) -> None:
        """Add library code to every device of a kind: to those that are open now, to others when they are opened."""
        with self._lock:
            self._backends.append((kind, operator, make))
            for device in self._open.values():
                _extend(device, kind, operator, make)

    def find(self, name: str) -> str | None:
        """The id of a device by its id, its kind, or its kind and a word: "opencl:0", "opencl", "opencl:intel"."""
        return named(name, self._texts)

    @property
    def ids(self) -> list[str]:
        return list(self._openers)

    def get(self, id: str) -> Device:
        """The open device of that id."""
        with self._lock:
            if id not in self._open:
                device = self._open[id] = self._start(id)
                for backend in self._backends:
                    _extend(device, *backend)
            return self._open[id]

    def has_opened(self, device: Device) -> bool:
        """Tell whether it is the open device of its id."""
        return self._open.get(device.spec.id) is device

    def reopen(self, id: str) -> Device:
        """Open a device anew, whatever has become of it: what lay in its memory is lost."""
        with self._lock:
            old = self._open.pop(id, None)
            if old is not None:
                with suppress(Exception):  # it may be past closing
                    old.close()
            return self.get(id)

    def _start(self, id: str) -> Device:
        if id not in self._openers:
            more = len(self._openers) - _NAMED
            named = sorted(self.ids, key=self.is_testing)[:_NAMED]  # those for tests last
            there = ", ".join(named) + (f" and {more} more" if more > 0 else "") or "none"
            meant = " or ".join(map(repr, similar(id, self._texts)))
            raise DeviceError(f"no device {id!r}; there are: {there}",
                              hint=(f"did you mean {meant}? " if meant else "") +
                                   "`nnc devices` says which plugins are installed and what is wrong with them")
        try:
            return self._openers[id]()
        except Error as error:
            error.locate(device=id)
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # plugins exit, too
            notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
            raise DeviceError(f"device {id!r} cannot be opened: {type(error).__name__}: {error}{notes}",
                              hint="`nnc devices` examines the driver") from error


def _extend(device: Device, kind: str, operator: str, make: Make) -> None:
    if device.spec.kind == kind:
        backend = make(device)
        if backend is not None:
            device.take(operator, backend)
