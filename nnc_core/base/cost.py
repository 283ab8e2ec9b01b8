"""The cost of a command: what it computes and what it moves."""

from __future__ import annotations

from typing import NamedTuple


class Cost(NamedTuple):
    """Arithmetic operations, and bytes that are read and written at least once."""

    flops: float
    bytes: int


NOTHING = Cost(0, 0)
"""The cost of a view."""
