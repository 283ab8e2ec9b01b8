"""Cases of elementwise operators."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import FLOATS, INTEGERS, NUMBERS, DType, boolean
from nnc_plugins.conformance.case import (
    ALL,
    LARGE,
    MOVED,
    Array,
    Case,
    arrays,
    draw,
    extreme_pairs,
    extreme_values,
    extremes,
    fixed,
    subnormal_pairs,
    subnormals,
)

NAN, INF = np.nan, np.inf


def _unary(dtypes: tuple[DType, ...], low: float = -3, high: float = 3) -> list[Case]:
    return [
        Case("packed", arrays((3, 4), low=low, high=high), dtypes, smooth=True),
        Case("scalar", arrays((), low=low, high=high), dtypes, smooth=True),
        Case("empty", arrays((0, 3)), dtypes),
        Case("large", arrays(LARGE, low=low, high=high), dtypes),
        Case("extremes", extreme_values, dtypes),
    ]


def _binary(dtypes: tuple[DType, ...], low: float = -3, high: float = 3) -> list[Case]:
    return [
        Case("packed", arrays((3, 4), (3, 4), low=low, high=high), dtypes, smooth=True),
        Case("broadcast", arrays((3, 1, 4), (2, 1), low=low, high=high), dtypes, smooth=True),
        Case("with a scalar", arrays((2, 3), (), low=low, high=high), dtypes, smooth=True),
        Case("scalars", arrays((), (), low=low, high=high), dtypes, smooth=True),
        Case("empty", arrays((0, 3), (1, 3)), dtypes),
        Case("large", arrays(LARGE, LARGE[1:], low=low, high=high), dtypes),
        Case("extremes", extreme_pairs, dtypes),
    ]


def _subnormal_values(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    return (subnormals(dtype),)


SUBNORMAL = Case("subnormal", _subnormal_values, FLOATS)
SUBNORMAL_PAIRS = Case("subnormal", subnormal_pairs, FLOATS)
TIES = Case("ties", fixed([1, 2, 2, 0], [2, 2, 1, 0]), NUMBERS)


def _nonzero(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    """Quotients that are not near an integer, where remainders jump."""
    divisor = np.array([1, 2, 3, 2]).astype(dtype) * draw(rng, dtype, (3, 1), 1, 1)
    if dtype in dt.SIGNED + FLOATS:
        divisor = np.where([[True], [False], [True]], divisor, -divisor).astype(dtype)
    quotient = draw(rng, dtype, (3, 4), -9, 9)
    if dtype in FLOATS:
        quotient = (np.floor(quotient) + np.array(0.5).astype(dtype)).astype(dtype)
        return (quotient * divisor).astype(dtype), divisor
    return quotient, divisor


def _division(dtypes: tuple[DType, ...]) -> list[Case]:
    return [
        Case("packed", _nonzero, dtypes, smooth=True),
        Case("positive", arrays((5, 1, 3), (2, 1), low=1, high=9), dtypes),
        Case("scalars", arrays((), (), low=1, high=9), dtypes),
        Case("empty", arrays((0, 3), (1, 3)), dtypes),
        Case("large", arrays(LARGE, LARGE[1:], low=1, high=100), dtypes),
        Case("extremes", extreme_pairs, dtypes),
    ]


def _integer_powers(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    """All bases with exponents that are not negative."""
    return extremes(dtype)[:, None], np.array([0, 1, 2, 3, 7, 63, 126]).astype(dtype)


def _negative_integer_powers(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    """All bases with negative exponents, rounded towards zero."""
    return extremes(dtype)[:, None], np.array([-1, -2, -3, -64, np.iinfo(dtype).min]).astype(dtype)


def _powers() -> list[Case]:
    return [
        *_binary(FLOATS, 0.1, 3),
        Case("negative bases", fixed([[-2.0], [-0.5], [-1.0]], [2.0, 3.0, -1.0, 0.0, 0.5]), FLOATS),
        Case("integers", arrays((3, 1), (4,), low=0, high=4), INTEGERS),
        Case("wrapping integers", _integer_powers, INTEGERS),
        Case("negative powers of integers", _negative_integer_powers, tuple(d for d in INTEGERS if d.kind == "i")),
        Case("integer scalars", arrays((), (), low=0, high=4), INTEGERS),
    ]


def _limits(low: float, high: float) -> Case:
    def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        return draw(rng, dtype, (3, 4), -9, 9), np.array(low).astype(dtype), np.array([high]).astype(dtype)

    return Case(f"between {low:g} and {high:g}", make, NUMBERS)


def _clipped(label: str, low: float, high: float) -> Case:
    """All of [low, high] lies on one side of the limits 0 and 3, or between them."""
    return Case(label, lambda rng, dtype: (
        draw(rng, dtype, (4, 3), low, high), np.zeros((), dtype), np.array(3).astype(dtype)), NUMBERS,
        smooth=True)


def _clips() -> list[Case]:
    specials = fixed([[1.0], [NAN], [INF], [-INF]], [0.0, NAN, -INF, 0.0], [2.0, 2.0, INF, NAN])
    return [
        _limits(1, 2), _limits(2, 1), _limits(0, 0),
        Case("arrays", arrays((3, 1, 4), (2, 1), (4,)), NUMBERS),
        _clipped("inside", 1, 2), _clipped("above", 6, 9),
        Case("scalars", arrays((), (), ()), NUMBERS),
        Case("empty", arrays((0, 2), (), ()), NUMBERS),
        Case("large", arrays(LARGE, LARGE[1:], ()), NUMBERS),
        Case("specials", specials, FLOATS),
    ]  # fmt: skip


def _choices() -> list[Case]:
    def choose(*shapes: tuple[int, ...]) -> Case:
        def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
            return draw(rng, boolean, shapes[0]), *(draw(rng, dtype, shape) for shape in shapes[1:])

        return Case(" ".join(map(str, shapes)), make, MOVED, smooth=True)

    return [
        choose((3, 4), (3, 4), (3, 4)), choose((3, 1), (2, 1, 1), (4,)), choose((2, 2), (), ()),
        choose((), (), ()),
        choose((0,), (0,), ()), choose(LARGE, LARGE, LARGE[1:]),
        Case("extremes", lambda rng, dtype: (np.array([[True], [False]]), *extreme_values(rng, dtype) * 2),
             MOVED),
    ]  # fmt: skip


def _between(target: DType, rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    """The numbers half way from one to the next, and others near them."""
    numbers = np.unique(extremes(target).astype(np.float64))
    halves = (numbers[:-1] + numbers[1:]) / 2
    return (np.concatenate([halves, halves * 1.001, halves * 0.999, halves * (1 + 1e-7)]).astype(dtype),)


def _casts() -> list[Case]:
    """Floats out of the range of an integer saturate, and NaN becomes 0; those of at most 8 bits are rounded once."""
    cases = []
    for target in MOVED:
        attributes = {"dtype": target}
        cases += [
            Case(f"to {target}", arrays((3, 4), low=-9, high=9), MOVED, attributes, smooth=target in FLOATS),
            Case(f"extremes to {target}", extreme_values, MOVED, attributes),
            Case(f"subnormals to {target}", _subnormal_values, FLOATS, attributes),
            Case(f"halves to {target}", fixed([0.5, 1.5, -0.5, -1.5, 254.5, -129.5]), FLOATS, attributes),
        ]
        if target in dt.STORED_FLOATS:
            cases.append(Case(f"between any two of {target}", partial(_between, target), FLOATS, attributes))
    scalar: Mapping[str, Hashable] = {"dtype": dt.float32}
    return [*cases, Case("scalar", arrays(()), MOVED, scalar), Case("empty", arrays((2, 0)), MOVED, scalar),
            Case("large", arrays(LARGE, low=-99, high=99), MOVED, scalar)]


def _logic(*shapes: tuple[int, ...]) -> Case:
    return Case(" ".join(map(str, shapes)), arrays(*shapes), (boolean,))


_ARITHMETIC = [*_binary(NUMBERS), SUBNORMAL_PAIRS]
_COMPARISON = [*_binary(ALL), TIES, SUBNORMAL_PAIRS]
_EQUALITY = [*_COMPARISON, *_binary(dt.STORAGE)]
_LOGIC = [_logic((2, 1, 8), (4, 1)), _logic((3, 4), (3, 4)), _logic((), ()), _logic((0,), (1,)),
          _logic(LARGE, LARGE[1:]),
          Case("extremes", extreme_pairs, (boolean,))]  # fmt: skip
_AWAY_FROM_ZERO = Case("away from zero", arrays((3, 4), low=1), NUMBERS, smooth=True)
_ORDER = [*(c for c in _binary(NUMBERS)), TIES, SUBNORMAL_PAIRS]
_FUNCTION = [*_unary(FLOATS), Case("wide", arrays((31, 33), low=-100, high=100), FLOATS), SUBNORMAL]
_POSITIVE = [*_unary(FLOATS, 0.1, 3), Case("wide", arrays((31, 33), low=0, high=1e4), FLOATS), SUBNORMAL]
_KINKED = [*(c for c in _unary(NUMBERS) if not c.smooth), Case("scalar", arrays(()), NUMBERS),
           _AWAY_FROM_ZERO,
           Case("below zero", arrays((3, 4), low=-4, high=-1), dt.SIGNED + FLOATS, smooth=True),
           SUBNORMAL]  # fmt: skip

CASES: dict[str, list[Case]] = {
    **dict.fromkeys(("add", "subtract", "multiply"), _ARITHMETIC),
    "divide": [*_binary(FLOATS, 0.5, 3), SUBNORMAL_PAIRS,
               Case("of both signs", arrays((9, 1), (5,)), FLOATS)],
    "floor_divide": _division(NUMBERS),
    "remainder": _division(NUMBERS),
    "power": _powers(),
    **dict.fromkeys(("maximum", "minimum"), _ORDER),
    "negative": [*_unary(NUMBERS), SUBNORMAL],
    **dict.fromkeys(("abs", "sign", "relu"), _KINKED),
    "clip": _clips(),
    **dict.fromkeys(("exp", "tanh", "sigmoid", "sin", "cos"), _FUNCTION),
    **dict.fromkeys(("log", "sqrt"), _POSITIVE),
    **dict.fromkeys(("less", "less_equal", "greater", "greater_equal"), _COMPARISON),
    **dict.fromkeys(("equal", "not_equal"), _EQUALITY),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), _LOGIC),
    "logical_not": [_logic((3, 4)), _logic(()), _logic((0, 2)), _logic(LARGE),
                    Case("extremes", extreme_values, (boolean,))],
    "where": _choices(),
    "cast": _casts(),
}  # fmt: skip
