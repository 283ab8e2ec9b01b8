"""What was left alone when weights were taken over."""

from __future__ import annotations

from typing import NamedTuple


class Unmatched(NamedTuple):
    """Names that were not found on the other side."""

    missing: tuple[str, ...]
    """Of the module, not among the arrays."""
    unexpected: tuple[str, ...]
    """Of the arrays, not of the module."""
