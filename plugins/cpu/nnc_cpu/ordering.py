"""Sorting as a whole, and the choice of a few without sorting the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.dtype import accumulator
from nnc_core.base.moved_axes import moved
from nnc_cpu.few_largest import FEW
from nnc_cpu.memory import Array
from nnc_cpu.positions import argsort, permutation
from nnc_cpu.reference import by_reference
from nnc_cpu.routine import Make

_HALF = np.dtype(np.float16).num
_SHARE = 4
"""Up to one element in so many is chosen without sorting."""


def is_sorted_by_value(x: Array) -> bool:
    """Tell whether equal elements are the same to the bit, so that every sort gives the same: there is no NaN, which
    has many forms, and no negative zero."""
    if x.dtype.kind != "f":
        return x.dtype.kind in "biu"
    if x.dtype.num == _HALF or not x.size:
        return False
    if not x.flags.forc:
        return not np.isnan(np.max(x)) and not ((x == 0) & np.signbit(x)).any()
    bits = x.view(f"i{x.itemsize}")
    return not np.isnan(np.max(x)) and not (bits == np.iinfo(bits.dtype).min).any()


def _sort(x: Array, axis: int, descending: bool) -> Array:
    """Equal integers cannot be told apart; zeros of either sign keep their order."""
    wide = np.asarray(x, accumulator(x.dtype))
    kind: Any = None if is_sorted_by_value(wide) else "stable"
    if not descending:
        return np.sort(wide, axis, kind)
    return np.flip(np.sort(np.flip(wide, axis), axis, kind), axis)


def _arg_top_k(x: Array, axis: int, k: int, largest: bool) -> Array:
    """Those beyond the k-th, and the first of those that equal it, are sorted alone."""
    length = x.shape[axis]
    if not 0 < k * _SHARE <= length:
        order = moved(argsort(x, axis, largest), axis, -1)
        return moved(order[..., :k], -1, axis)
    last = moved(np.asarray(x, accumulator(x.dtype)), axis, -1)
    rows = last.reshape(-1, length)
    places = _searched(rows, k, largest) if k <= FEW else None
    if places is None:
        places = np.nonzero(_chosen(rows, k, largest))[1].reshape(len(rows), k)
        order = argsort(np.take_along_axis(rows, places, 1), 1, largest)
        places = np.take_along_axis(places, order, 1)
    return moved(places.reshape(*last.shape[:-1], k), -1, axis)


def _searched(rows: Array, k: int, largest: bool) -> Array | None:
    """Positions of the first k in order, one after the other: what was found gives way to the last of all elements.
    None where some row has that element among its k, or NaN, which NumPy finds first of the smallest too."""
    if rows.dtype.kind not in "iuf" or not rows.size:
        return None
    if not largest and rows.dtype.kind == "f" and np.isnan(np.min(rows)):
        return None
    found, at, left = np.empty((len(rows), k), np.int64), np.arange(len(rows)), rows.copy()
    info: Any = np.iinfo(rows.dtype) if rows.dtype.kind in "iu" else None
    nothing = (info.min if largest else info.max) if info else (-np.inf if largest else np.inf)
    search = np.argmax if largest else np.argmin
    for i in range(k):
        found[:, i] = place = search(left, 1)
        if (left[at, place] == nothing).any():
            return None
        left[at, place] = nothing
    return found


def _chosen(rows: Array, k: int, largest: bool) -> Array:
    """True for k elements of each row; NaN is larger than everything else."""
    place = rows.shape[1] - k if largest else k - 1
    limit = np.partition(rows, place, 1)[:, place : place + 1]
    unordered, endless = rows != rows, limit != limit
    beyond = rows > limit if largest else rows < limit
    beyond |= (unordered & ~endless) if largest else (~unordered & endless)
    level = (rows == limit) | (unordered & endless)
    wanted = k - beyond.sum(1, keepdims=True)
    chosen: Array = beyond | (level & (np.cumsum(level, 1) <= wanted))
    return chosen


def _lexsort(keys: Array, axis: int) -> Array:
    return np.lexsort(np.asarray(keys, accumulator(keys.dtype)), axis)


MAKERS: dict[str, Make] = {
    "argsort": by_reference(argsort), "permutation": by_reference(permutation), "sort": by_reference(_sort),
    "arg_top_k": by_reference(_arg_top_k), "lexsort": by_reference(_lexsort),
}  # fmt: skip
