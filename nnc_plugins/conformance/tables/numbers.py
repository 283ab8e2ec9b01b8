"""Cases of operators on how numbers are written: rounding, remainders, bits of integers, parts of floats."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from nnc_core.base.dtype import (
    FLOATS,
    INTEGERS,
    NUMBERS,
    SIGNED,
    DType,
    bits_of,
    boolean,
    complex64,
    float32,
    int32,
    is_complex,
)
from nnc_plugins.conformance.case import (
    LARGE,
    MOVED,
    Array,
    Case,
    Maker,
    arrays,
    draw,
    drawn_bits,
    extreme_pairs,
    extreme_values,
    extremes,
    fixed,
    float_limits,
    subnormal_pairs,
    subnormals,
)

NAN, INF = np.nan, np.inf


def _subnormal_values(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    return (subnormals(dtype),)


def _bits(shape: tuple[int, ...]) -> Maker:
    """Any bits, NaN with them; booleans are zeros and ones."""

    def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        if dtype == boolean or is_complex(dtype):
            return (draw(rng, dtype, shape),)
        return (drawn_bits(rng, shape, bits_of(dtype)).view(dtype),)

    return make


def _bitcasts() -> list[Case]:
    """Between all dtypes of as many bits."""
    cases: list[Case] = []
    for target in (*MOVED, complex64):
        sources = tuple([d for d in (*MOVED, complex64) if bits_of(d) == bits_of(target)])
        to: dict[str, Hashable] = {"dtype": target}
        cases += [Case(f"to {target}", _bits((3, 4)), sources, to),
                  Case(f"extremes to {target}", extreme_values, tuple([d for d in sources if d != complex64]), to)]
    as_words: dict[str, Hashable] = {"dtype": int32}
    return [Case("packed", arrays((3, 4)), (float32,), as_words), Case("scalar", arrays(()), (float32,), as_words),
            Case("empty", arrays((0, 3)), (float32,), as_words), Case("large", arrays(LARGE), (float32,), as_words),
            *cases]


def _near_integers(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    """Halves, their neighbours, and the last numbers that have a fraction."""
    digits = float_limits(dtype).nmant
    large = 2.0**digits
    far = [large, large / 2 + 0.5, large - 1, -large / 4 - 0.25]
    exact = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.25, -0.75, *far]).astype(dtype)
    return (np.concatenate([exact, np.nextafter(exact, exact.dtype.type(0))]),)


def _unary(dtypes: tuple[DType, ...], *special: Case) -> list[Case]:
    return [
        Case("packed", arrays((3, 4)), dtypes), Case("scalar", arrays(()), dtypes),
        Case("empty", arrays((0, 3)), dtypes), Case("large", arrays(LARGE, low=-100, high=100), dtypes),
        Case("extremes", extreme_values, dtypes), *special,
    ]  # fmt: skip


def _binary(dtypes: tuple[DType, ...], *special: Case) -> list[Case]:
    return [
        Case("packed", arrays((3, 4), (3, 4)), dtypes), Case("broadcast", arrays((3, 1, 4), (2, 1)), dtypes),
        Case("with a scalar", arrays((2, 3), ()), dtypes), Case("scalars", arrays((), ()), dtypes),
        Case("empty", arrays((0, 3), (1, 3)), dtypes), Case("extremes", extreme_pairs, dtypes),
        Case("large", arrays(LARGE, LARGE[1:], low=-99, high=99), dtypes), *special,
    ]  # fmt: skip


def _counts(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    """All counts that fit, and beyond."""
    width = 8 * dtype.itemsize
    counts = np.array([0, 1, 2, width // 2, width - 1, width, width + 1, 100]).astype(dtype)
    return extremes(dtype)[:, None], counts


def _negative_counts(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    return extremes(dtype)[:, None], np.array([-1, -2, -100]).astype(dtype)


def _multiples(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    """With large common divisors, and Fibonacci's numbers, which take the most steps."""
    factor = draw(rng, dtype, (5, 1), 1, 6)
    return np.concatenate([factor * 6, np.array([[0], [89], [55]]).astype(dtype)]), (factor * 4).reshape(-1)


def _exponents(*shape: int) -> Maker:
    def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        return draw(rng, dtype, shape), rng.integers(-9, 9, shape).astype(np.int32)

    return make


def _far_exponents(kind: type) -> Maker:
    """From the smallest number to the largest, beyond both ends, and into subnormal numbers."""

    def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        limits = float_limits(dtype)
        whole = limits.maxexp - limits.minexp + limits.nmant
        known = np.iinfo(kind)
        reach = {0, 1, limits.nmant, limits.maxexp - 1, -limits.minexp, whole, 9999, int(known.max)}
        counts = sorted(n for r in reach for n in {r, -r} if known.min <= n <= known.max)
        values = np.concatenate([extremes(dtype), subnormals(dtype), np.array([0.7, 1.9]).astype(dtype)])
        return values[:, None], np.array(counts, kind)

    return make


