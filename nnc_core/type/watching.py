"""Answers for named dimensions while a function is traced on arguments whose sizes are known this time."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from nnc_core.type.dim import Dim


class DimWatcher(Protocol):
    """Knows the numbers of some names, and notes every answer that another number would have changed."""

    names: frozenset[str]

    def equal(self, difference: Dim) -> bool:
        """True if two dimensions are equal, as `Dim.__eq__` is asked."""
        ...

    def is_zero(self, dim: Dim) -> bool: ...

    def is_negative(self, dim: Dim) -> bool: ...

    def number(self, dim: Dim) -> int: ...

    def hashed(self, dim: Dim) -> int | None:
        """The number, if it is the user who looks the dimension up among numbers; else None."""
        ...


watching: ContextVar[DimWatcher | None] = ContextVar("nnc_watching_dimensions", default=None)
