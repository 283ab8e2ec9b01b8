"""Cases of operators that make arrays from nothing, or from a key."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import FLOATS, NUMBERS, DType, accumulator, is_float
from nnc_core.symbol import Number
from nnc_plugins.conformance.case import LARGE, MOVED, Array, Case, extremes


def _nothing(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    return ()


def _filled(shape: tuple[int, ...], value: Any) -> Case:
    def attributes(dtype: DType) -> dict[str, Hashable]:
        return {"shape": shape, "number": Number(value, dtype)}

    return Case(f"{shape} of {value}", _nothing, MOVED, attributes)


def _filled_with_extreme(place: int) -> Case:
    def attributes(dtype: DType) -> dict[str, Hashable]:
        values = extremes(dtype)
        return {"shape": (2, 3), "number": Number(values[place % len(values)], dtype)}

    return Case(f"extreme {place}", _nothing, MOVED, attributes)


def _progression(size: int, start: float, step: float) -> Case:
    """Fractions are for floats; unsigned integers get magnitudes."""

    def attributes(dtype: DType) -> dict[str, Hashable]:
        numbers = [x if is_float(dtype) else int(x) if dtype in dt.SIGNED else abs(int(x)) for x in (start,
            step)]
        first, by = (Number(x, accumulator(dtype)) for x in numbers)
        return {"start": first, "step": by, "size": size, "dtype": dtype}

    return Case(f"{size} from {start} by {step}", _nothing, NUMBERS, attributes)


KEYS = ((0, 0), (1, 2), (2**64 - 1, 2**64 - 1), (0x0123456789ABCDEF, 0xFEDCBA9876543210))


def _drawn(shape: tuple[int, ...], dtypes: tuple[DType, ...], key: int = 1, **more: Hashable) -> Case:
    """`dtypes` are those of the result."""

    def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        return (np.array(KEYS[key], np.uint64),)

    def attributes(dtype: DType) -> dict[str, Hashable]:
        return {"shape": shape, **(more or {"dtype": dtype})}

    shown = "".join(f" {name} {value}" for name, value in more.items())
    return Case(f"{shape} by key {key}{shown}", make, dtypes, attributes)


def _ordered(size: int, key: int = 1) -> Case:
    drawn = _drawn((), (dt.int64,), key)
    return Case(f"{size} by key {key}", drawn.inputs, drawn.dtypes, lambda dtype: {"size": size})


def _distinct(size: int, below: int, key: int = 1) -> Case:
    drawn = _drawn((), (dt.int64,), key)
    return Case(f"{size} below {below} by key {key}", drawn.inputs, drawn.dtypes,
                lambda dtype: {"size": size, "below": below})


def _draws(dtypes: tuple[DType, ...]) -> list[Case]:
    shapes = ((5,), (3, 7), (), (0, 2), (1,), LARGE)
    return [*(_drawn(shape, dtypes) for shape in shapes),
            *(_drawn((2, 9), dtypes, key) for key in range(len(KEYS)))]


CASES: dict[str, list[Case]] = {
    "filled": [_filled((3, 4), 2), _filled((), 1), _filled((0, 2), 1), _filled((2,), 0), _filled(LARGE, 3),
               *(_filled_with_extreme(place) for place in range(13))],
    "progression": [_progression(5, 0, 1), _progression(7, 2, 3), _progression(4, -3, 2),
                    _progression(0, 1, 1),
                    _progression(1, 9, 5), _progression(6, 0.25, -0.5), _progression(100, 0, 0.1),
                    _progression(70_001, 2, 1)],
    "random_bits": _draws((dt.uint32, dt.uint64)),
    **dict.fromkeys(("uniform", "normal"), _draws(FLOATS)),
    "bernoulli": [_drawn((6, 7), (dt.boolean,), probability=p) for p in (0.0, 0.1, 0.5, 1.0)]
    + [_drawn(shape, (dt.boolean,), probability=0.5) for shape in ((), (0,), LARGE)],
    "permutation": [*(_ordered(size) for size in (0, 1, 2, 10, 1025)), *(_ordered(7, key) for key in range(len(KEYS)))],
    "distinct_integers": [*(_distinct(*case) for case in ((0, 0), (0, 5), (1, 1), (4, 4), (5, 2**32), (500, 1000))),
                          *(_distinct(3, 7, key) for key in range(len(KEYS)))],
}  # fmt: skip
