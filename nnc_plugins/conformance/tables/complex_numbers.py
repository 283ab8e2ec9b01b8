"""Cases of complex numbers, beside those that operators have for real ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.dtype import COMPLEX, DType, complex64, complex128, float32, float64
from nnc_core.symbol import Number
from nnc_plugins.conformance.case import LARGE, Array, Case, Named, arrays, fixed

INF, NAN = np.inf, np.nan
_SHAPES = (((3, 4), (3, 4)), ((3, 1), (4,)), ((), (2, 2)), ((0, 3), (3,)), ((33, 7), (33, 7)))
_SPECIAL = [complex(0, 0), complex(-0.0, 0), complex(1, -0.0), complex(INF, 1), complex(1, INF), complex(NAN, 0)]


def _apart(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    """Away from zero and from the negative real axis, where functions have cuts."""
    return ((rng.uniform(0.5, 2, (3, 5)) + 1j * rng.uniform(0.3, 1, (3, 5))).astype(dtype),)


def _pairs(special: bool = True, **options: Any) -> list[Case]:
    found = [Case(f"complex {' and '.join(map(str, shapes))}", arrays(*shapes), COMPLEX, **options)
             for shapes in _SHAPES]
    corners = np.asarray(_SPECIAL)
    specials = [Case("complex specials", fixed(corners[:, None], corners[None, :]), COMPLEX, **options)]
    return found + specials * special


def _alone(attributes: Named | None = None, special: bool = True) -> list[Case]:
    given = dict(attributes or {})
    return [Case("complex", arrays((3, 5)), COMPLEX, given, smooth=True),
            Case("complex empty", arrays((0, 3)), COMPLEX, given),
            Case("complex large", arrays(LARGE), COMPLEX, given),
            *[Case("complex scalar", arrays(()), COMPLEX)] * (not given),
            *[Case("complex specials", fixed([_SPECIAL, _SPECIAL]), COMPLEX, given)] * special]


def _around(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    """In all four quadrants, some near zero or near 1, off the axes, on which the cuts lie."""
    size = 2 ** rng.uniform(-6, 1.5, (4, 9))
    z = size * np.exp(1j * rng.uniform(0.1, 1.4, (4, 9))) * np.array([[1], [1j], [-1], [-1j]])
    z[0, :3] = 1 + z[0, :3] / 8
    return (z.astype(dtype),)


def _function() -> list[Case]:
    return [Case("complex", _apart, COMPLEX), Case("complex around", _around, COMPLEX),
            Case("complex empty", arrays((0, 3)), COMPLEX), Case("complex scalar", arrays(()), COMPLEX)]


def _parts(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    return rng.uniform(-2, 2, (3, 1)).astype(dtype), rng.uniform(-2, 2, (4,)).astype(dtype)


def _choice(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    (a, b), c = arrays((3, 4), (4,))(rng, dtype), rng.integers(0, 2, (3, 4)).astype(bool)
    return c, a, b


def _product(a: tuple[int, ...], b: tuple[int, ...], ta: bool, tb: bool) -> Case:
    return Case(f"complex {a} by {b}", arrays(a, b), COMPLEX, {"transpose_a": ta, "transpose_b": tb})


CASES: dict[str, list[Case]] = {
    **{name: _pairs() for name in ("add", "subtract", "multiply", "equal", "not_equal")},
    "divide": _pairs(special=False),
    **{name: _alone() for name in ("negative", "conj", "real", "imag", "copy")},
    "abs": _alone(),
    **{name: _function() for name in ("exp", "log", "sqrt", "sin", "cos", "tanh", "tan", "asin", "acos", "atan", "sinh",
                                      "cosh", "asinh", "acosh", "atanh", "sinc", "exp2", "expm1", "log1p", "log2",
                                      "log10")},
    "round": [*_alone(), Case("complex halves", fixed([0.5 + 1.5j, -2.5 - 0.5j]), COMPLEX)],
    "power": [Case("complex whole", lambda rng, dtype: (*_around(rng, dtype), np.arange(-4, 5).astype(dtype)), COMPLEX),
              Case("complex", lambda rng, dtype: (*_apart(rng, dtype), *_apart(rng, dtype)), COMPLEX)],
    "complex": [
        Case("parts", _parts, (float32, float64), smooth=True),
        Case("special parts", fixed([[INF], [-0.0], [NAN]], [INF, -0.0, NAN]), (float32, float64)),
        Case("no parts", arrays((0,), ()), (float32, float64)), Case("one", arrays((), ()), (float32, float64)),
        Case("large", arrays(LARGE, LARGE[1:]), (float32, float64)),
    ],
    "where": [Case("complex", _choice, COMPLEX)],
    "cast": [Case("complex to complex", arrays((3, 4)), COMPLEX, {"dtype": complex64}),
             Case("to complex", arrays((3, 4)), (float32, float64, np.dtype(np.int32)), {"dtype": complex128})],
    "sum": _alone({"axis": (1,), "keepdims": False}, special=False),
    "matmul": [_product((3, 4), (4, 5), False, False), _product((2, 4, 3), (4, 5), True, False),
               _product((3, 0), (2, 0), False, True), _product((33, 17), (9, 17), False, True)],
    "reshape": [Case("complex", arrays((3, 4)), COMPLEX, {"shape": (4, 3)})],
    "permute": [Case("complex", arrays((3, 4, 2)), COMPLEX, {"axes": (2, 0, 1)})],
    "broadcast_to": [Case("complex", arrays((3, 1)), COMPLEX, {"shape": (2, 3, 4)})],
    "slice": [Case("complex", arrays((5, 7)), COMPLEX, {"start": (1, 0), "stop": (5, 6), "step": (2, 3)})],
    "flip": [Case("complex", arrays((3, 4)), COMPLEX, {"axes": (0, 1)})],
    "filled": [Case("complex", lambda rng, dtype: (), COMPLEX,
                    lambda dtype: {"shape": (3, 2), "number": Number(1.5 - 2j, dtype)})],
}  # fmt: skip
