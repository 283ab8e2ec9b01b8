"""Cases of scans along one axis."""

from __future__ import annotations

import numpy as np

from nnc_core.base.dtype import COMPLEX, FLOATS, INTEGERS, NUMBERS, DType
from nnc_plugins.conformance.case import Case, Maker, arrays, extreme_values, fixed, wrapping

NAN, INF = np.nan, np.inf
SHAPES: tuple[tuple[tuple[int, ...], int], ...] = (
    ((3, 4), 0), ((3, 4), 1), ((2, 3, 4), 1), ((5,), 0), ((1, 5), 0), ((4, 1), 1), ((0, 3), 0), ((3, 0), 0),
    ((2, 0), 1),
)  # fmt: skip
SPECIALS = fixed([[1.0, NAN, INF, -INF, 0.0, 2.0], [-INF, -INF, 2.0, 1.0, -0.0, NAN], [3.0, 1.0, INF, INF, 1.0, -2.0]])
TIES = fixed([[1, 0, 2, 2, 1, 3], [2, 2, 0, 0, 2, 1]])
ZEROS = fixed([[2.0, 0.0, -1.5, 0.0, 1.0], [3.0, 1.0, 0.5, 0.0, 2.0], [0.0, -2.0, 0.5, 3.0, 1.0]])


def _along(make: Maker, label: str, dtypes: tuple[DType, ...], axis: int, smooth: bool = False) -> list[Case]:
    return [Case(f"{label} along {axis}{', reversed' * reverse}", make, dtypes, {"axis": axis, "reverse": reverse},
                 smooth=smooth) for reverse in (False, True)]  # fmt: skip


def _scans(dtypes: tuple[DType, ...], smooth: bool = True) -> list[Case]:
    found: list[Case] = []
    for shape, axis in SHAPES:
        found += _along(arrays(shape), str(shape), dtypes, axis, smooth)
    floats = tuple(d for d in dtypes if d in FLOATS)
    return [*found, *_along(SPECIALS, "specials", floats, 1), *_along(SPECIALS, "specials", floats, 0)]


_SUMS = [*_scans((*NUMBERS, *COMPLEX)), *_along(wrapping, "wrapping", INTEGERS, 1),
         *_along(arrays((65, 1031)), "large", NUMBERS, 1)]
_PRODUCTS = [
    *_scans((*NUMBERS, *COMPLEX)), *_along(wrapping, "wrapping", INTEGERS, 1),
    *_along(ZEROS, "zeros", NUMBERS, 1, smooth=True), *_along(ZEROS, "zeros", NUMBERS, 0, smooth=True),
    *_along(arrays((65, 1031), low=0.5, high=1.5), "large", FLOATS, 1),
]  # fmt: skip
_EXTREMA = [*_scans(NUMBERS), *_along(TIES, "ties", NUMBERS, 1), *_along(extreme_values, "extremes", NUMBERS, 0),
            *_along(arrays((65, 1031)), "large", NUMBERS, 1)]
_LOGARITHMS = [
    *_scans(FLOATS), *_along(fixed([[1000.0, 0.0, -1000.0, 999.0], [-INF, -INF, 0.0, 1.0]]), "far apart", FLOATS, 1),
    *_along(arrays((65, 1031), low=-20, high=20), "large", FLOATS, 1),
]  # fmt: skip


def _recurrences() -> list[Case]:
    found: list[Case] = []
    for shape, axis in SHAPES:
        found += _along(arrays(shape, shape, low=-1.5, high=1.5), str(shape), (*NUMBERS, *COMPLEX), axis, smooth=True)
    pair = fixed([[0.0, 0.0, 2.0, 0.0, INF]], [[1.0, 2.0, 3.0, NAN, 1.0]])
    return [*found, *_along(pair, "specials", FLOATS, 1),
            *_along(arrays((65, 1031), (65, 1031), low=-1, high=1), "large", FLOATS, 1)]


CASES: dict[str, list[Case]] = {
    "cumulative_sum": _SUMS, "cumulative_prod": _PRODUCTS, "cummax": _EXTREMA, "cummin": _EXTREMA,
    "argcummax": _EXTREMA, "argcummin": _EXTREMA, "logcumsumexp": _LOGARITHMS, "recurrence": _recurrences(),
}  # fmt: skip
