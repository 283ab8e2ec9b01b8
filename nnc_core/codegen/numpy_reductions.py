"""Reductions of loop nests in NumPy: (outer points, inner points) folded along the second axis, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, accumulator, boolean, is_float
from nnc_core.base.loopnest import PARTS, Reduction
from nnc_core.codegen.numpy_dots import running_dots
from nnc_core.codegen.numpy_instructions import compute
from nnc_core.codegen.numpy_scalars import cast

Values = np.ndarray[Any, Any]


class Fold:
    """The state of one reduction, fed chunk by chunk; `result` has one column."""

    def __init__(self, reduction: Reduction) -> None:
        self.reduction, self.kind, self.dtype = reduction, reduction.kind, reduction.dtype
        self.result = np.array([[identity(reduction.kind, reduction.dtype)]], reduction.dtype)
        self._best: Values | None = None
        self._seen = 0

    def add(self, values: Values, factors: Values | None = None) -> None:
        """Fold further inner points, at least one."""
        if self.kind in _EXTREME_POSITION:
            self._add_positions(values)
        elif self.kind == "dot":
            for total in self._dots(values, factors):
                self.result = total[:, None]
        elif self.kind in _FOLDS:
            self.result = _FOLDS[self.kind](_behind(self.result, cast(values, self.dtype)), self.dtype)
        else:
            self.scan(values, factors)
        self._seen += values.shape[1]

    def scan(self, values: Values, factors: Values | None = None) -> Values:
        """Fold further inner points; what was folded after each of them, a column each."""
        if self.kind in _EXTREME_POSITION:
            return self._scan_positions(values)
        if self.kind == "dot":
            every = np.stack(list(self._dots(values, factors)), axis=1)
            self.result = every[:, -1:].copy()
            return every
        row = _behind(self.result, cast(values, self.dtype))
        every = _recurring(row, cast(factors, self.dtype)) if factors is not None else _scanned(self.kind, row)
        self.result = every[:, -1:].copy()
        return every[:, 1:]

    def _dots(self, values: Values, factors: Values | None) -> Iterator[Values]:
        assert factors is not None, "a dot has a factor"
        return running_dots(self.result, cast(values, self.dtype), cast(factors, self.dtype))

    def _add_positions(self, values: Values) -> None:
        known = self._best is not None
        row = _behind(self._best, values) if self._best is not None else values
        place = _EXTREME_POSITION[self.kind](row)
        self._best = np.take_along_axis(row, place, axis=1)
        position = (place + (self._seen - known)).astype(self.dtype)
        self.result = np.where(place == 0, self.result, position) if known else position

    def _scan_positions(self, values: Values) -> Values:
        known = self._best is not None
        row = _behind(self._best, values) if self._best is not None else values
        place = _running_positions(self.kind, row)
        position = (place + (self._seen - known)).astype(self.dtype)
        every = np.where(place == 0, self.result, position) if known else position
        self._best, self.result = np.take_along_axis(row, place[:, -1:], axis=1), every[:, -1:].copy()
        self._seen += values.shape[1]
        return every[:, known:]


class PartialFolds:
    """One of SPLIT as PARTS partial ones, of which number p folds the inner points at p modulo PARTS; they are folded
    as a tree.  See `loopnest`."""

    def __init__(self, reduction: Reduction) -> None:
        self.reduction = reduction
        self.parts = [Fold(reduction) for _ in range(PARTS)]
        self._seen = 0

    def add(self, *operands: Values) -> None:
        """Fold further inner points, at least one."""
        columns = operands[0].shape[1]
        for place, part in enumerate(self.parts):
            first = (place - self._seen) % PARTS
            if first < columns:
                part.add(*(operand[:, first::PARTS] for operand in operands))
        self._seen += columns

    @property
    def result(self) -> Values:
        results, dtype = [part.result for part in self.parts], self.reduction.dtype
        operation = _MERGED.get(self.reduction.kind, "add")
        while len(results) > 1:
            half = len(results) // 2
            results = [compute(operation, dtype, list(pair))
                       for pair in zip(results[:half], results[half:], strict=True)]
        return results[0]


def identity(kind: str, dtype: DType) -> float | int | bool:
    """The result of a reduction over no points, as a Python number."""
    if kind not in ("maximum", "minimum"):
        return _IDENTITIES[kind]
    if dtype == boolean:
        return kind == "minimum"
    if is_float(dtype):
        return -float("inf") if kind == "maximum" else float("inf")
    limits = np.iinfo(dtype)
    return int(limits.min if kind == "maximum" else limits.max)


_IDENTITIES: dict[str, float | int | bool] = {
    "sum": 0, "product": 1, "all": True, "any": False, "argmax": 0, "argmin": 0, "logsumexp": -float("inf"),
    "recurrence": 0, "dot": 0,
}  # fmt: skip


_MERGED = {"product": "multiply", "maximum": "maximum", "minimum": "minimum"}
"""How partial results are folded; others are added."""


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
_TOTALS: dict[str, np.ufunc] = {
    "sum": np.add, "product": np.multiply, "all": np.logical_and, "any": np.logical_or, "logsumexp": np.logaddexp,
}  # fmt: skip


def _scanned(kind: str, row: Values) -> Values:
    """The running results of a row whose first column is carried."""
    if kind in _TOTALS:
        return np.asarray(_TOTALS[kind].accumulate(row, axis=1, dtype=row.dtype))
    return np.asarray(np.take_along_axis(row, _running_positions(kind, row), axis=1))


def _running_positions(kind: str, row: Values) -> Values:
    """Positions of the extreme element up to each place: the first of equals, the first NaN."""
    wide = row.astype(accumulator(row.dtype), copy=False)
    largest = kind in ("maximum", "argmax")
    best = (np.maximum if largest else np.minimum).accumulate(wide, axis=1)[:, :-1]
    later = wide[:, 1:]
    better = (later > best if largest else later < best) | ((later != later) & (best == best))
    places = np.zeros(row.shape, np.int64)
    places[:, 1:] = np.where(better, np.arange(1, row.shape[1]), 0)
    return np.asarray(np.maximum.accumulate(places, axis=1))


def _recurring(row: Values, factors: Values) -> Values:
    """Each column is the one before times its factor, plus what stands there; the first is carried."""
    every = row.copy()
    for place in range(1, row.shape[1]):
        every[:, place] += every[:, place - 1] * factors[:, place - 1]
    return every
