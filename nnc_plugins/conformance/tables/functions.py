"""Cases of functions of one and of two real numbers: exponentials, trigonometry, roots, special functions."""

from __future__ import annotations

import numpy as np

from nnc_core.base.dtype import FLOATS, DType
from nnc_plugins.conformance.case import (
    LARGE,
    Array,
    Case,
    arrays,
    extreme_pairs,
    extreme_values,
    fixed,
    subnormal_pairs,
    subnormals,
)

NAN, INF = np.nan, np.inf


def _subnormal_values(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    return (subnormals(dtype),)


def unary(low: float = -3, high: float = 3, wide: tuple[float, float] = (-100, 100)) -> list[Case]:
    """Smooth between low and high; `wide` is sampled too."""
    return [
        Case("packed", arrays((3, 4), low=low, high=high), FLOATS, smooth=True),
        Case("scalar", arrays((), low=low, high=high), FLOATS, smooth=True),
        Case("empty", arrays((0, 3)), FLOATS),
        Case("large", arrays(LARGE, low=low, high=high), FLOATS),
        Case("wide", arrays((31, 33), low=wide[0], high=wide[1]), FLOATS),
        Case("extremes", extreme_values, FLOATS),
        Case("subnormal", _subnormal_values, FLOATS),
    ]


def binary(low: float = -3, high: float = 3, *special: Case) -> list[Case]:
    """Smooth where both are between low and high."""
    return [
        Case("packed", arrays((3, 4), (3, 4), low=low, high=high), FLOATS, smooth=True),
        Case("broadcast", arrays((3, 1, 4), (2, 1), low=low, high=high), FLOATS, smooth=True),
        Case("with a scalar", arrays((2, 3), (), low=low, high=high), FLOATS, smooth=True),
        Case("scalars", arrays((), (), low=low, high=high), FLOATS, smooth=True),
        Case("empty", arrays((0, 3), (1, 3)), FLOATS),
        Case("large", arrays(LARGE, LARGE[1:], low=low, high=high), FLOATS),
        Case("extremes", extreme_pairs, FLOATS),
        Case("subnormal", subnormal_pairs, FLOATS),
        *special,
    ]


def _orders(*orders: int) -> list[Case]:
    """polygamma; below 0 its odd orders, which have no zeros."""
    cases = []
    for order in orders:
        named = {"order": order}
        cases += [
            Case(f"of order {order}", arrays((3, 4), low=0.5, high=5), FLOATS, named, smooth=order < 4),
            Case(f"wide, of order {order}", arrays((31, 33), low=0, high=100), FLOATS, named),
            Case(f"extremes, of order {order}", extreme_values, FLOATS, named),
        ]
    negative = Case("negative", arrays((5, 7), low=-9, high=0), FLOATS, {"order": 1})
    large = Case("large", arrays(LARGE, low=0.5, high=9), FLOATS, {"order": 1})
    return [*cases, negative, large, Case("empty", arrays((0, 2)), FLOATS, {"order": 1}),
            Case("scalar", arrays((), low=1), FLOATS, {"order": 2}, smooth=True)]


def _of_distant(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    """Arrays of numbers of very different sizes."""
    sizes = np.array([0.25, 3.0, 20.0, 400.0])
    return sizes[:, None].astype(dtype), sizes.astype(dtype)


_POLES = Case("poles", fixed([0.0, -0.0, -1.0, -2.0, -3.0, -2.5]), FLOATS)
_ZETA = [
    Case("packed", arrays((3, 4), (3, 4), low=1.5, high=4), FLOATS, smooth=True),
    Case("broadcast", arrays((3, 1, 4), (2, 1), low=1.5, high=9), FLOATS, smooth=True),
    Case("scalars", arrays((), (), low=2, high=3), FLOATS, smooth=True),
    Case("empty", arrays((0, 3), (1, 3)), FLOATS), Case("large", arrays(LARGE, LARGE[1:], low=1.5, high=9), FLOATS),
    Case("ends", fixed([[1.0], [0.5], [2.0], [INF], [NAN]], [1.0, 0.0, -1.0, -1.5, INF, NAN, 2.0]), FLOATS),
]

_EQUAL = Case("equal", fixed([1.5, -2, 0, INF, -INF], [1.5, -2, 0, INF, -INF]), FLOATS)
_QUADRANTS = Case("quadrants", fixed([[1.0], [-1.0], [0.0], [-0.0], [2.5]], [1.0, -1.0, 0.0, -0.0, -3.0]), FLOATS)
_NOTHING = Case("zero times", fixed([[0.0], [-0.0]], [0.0, -1.0, INF, NAN, 2.0]), FLOATS)

CASES: dict[str, list[Case]] = {
    **dict.fromkeys(("exp2", "expm1"), unary()),
    "log1p": unary(-0.5, 3, (-1, 1e4)),
    **dict.fromkeys(("log2", "log10"), unary(0.1, 3, (0, 1e4))),
    **dict.fromkeys(("logaddexp", "logaddexp2"), binary(-3, 3, _EQUAL)),
    "xlogy": binary(0.1, 3, _NOTHING), "xlog1py": binary(-0.5, 3, _NOTHING),
    "entr": unary(0.1, 3, (-1, 100)), "logit": unary(0.1, 0.9, (-0.5, 1.5)),
    **dict.fromkeys(("erf", "erfc"), unary(-3, 3, (-12, 12))),
    "erfcx": unary(-2, 3, (-10, 1e4)), "erfinv": unary(-0.9, 0.9, (-1, 1)),
    "ndtr": unary(-3, 3, (-15, 9)), "log_ndtr": unary(-3, 3, (-1e3, 40)), "dawsn": unary(-3, 3, (-9, 9)),
    **dict.fromkeys(("i0", "i1", "i0e", "i1e"), unary(0.5, 3)),
    "lgamma": [*unary(0.5, 4, (-20, 200)), _POLES], "digamma": [*unary(0.5, 4, (0, 200)), _POLES],
    "polygamma": _orders(1, 2, 3, 7), "zeta": _ZETA,
    "betaln": [*binary(0.5, 4), Case("of distant sizes", _of_distant, FLOATS)],
    "tan": unary(-1.25, 1.25), "atan": unary(), "atan2": binary(0.5, 3, _QUADRANTS),
    **dict.fromkeys(("asin", "acos", "atanh"), unary(-0.75, 0.75, (-1, 1))),
    **dict.fromkeys(("sinh", "cosh", "asinh"), unary()), "acosh": unary(1.25, 4, (0, 1e4)),
    "sinc": [*unary(), Case("at zero", fixed([0.0, -0.0, 1e-4, -1e-2, 0.25]), FLOATS, smooth=True)],
    "cbrt": unary(0.5, 9, (-1e3, 1e3)), "rsqrt": unary(0.25, 9, (0, 1e3)), "hypot": binary(0.5, 3, _EQUAL),
}  # fmt: skip
