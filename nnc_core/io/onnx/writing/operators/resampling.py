"""Resampling along an axis, as sums of elements that tables name."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.io.onnx.writing.table import says
from nnc_core.operator import CONSTANT


@says("resample")
def _resample(F: Any, x: Any, indices: Any, weights: Any, axis: int, reach: Any) -> Any:
    """One term for each column of the tables, 0 where the column names nothing."""
    if not isinstance(indices.shape[1], int):
        return None
    wide = F.cast(x, dtype=weights.dtype)
    beside = (indices.shape[0], *(1,) * (len(x.shape) - axis - 1))
    total: Any = None
    for column in range(indices.shape[1]):
        place = _column(F, indices, column)
        there = F.greater_equal(place, 0)
        taken = F.take(wide, F.where(there, place, 0), axis=axis)
        term = F.multiply(taken, F.reshape(_column(F, weights, column), shape=beside))
        if not _names_everywhere(indices):
            term = F.where(F.reshape(there, shape=beside), term, 0)
        total = term if total is None else F.add(total, term)
    return None if total is None else F.cast(total, dtype=x.dtype)


def _names_everywhere(indices: Any) -> bool:
    """Tell whether a table is known to have no -1."""
    return indices.op is CONSTANT and bool((np.asarray(indices.attributes[0].array) >= 0).all())


def _column(F: Any, table: Any, column: int) -> Any:
    rows = table.shape[0]
    return F.reshape(F.slice(table, start=(0, column), stop=(rows, column + 1), step=(1, 1)), shape=(rows,))
