"""Reductions of loop nests in NumPy: (outer points, inner points) folded along the second axis, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, accumulator, boolean, is_float
from nnc_core.base.loopnest import Reduction
from nnc_core.codegen.numpy_scalars import cast

Values = np.ndarray[Any, Any]


class Fold:
    """The state of one reduction, fed chunk by chunk; `result` has one column."""

    def __init__(self, reduction: Reduction) -> None:
        self.kind, self.dtype = reduction.kind, reduction.dtype
        self.result = np.array([[identity(reduction.kind, reduction.dtype)]], reduction.dtype)
        self._best: Values | None = None
        self._seen = 0

    def add(self, values: Values) -> None:
        """Fold further inner points, at least one."""
        if self.kind in _EXTREME_POSITION:
            self._add_positions(values)
        else:
            self.result = _FOLDS[self.kind](_behind(self.result, cast(values, self.dtype)), self.dtype)
        self._seen += values.shape[1]

    def _add_positions(self, values: Values) -> None:
        known = self._best is not None
        row = _behind(self._best, values) if self._best is not None else values
        place = _EXTREME_POSITION[self.kind](row)
        self._best = np.take_along_axis(row, place, axis=1)
        position = (place + (self._seen - known)).astype(self.dtype)
        self.result = np.where(place == 0, self.result, position) if known else position


def identity(kind: str, dtype: DType) -> float | int | bool:
    """What a reduction gives over no points, as a Python number."""
    if kind not in ("maximum", "minimum"):
        return _IDENTITIES[kind]
    if dtype == boolean:
        return kind == "minimum"
    if is_float(dtype):
        return -float("inf") if kind == "maximum" else float("inf")
    limits = np.iinfo(dtype)
    return int(limits.min if kind == "maximum" else limits.max)


_IDENTITIES: dict[str, float | int | bool] = {
    "sum": 0, "product": 1, "all": True, "any": False, "argmax": 0, "argmin": 0,
}  # fmt: skip


def _behind(carried: Values, values: Values) -> Values:
    """The carried column in front of the new ones."""
    rows = max(len(carried), len(values))
    columns = [np.broadcast_to(part, (rows, part.shape[1])) for part in (carried, values)]
    return np.concatenate(columns, axis=1)


def _running(function: np.ufunc) -> Callable[[Values, DType], Values]:
    """The last running total: unlike ufunc.reduce, which sums in pairs, strictly one after the other."""
    return lambda row, dtype: function.accumulate(row, axis=1, dtype=dtype)[:, -1:].copy()


def _argmax(row: Values) -> Values:
    """First of the largest, or first NaN."""
    return np.asarray(np.argmax(row.astype(accumulator(row.dtype), copy=False), axis=1, keepdims=True))


def _argmin(row: Values) -> Values:
    return np.asarray(np.argmin(row.astype(accumulator(row.dtype), copy=False), axis=1, keepdims=True))


_EXTREME_POSITION: dict[str, Callable[[Values], Values]] = {"argmax": _argmax, "argmin": _argmin}
_FOLDS: dict[str, Callable[[Values, DType], Values]] = {
    "sum": _running(np.add),
    "product": _running(np.multiply),
    "maximum": lambda row, dtype: np.take_along_axis(row, _argmax(row), axis=1),
    "minimum": lambda row, dtype: np.take_along_axis(row, _argmin(row), axis=1),
    "all": lambda row, dtype: np.all(row, axis=1, keepdims=True),
    "any": lambda row, dtype: np.any(row, axis=1, keepdims=True),
}
