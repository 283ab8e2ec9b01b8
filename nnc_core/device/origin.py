"""For whom work is enqueued: what a device keeps with asynchronous work, to name it when that fails later.

It is opaque here; higher floors put the user's line there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

origin: ContextVar[Any] = ContextVar("nnc_origin", default=None)
"""None: for the line of the user that is running now."""


@contextmanager
def enqueued_for(line: Any) -> Iterator[None]:
    """Kernels bound here work for this line: of a deferred value, of a command of a compiled graph."""
    token = origin.set(line)
    try:
        yield
    finally:
        origin.reset(token)
