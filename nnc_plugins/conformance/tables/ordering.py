"""Cases of sorting and searching."""

from __future__ import annotations

import numpy as np

from nnc_core.base.dtype import FLOATS, DType
from nnc_plugins.conformance.case import ALL, FEW, Array, Case, Maker, arrays, draw, extreme_values, fixed

NAN, INF = np.nan, np.inf
SHAPES: tuple[tuple[tuple[int, ...], int], ...] = (
    ((3, 5), 1), ((3, 5), 0), ((2, 3, 4), 1), ((7,), 0), ((1, 4), 0), ((4, 1), 1), ((0, 3), 0), ((0, 3), 1),
)
SPECIALS = fixed([[1.0, NAN, INF, -INF, 0.0, NAN, -0.0], [NAN, 2.0, -0.0, 3.0, 0.0, -INF, 2.0]])
TIES = fixed([[1, 0, 1, 1, 0, 2, 0, 2], [2, 2, 2, 1, 1, 1, 0, 0]])


def _sorts() -> list[Case]:
    found: list[tuple[str, Maker, tuple[DType, ...], int, bool]] = [
        (str(shape), arrays(shape), ALL, axis, True) for shape, axis in SHAPES]
    found += [("specials", SPECIALS, FLOATS, 1, False), ("ties", TIES, ALL, 1, False),
              ("extremes", extreme_values, ALL, 0, False), ("large", arrays((1031, 67)), FEW, 1, False)]
    return [
        Case(f"{label} along {axis}{', largest first' * descending}", make, dtypes,
             {"axis": axis, "descending": descending}, smooth=smooth)
        for label, make, dtypes, axis, smooth in found for descending in (False, True)
    ]  # fmt: skip


def _top_ks() -> list[Case]:
    table: list[tuple[str, Maker, tuple[DType, ...], int, int]] = [
        ("(3, 5)", arrays((3, 5)), ALL, 1, 2), ("(3, 5)", arrays((3, 5)), ALL, 0, 3),
        ("(4,)", arrays((4,)), ALL, 0, 0), ("(2, 0)", arrays((2, 0)), ALL, 1, 0),
        ("(0, 3)", arrays((0, 3)), ALL, 1, 2), ("specials", SPECIALS, FLOATS, 1, 1),
        ("specials", SPECIALS, FLOATS, 1, 3), ("specials", SPECIALS, FLOATS, 1, 6), ("ties", TIES, ALL, 1, 4),
        ("ties", TIES, ALL, 1, 1), ("ties", TIES, ALL, 1, 2), ("(2, 3, 4)", arrays((2, 3, 4)), ALL, 1, 1),
        ("large", arrays((1031, 67)), FEW, 1, 10),
    ]  # fmt: skip
    return [
        Case(f"{k} of {label} along {axis}, {'largest' if largest else 'smallest'}", make, dtypes,
             {"axis": axis, "k": k, "largest": largest})
        for label, make, dtypes, axis, k in table for largest in (True, False)
    ]  # fmt: skip


def _lexsorts() -> list[Case]:
    return [
        Case("two keys", arrays((2, 9)), ALL, {"axis": 0}), Case("one key", arrays((1, 5)), ALL, {"axis": 0}),
        Case("three keys along 1", arrays((3, 2, 6), low=0, high=2), ALL, {"axis": 1}),
        Case("three keys along 0", arrays((3, 6, 2), low=0, high=2), ALL, {"axis": 0}),
        Case("nothing to order", arrays((2, 0)), ALL, {"axis": 0}),
        Case("specials", fixed([[1.0, NAN, 0.0, 1.0, NAN], [NAN, 1.0, 0.0, 1.0, -0.0]]), FLOATS, {"axis": 0}),
        Case("large", arrays((2, 521, 67), low=0, high=5), FEW, {"axis": 1}),
    ]  # fmt: skip


def _searched(length: int, shape: tuple[int, ...]) -> Maker:
    """A sorted sequence, and values some of which are in it."""

    def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        x = np.sort(draw(rng, dtype, (length,)).astype(np.float64)).astype(dtype)
        values = draw(rng, dtype, shape, -4, 4)
        if length and values.size:
            values.reshape(-1)[::2] = x[np.arange(len(values.reshape(-1)[::2])) % length]
        return x, values

    return make


def _searches() -> list[Case]:
    ends = fixed([-INF, -1.0, 0.0, 0.0, INF, NAN, NAN], [NAN, -INF, INF, -0.0, 0.5, -1.0])
    table = [("(7,) for (3, 2)", _searched(7, (3, 2)), ALL), ("(8,) for (9,)", _searched(8, (9,)), ALL),
             ("(1,) for ()", _searched(1, ()), ALL), ("nothing for (3,)", _searched(0, (3,)), ALL),
             ("(5,) for nothing", _searched(5, (0, 2)), ALL), ("specials", ends, FLOATS),
             ("large", _searched(1003, (257, 259)), FEW)]
    return [Case(f"{label}, {'right' if right else 'left'}", make, dtypes, {"right": right})
            for label, make, dtypes in table for right in (False, True)]  # fmt: skip


CASES: dict[str, list[Case]] = {
    "argsort": _sorts(), "sort": _sorts(), "arg_top_k": _top_ks(), "lexsort": _lexsorts(), "searchsorted": _searches(),
}  # fmt: skip
