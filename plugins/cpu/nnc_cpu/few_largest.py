"""The few largest or smallest elements of rows, one after the other: each by a search in one pass of machine code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import float32, float64, int32, int64, is_float

FEW = 16
"""Elements up to which searching for each is quicker than NumPy's partition, whatever the length of a row."""


def by_searches(F: Any, inputs: Sequence[Any], command: Command) -> Any:
    """int64 positions, as `arg_top_k` has them, by other operators; None where there are too many, or no key."""
    axis, k, largest = command.attributes
    assert isinstance(axis, int) and isinstance(k, int)
    shape, dtype = command.inputs[0].shape, command.inputs[0].dtype
    if not 0 < k <= min(FEW, shape[axis]) or not (is_float(dtype) or (dtype.kind in "iub" and dtype.itemsize < 8)):
        return None
    key, nothing = _key(F, inputs[0], dtype)
    key = key if largest else F.bitwise_invert(key)
    along = {"axis": axis, "keepdims": True}
    places = F.reshape(F.arange(size=shape[axis], dtype=int64), shape=(shape[axis], *(1,) * (len(shape) - 1 - axis)))
    found, left = [F.argmax(key, **along)], key
    while len(found) < k:
        last = F.max(left, axis=(axis,), keepdims=True)
        behind = F.logical_or(F.less(key, last), F.logical_and(F.equal(key, last), F.greater(places, found[-1])))
        left = F.where(behind, key, nothing)
        found.append(F.argmax(left, **along))
    return F.concat(*found, axis=axis)


def _key(F: Any, x: Any, dtype: Any) -> tuple[Any, int]:
    """Integers in the order of the elements: zeros of either sign are equal, as are NaN, which are larger than all
    else; and a number that is below them and their complements."""
    if not is_float(dtype):
        return F.cast(x, dtype=int64), np.iinfo(np.int64).min
    wide = float64 if dtype == float64 else float32
    word = int64 if wide == float64 else int32
    info = np.iinfo(word)
    x = F.cast(x, dtype=wide) if dtype != wide else x
    bits = F.bitcast(F.where(F.equal(x, 0.0), 0.0, x), dtype=word)
    ordered = F.where(F.less(bits, 0), F.bitwise_xor(bits, int(info.max)), bits)
    return F.where(F.not_equal(x, x), int(info.max) - 1, ordered), int(info.min)
