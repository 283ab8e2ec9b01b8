"""A bounded cache: what was used longest ago goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_MISSING: Any = object()


class LRU(Generic[K, V]):
    """At most `limit` values by key, for any number of threads.

    Reading a value makes it the newest; one too many makes the oldest go.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"a cache of {limit} values keeps nothing; the limit is at least 1")
        self.limit = limit
        self._values: OrderedDict[K, V] = OrderedDict()
        self._making: dict[K, RLock] = {}
        self._lock = RLock()  # a value that dies while the lock is held may take out another

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def get(self, key: K, default: Any = None) -> V | Any:
        """The value, which is then the newest, or the default."""
        with self._lock:
            value = self._values.get(key, _MISSING)
            if value is _MISSING:
                return default
            self._values.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        """Keep a value as the newest, in place of an older one of that key."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self.limit:
                self._values.popitem(last=False)

    def find(self, key: K, make: Callable[[], V]) -> V:
        """The value, made if it is not there: once, however many threads ask for it at a time."""
        value: V = self.get(key, _MISSING)
        if value is not _MISSING:
            return value
        with self._lock:
            turn = self._making.setdefault(key, RLock())
        with turn:
            value = self.get(key, _MISSING)
            if value is not _MISSING:
                return value
            try:
                value = make()
                self.put(key, value)
                return value
            finally:
                with self._lock:
                    self._making.pop(key, None)

    def pop(self, key: K, default: Any = None) -> V | Any:
        """Take a value out; the default if it is not there."""
        with self._lock:
            return self._values.pop(key, default)

    def items(self) -> list[tuple[K, V]]:
        """Keys and values kept now, the oldest first."""
        with self._lock:
            return list(self._values.items())

    def values(self) -> list[V]:
        """The values kept now, the oldest first."""
        return [value for _, value in self.items()]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
