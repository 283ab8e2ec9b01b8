"""The line that work is enqueued for: a device keeps it with asynchronous work, to name it when that fails later.

The engine sets it around everything that it enqueues; devices only read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from nnc_core.base.line import Line

origin: ContextVar[Line | None] = ContextVar("nnc_origin", default=None)
"""None where nobody said: `nnc_core.base.line.show_line` makes text of the rest."""


@contextmanager
def enqueued_for(line: Line | None) -> Iterator[None]:
    """Everything that is bound or enqueued here works for this line: of a deferred value, of a compiled command."""
    token = origin.set(line)
    try:
        yield
    finally:
        origin.reset(token)
