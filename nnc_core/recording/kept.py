"""What is compiled for sizes and kept for the next call with them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, ValuesView
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
G = TypeVar("G")


class Kept(Generic[K, G]):
    """At most `limit` by key; what was used longest ago goes first.  Each is made once, however many threads ask."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: OrderedDict[K, G] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def values(self) -> ValuesView[G]:
        return self._kept.values()

    def find(self, key: K, make: Callable[[], G]) -> G:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
                if len(self._kept) > self.limit:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]