def _kinked(label: str, *sides: tuple[float, float]) -> Case:
    """Smooth, as each input keeps to its side."""
    def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        return tuple(draw(rng, dtype, (3, 4), low, high) for low, high in sides)

    return Case(label, make, FLOATS, smooth=True)


_NAN_PAIRS = Case("beside NaN", fixed([NAN, 1, NAN, -INF], [2, NAN, NAN, NAN]), FLOATS)
_TIES = Case("ties", fixed([1, 2, 2, 0], [2, 2, 1, 0]), NUMBERS)
_SIGNED_ZEROS = Case("zeros", fixed([0.0, -0.0, 0.0, -0.0, NAN], [1.0, 1.0, -1.0, -0.0, -1.0]), FLOATS)
_ROUNDED = _unary(NUMBERS, Case("near integers", _near_integers, FLOATS), Case("subnormal", _subnormal_values, FLOATS),
                  _kinked("between integers", (2.125, 2.375)))
_CHOICE = _binary(NUMBERS, _TIES, _NAN_PAIRS, _kinked("apart", (-3, -1), (1, 3)))
_BITWISE = [*_binary((*INTEGERS, boolean))]
_SHIFT = [
    Case("packed", lambda rng, dtype: (draw(rng, dtype, (3, 4), -99, 99), draw(rng, dtype, (3, 4), 0, 6)), INTEGERS),
    Case("broadcast", lambda rng, dtype: (draw(rng, dtype, (3, 1), -99, 99), draw(rng, dtype, (4,), 0, 6)), INTEGERS),
    Case("scalars", lambda rng, dtype: (draw(rng, dtype, (), -99, 99), draw(rng, dtype, (), 0, 6)), INTEGERS),
    Case("empty", arrays((0, 3), (1, 3)), INTEGERS),
    Case("large", lambda rng, dtype: (draw(rng, dtype, LARGE, -99, 99), draw(rng, dtype, LARGE[1:], 0, 6)), INTEGERS),
    Case("all counts", _counts, INTEGERS), Case("negative counts", _negative_counts, SIGNED),
]  # fmt: skip

CASES: dict[str, list[Case]] = {
    "bitcast": _bitcasts(),
    **dict.fromkeys(("floor", "ceil", "trunc", "round"), _ROUNDED),
    "fmod": _binary(NUMBERS, Case("subnormal", subnormal_pairs, FLOATS),
                    _kinked("quotient 2", (5.25, 5.75), (2.25, 2.5)),
                    Case("of both signs", fixed([[5.5], [-5.5], [1e-3]], [2.0, -2.0, 0.75]), FLOATS)),
    **dict.fromkeys(("fmax", "fmin"), _CHOICE),
    "heaviside": _binary(FLOATS, _SIGNED_ZEROS, _kinked("beside the step", (1, 3), (-2, 2))),
    "copysign": _binary(FLOATS, _SIGNED_ZEROS, _kinked("beside zero", (1, 3), (-3, -1))),
    "signbit": _unary(FLOATS, Case("zeros", fixed([0.0, -0.0, -NAN]), FLOATS)),
    "nextafter": _binary(FLOATS, _SIGNED_ZEROS, Case("subnormal", subnormal_pairs, FLOATS),
                         _kinked("apart", (-3, -1), (1, 3))),
    "ldexp": [
        Case("packed", _exponents(3, 4), FLOATS, smooth=True), Case("scalars", _exponents(), FLOATS, smooth=True),
        Case("broadcast", lambda rng, dtype: (draw(rng, dtype, (3, 1)), np.arange(-4, 4)), FLOATS, smooth=True),
        Case("empty", _exponents(0, 2), FLOATS), Case("large", _exponents(*LARGE), FLOATS),
        Case("far", _far_exponents(np.int32), FLOATS),
        Case("far, int64", _far_exponents(np.int64), FLOATS), Case("far, int8", _far_exponents(np.int8), FLOATS),
        Case("far, uint16", _far_exponents(np.uint16), FLOATS), Case("far, uint64", _far_exponents(np.uint64), FLOATS),
    ],
    "mantissa": _unary(FLOATS, Case("subnormal", _subnormal_values, FLOATS), _kinked("one exponent", (1.25, 1.75))),
    "exponent": _unary(FLOATS, Case("subnormal", _subnormal_values, FLOATS)),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), _BITWISE),
    "bitwise_invert": _unary((*INTEGERS, boolean)),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), _SHIFT),
    **dict.fromkeys(("gcd", "lcm"), _binary(INTEGERS, Case("multiples", _multiples, INTEGERS))),
}  # fmt: skip
