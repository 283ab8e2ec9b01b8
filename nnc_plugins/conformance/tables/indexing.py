"""Cases of gathers, scatters and what is made of indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import INTEGERS, NUMBERS, DType
from nnc_core.shape.indexing import SCATTERS
from nnc_plugins.conformance.case import ALL, MOVED, Array, Case, Maker, arrays, draw, extreme_values, fixed, specials

NAN, INF = np.nan, np.inf


def _take(shape: tuple[int, ...], axis: int, indices: Any, index_dtype: DType = dt.int64, batch: int = 0) -> Case:
    where = np.array(indices).astype(index_dtype)
    label = f"{shape} along {axis} at {index_dtype}{list(where.shape)}{f' in {batch}' * bool(batch)}"
    return Case(label, lambda rng, dtype: (draw(rng, dtype, shape), where), MOVED, {"axis": axis, "batch": batch},
                smooth=True)


def _scatter(mode: str, shape: tuple[int, ...], axis: int, indices: Any, index_dtype: DType = dt.int64,
             batch: int = 0) -> Case:
    where = np.array(indices).astype(index_dtype)
    updates = (*shape[:axis], *where.shape[batch:], *shape[axis + 1 :])

    def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        return draw(rng, dtype, shape), where, draw(rng, dtype, updates)

    label = f"{mode} {shape} along {axis} at {index_dtype}{list(where.shape)}{f' in {batch}' * bool(batch)}"
    return Case(label, make, _dtypes(mode), {"axis": axis, "mode": mode, "batch": batch}, smooth=where.size < 100)


def _dtypes(mode: str) -> tuple[DType, ...]:
    return MOVED if mode == "set" else NUMBERS


def _scatters(mode: str) -> list[Case]:
    return [
        _scatter(mode, (5, 3), 0, [0, 3, 1]), _scatter(mode, (5, 3), 0, [2, 2, 2, 0]),
        _scatter(mode, (2, 4), 1, [[-1, 0], [3, 1]]), _scatter(mode, (6,), 0, 4), _scatter(mode, (4, 2), 0, []),
        _scatter(mode, (3, 0), 0, [1, 1]), _scatter(mode, (2, 3, 2), 1, [1, 0], dt.uint8),
        _scatter(mode, (2, 4), 1, [[1, -1, 1], [0, 0, -4]], batch=1),
        _scatter(mode, (2, 3, 4, 2), 2, [[[3, 3], [0, 3]], [[-1, 0], [1, 2]]], dt.int32, batch=1),
        _scatter(mode, (2, 2, 3), 2, [[[0], [2]], [[2], [-2]]], batch=2),
        _scatter(mode, (300, 2), 0, np.arange(700) * 7 % 300, dt.int32),
    ]  # fmt: skip


def _together(mode: str, label: str, x: Any, updates: Any, dtypes: tuple[DType, ...], smooth: bool = False) -> Case:
    """Pairs of updates for each of the first elements."""
    where = np.arange(len(updates)) // 2
    make = _with_indices(np.array(x), where, np.array(updates))
    return Case(f"{mode} {label}", make, dtypes, {"axis": 0, "mode": mode, "batch": 0}, smooth=smooth)


def _with_indices(x: Array, where: Array, updates: Array) -> Maker:
    return lambda rng, dtype: (x.astype(dtype), where, updates.astype(dtype))


def _special(mode: str) -> list[Case]:
    if mode == "set":
        return []
    return [
        _together(mode, "ties", [1, 2, 2, 0, 1], [1, 1, 3, 2, 0, 2, 0, 0], NUMBERS),
        _together(mode, "specials", [NAN, INF, 1.0, -0.0, 2.0], [1.0, 0.0, -INF, 1.0, NAN, 2.0, 0.0, -0.0], dt.FLOATS),
        *([_together(mode, "zeros", [2, 0, 3, 0], [0, 3, 2, 5, 0, 0, 0, 2], NUMBERS, smooth=True)]
          if mode == "multiply" else []),
    ]  # fmt: skip


def _one_hot(label: str, make: Maker, depth: int, dtype: DType = dt.float32) -> Case:
    return Case(label, make, INTEGERS, {"depth": depth, "dtype": dtype})


def _offsets(label: str, make: Maker, length: int, stride: int, size: int, signed: bool = True) -> Case:
    attributes = {"length": length, "stride": stride, "size": size, "signed": signed}
    return Case(label, make, dt.SIGNED if signed else INTEGERS, attributes)


def _counts(label: str, *counts: int) -> Case:
    return Case(label, fixed(np.array(counts, np.int64)), INTEGERS, {"size": sum(counts)})


CASES: dict[str, list[Case]] = {
    "take": [
        _take((5, 3), 0, [0, 4, 2, 2]), _take((5, 3), 1, [[-1, 0], [1, -3]]), _take((5,), 0, 3),
        _take((3, 4), 0, []),
        _take((2, 0), 0, [1, 1]), *[_take((4, 2), 0, [1, 3, 0], d) for d in INTEGERS],
        _take((2, 3, 4), 1, [2, 0], dt.int32), _take((500, 75), 0, np.arange(900) * 11 % 500),
        _take((2, 3), 1, [[2, -1, 0, 0], [1, 1, 0, 2]], batch=1), _take((2, 3, 4), 2, [[0, 3, 3], [1, -2, 1]], batch=1),
        _take((2, 3, 4), 2, [[[0], [1], [-1]], [[3], [2], [1]]], dt.int16, batch=2),
        _take((3, 2, 5), 1, [[[0, 1], [1, 1]]] * 3, batch=1), _take((3, 4), 1, [2, 0, -1], batch=1),
        _take((2, 0, 4), 2, np.zeros((2, 0, 2)), batch=2), _take((3, 5, 2), 1, np.zeros((3, 0)), batch=1),
        Case("specials", lambda rng, dtype: (*specials((4, 3))(rng, dtype), np.array([2, -1, 0])), dt.FLOATS,
             {"axis": 0, "batch": 0}),
    ],
    "scatter": [case for mode in SCATTERS for case in (*_scatters(mode), *_special(mode))],
    "index_offset": [
        _offsets("of rows", arrays((3, 4), low=-5, high=4), 5, 3, 15),
        _offsets("of columns", arrays((7,), low=-3, high=2), 3, 1, 15),
        _offsets("scalar", arrays((), low=0, high=4), 5, 2, 10), _offsets("empty", arrays((0, 2)), 3, 4, 12),
        _offsets("not negative", arrays((2, 3), low=0, high=4), 5, 3, 15, False),
        _offsets("large", arrays((65_545,), low=-100, high=99), 100, 1 << 33, 100 << 33),
    ],
    "one_hot": [
        _one_hot("packed", arrays((3, 2), low=0, high=4), 5),
        _one_hot("scalar", arrays((), low=0, high=4), 5),
        _one_hot("of no depth", arrays((3,)), 0), _one_hot("empty", arrays((0, 2)), 3),
        _one_hot("out of range", fixed([0, 3, 4, 100]), 4),
        _one_hot("negative", arrays((4,), low=-4, high=3), 4),
        _one_hot("extremes", extreme_values, 3), _one_hot("large", arrays((13_109,), low=0, high=6), 5),
        *[_one_hot(f"as {dtype}", arrays((4,), low=0, high=2), 3, dtype) for dtype in ALL],
    ],
    "earlier": [
        Case("repeats", fixed([3, 1, 3, 3, 0, 1, 5]), INTEGERS), Case("rows", arrays((3, 4), low=0, high=2), INTEGERS),
        Case("three axes", arrays((2, 1, 5), low=-1, high=1), INTEGERS), Case("one", arrays((1,)), INTEGERS),
        Case("empty", arrays((0,)), INTEGERS), Case("rows of nothing", arrays((3, 0)), INTEGERS),
        Case("no rows", arrays((0, 3)), INTEGERS), Case("extremes", extreme_values, INTEGERS),
        Case("large", arrays((331, 203), low=0, high=100), (dt.int8, dt.uint32)),
    ],
    "repeat_index": [
        _counts("some", 2, 0, 3, 1), _counts("none", 0, 0), _counts("of nothing"), _counts("one", 4),
        _counts("many", *range(40)),
    ],
}  # fmt: skip
