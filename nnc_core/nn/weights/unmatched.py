"""Names that were left alone when weights were taken over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from nnc_core.values.cell import Cell


class Unmatched(NamedTuple):
    """Names that were not found on the other side."""

    missing: tuple[str, ...]
    """Names of the module that are not among the arrays."""
    unexpected: tuple[str, ...]
    """Names of arrays that the module has not."""


def fitted(cells: Mapping[str, Cell], arrays: Any, strict: bool) -> tuple[Mapping[str, Cell], Any, Unmatched]:
    """The cells that are written and what is written there, all of both or what both sides have; and what is left."""
    if not isinstance(arrays, Mapping):
        return cells, arrays, Unmatched((), ())
    found = Unmatched(tuple([n for n in cells if n not in arrays]), tuple([n for n in arrays if n not in cells]))
    if strict:
        return cells, arrays, found
    both = {name: cell for name, cell in cells.items() if name in arrays}
    return both, {name: arrays[name] for name in both}, found
