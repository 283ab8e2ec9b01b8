"""Cases of operators whose results have as many rows as the data say: the data are fixed, and so are the counts.

They run on the host by their references, on every device: what is compared is that arrays get there and back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.dtype import FLOATS, INTEGERS, DType
from nnc_plugins.conformance.case import ALL, Array, Case, fixed


def _filled(shape: tuple[int, ...], *values: float) -> Array:
    return np.resize(np.array(values, np.float64), shape)


_ARRAYS: dict[str, Array] = {
    "some zeros": _filled((7,), 0, 3, 0, 0, 1), "nothing but zeros": _filled((4,), 0), "no zeros": _filled((5,), 2, 1),
    "rows": _filled((3, 4), 1, 0, 2), "empty": _filled((0,), 0), "an axis of no length": _filled((2, 0, 3), 0),
    "three axes": _filled((2, 3, 2), 0, 1, 1, 0, 5), "a thousand": _filled((1000,), 3, 0, 1, 2, 0, 0, 4),
}
_SPECIAL = {"NaN and signed zeros": np.array([np.nan, 0.0, -0.0, np.inf, np.nan, -np.inf, 1.0])}


def _nonzero_count(x: Array) -> int:
    return sum(bool(v) for v in x.ravel().tolist())


def _distinct_count(x: Array) -> int:
    """NaN is unlike NaN."""
    numbers = [float(v) for v in x.ravel()]
    return len({v for v in numbers if v == v}) + sum(v != v for v in numbers)


def _cases(count: Any, arrays: dict[str, Array], dtypes: tuple[DType, ...] = ALL) -> list[Case]:
    def case(label: str, x: Array) -> Case:
        return Case(label, fixed(x), dtypes, lambda dtype: {"size": count(x.astype(dtype))} if count else {})

    return [case(label, x) for label, x in arrays.items()]


def _bin_count(x: Array) -> int:
    return int(x.max()) + 1 if x.size else 0


_NUMBERS = {"some": _filled((9,), 3, 0, 7, 1), "one bin": _filled((4,), 0), "none": _filled((0,), 0),
            "many": _filled((1000,), 5, 90, 33)}
_SCALAR = {"a scalar": _filled((), 2)}

CASES: dict[str, list[Case]] = {
    "nonzero": _cases(_nonzero_count, _ARRAYS) + _cases(_nonzero_count, _SPECIAL, FLOATS),
    "unique_index": _cases(_distinct_count, _ARRAYS | _SCALAR) + _cases(_distinct_count, _SPECIAL, FLOATS),
    "unique_counts": _cases(_distinct_count, _ARRAYS | _SCALAR) + _cases(_distinct_count, _SPECIAL, FLOATS),
    "bin_range": _cases(_bin_count, _NUMBERS, INTEGERS),
    "unique_inverse": _cases(None, _ARRAYS | _SCALAR) + _cases(None, _SPECIAL, FLOATS),
}
