"""Names that were left alone when weights were taken over."""

from __future__ import annotations

from typing import NamedTuple


class Unmatched(NamedTuple):
    """Names that were not found on the other side."""

    missing: tuple[str, ...]
    """Names of the module that are not among the arrays."""
    unexpected: tuple[str, ...]
    """Names of arrays that the module has not."""
