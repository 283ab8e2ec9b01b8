"""A function of the host that counts its calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Array = np.ndarray[Any, Any]


class Called:
    """A function that notes its calls."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn, self.seen = fn, []
        self.__name__ = getattr(fn, "__name__", "fn")

    def __call__(self, *args: Any) -> Any:
        self.seen.append(args)
        return self.fn(*args)

    @property
    def times(self) -> int:
        return len(self.seen)


each_mode = pytest.mark.parametrize("mode", ["eager", "deferred", "compiled", "exported"])
