"""Positions of elements in order: numbers that hold an element's rank above its position are sorted.

They are all different, so that any sort is stable, and NumPy's for such numbers is twice as quick as its stable one;
many are sorted by machine code where there is some (`sorting/digits.py`), which is four times as quick.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from nnc_core.base.dtype import accumulator
from nnc_core.base.moved_axes import moved
from nnc_core.operator import ordering
from nnc_cpu import random
from nnc_cpu.memory import Array

FEW, SHORT = 1 << 13, 64
"""Elements, and elements of a row, up to which NumPy's stable sort is as quick."""
MANY = 1 << 16
"""Elements of a row from which on machine code sorts it."""
_RUN = 16
"""Elements of a run in order, on average, from which on it is: it merges runs."""
_TIED = 4
"""Up to one element in so many may share the upper bits of its rank with another one."""


def argsort(x: Array, axis: int, descending: bool) -> Any:
    """The positions that the operator's reference gives."""
    wide = np.asarray(x, accumulator(x.dtype))
    rows = moved(wide, axis, -1) if wide.ndim else wide
    if wide.size > FEW and rows.shape[-1] > SHORT and _is_mixed(rows):
        ranks, bits = _ranks(rows)
        if descending:
            ranks ^= np.uint64(2**bits - 1)
        found = _positions(ranks, bits)
        if found is not None:
            return moved(found, -1, axis)
    return ordering.argsort(x, axis, descending)


def permutation(key: Array, size: int) -> Any:
    return argsort(random.words64(key, size), 0, False)


def _is_mixed(rows: Array) -> bool:
    """Tell whether numbers of 32 bits or more are neither nearly in order nor nearly the other way round."""
    if rows.dtype.kind not in "iuf" or rows.dtype.itemsize < 4:  # NumPy counts those of fewer bits
        return False
    falls = int(np.count_nonzero(rows[..., 1:] < rows[..., :-1]))
    return min(falls, rows.size - falls) * _RUN > rows.size


def _ranks(x: Array) -> tuple[Array, int]:
    """uint64 numbers in the order of the elements, in memory of their own, and how many bits they have."""
    if x.dtype.kind == "f":
        return _float_ranks(x)
    lowest, highest = int(x.min()), int(x.max())
    ranks = x.astype(np.int64).view(np.uint64) if x.dtype.kind == "i" else x.astype(np.uint64)
    ranks = np.ascontiguousarray(ranks)
    ranks -= np.uint64(lowest % 2**64)
    return ranks, (highest - lowest).bit_length()


def _float_ranks(x: Array) -> tuple[Array, int]:
    """Signs and magnitudes as integers that rise with them; zeros of either sign are equal, and NaN above all."""
    bits = 8 * x.itemsize
    whole = np.ascontiguousarray(x + x.dtype.type(0)).view(f"i{x.itemsize}")
    largest = np.iinfo(whole.dtype).max
    whole ^= (whole >> (bits - 1)) & largest
    unordered = x != x
    if unordered.any():
        whole[unordered] = largest
    ranks = whole.astype(np.int64).view(np.uint64)
    ranks += np.uint64(2 ** (bits - 1))
    return ranks, bits


def _positions(ranks: Array, bits: int) -> Any:
    """int64 positions along the last axis; None where too many ranks have their upper bits in common."""
    length = ranks.shape[-1]
    width = (length - 1).bit_length()
    dropped = max(bits + width - 64, 0)
    if dropped and ranks.ndim > 1:
        return None
    packed = ranks >> np.uint64(dropped)
    packed <<= np.uint64(width)
    packed |= np.arange(length, dtype=np.uint64)
    _sort(packed, width, bits - dropped + width)
    order = (packed & np.uint64(2**width - 1)).view(np.int64)
    if dropped:
        packed >>= np.uint64(width)
        return _told_apart(order, packed, ranks)
    return order


@cache
def _machine_code() -> Callable[..., None] | None:
    """The sort that is machine code; None without LLVM, of whose lack the device has said."""
    try:
        found: Callable[..., None] = import_module("nnc_cpu.sorting.digits").sort_by_bits
    except ImportError:
        return None
    return found


def _sort(packed: Array, lowest: int, end: int) -> None:
    """Sort rows of numbers of `end` bits in place; those below `lowest` rise in each row."""
    by_bits = None if packed.shape[-1] < MANY else _machine_code()
    if by_bits is None:
        packed.sort(-1)
        return
    for row in packed.reshape(-1, packed.shape[-1]):
        by_bits(row, lowest, end)


def _told_apart(order: Array, upper: Array, ranks: Array) -> Any:
    """The order of those too whose ranks have the upper bits in common."""
    same = upper[1:] == upper[:-1]
    at = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if len(at) * _TIED > len(order):
        return None
    among = order[at]
    order[at] = among[np.lexsort((among, ranks[among], upper[at]))]
    return order
