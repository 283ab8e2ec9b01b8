"""Euclidean norms without an array of squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_cpu.guards import PLAIN

PIECE = 1024
"""Squares that are added up one after another."""


def has_formula(x: Any, axis: tuple[int, ...], order: float, keepdims: bool) -> bool:
    """Tell whether these are not norms of whole packed arrays, or of short rows: those the operator's formula makes."""
    if order != 2 or x.dtype.num >= PLAIN or x.dtype.kind != "f" or not x.flags.c_contiguous or not x.ndim:
        return True
    return len(axis) != x.ndim and (axis != (x.ndim - 1,) or x.shape[-1] > 4 * PIECE)


def norm(x: Any, axis: tuple[int, ...], order: float, keepdims: bool) -> Any:
    if len(axis) == x.ndim:
        found = np.asarray(np.sqrt(_squares(x)))
        return found.reshape((1,) * x.ndim) if keepdims else found
    found = np.sqrt(np.vecdot(x, x))
    return found[..., None] if keepdims else found


def _squares(x: Any) -> Any:
    """Their sum: of pieces, then of those sums in pairs."""
    flat = x.reshape(-1)
    long = len(flat) // PIECE * PIECE
    total = np.vecdot(flat[long:], flat[long:])
    if long:
        rows = flat[:long].reshape(-1, PIECE)
        total = total + np.add.reduce(np.vecdot(rows, rows))
    return total
