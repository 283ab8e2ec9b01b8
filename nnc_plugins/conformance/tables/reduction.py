"""Cases of reductions, matrix products and what is made of them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import COMPLEX, FLOATS, NUMBERS, DType, boolean
from nnc_plugins.conformance.case import (
    LARGE,
    Array,
    Case,
    Maker,
    arrays,
    draw,
    extreme_pairs,
    extreme_values,
    fixed,
    specials,
    wrapping,
)

AXES: tuple[tuple[tuple[int, ...], tuple[int, ...], bool], ...] = (
    ((3, 4), (0,), False), ((3, 4), (1,), True), ((3, 4), (0, 1), False), ((2, 3, 4), (0, 2), False),
    ((2, 3, 4), (1,), True), ((3, 4), (), False), ((), (), False), ((1, 5), (0,), False),
    ((5, 1), (1,), False),
    ((0, 3), (1,), False), ((2, 3), (0, 1), True),
)  # fmt: skip
OVER_NOTHING: tuple[tuple[tuple[int, ...], tuple[int, ...], bool], ...] = (
    ((0,), (0,), False), ((3, 0), (1,), False), ((0, 2), (0,), True),
)  # fmt: skip
LONG: tuple[tuple[tuple[int, ...], tuple[int, ...], bool], ...] = (((65, 1031), (1,), False),
    ((1031, 65), (0,), False))


def _reduce(dtypes: tuple[DType, ...], smooth: bool, over_nothing: bool) -> list[Case]:
    table = (*AXES, *LONG, *(OVER_NOTHING if over_nothing else ()))
    return [
        Case(f"{shape} over {axis}{' kept' * keep}", arrays(shape), dtypes, {"axis": axis, "keepdims": keep},
             smooth=smooth and (shape, axis, keep) not in LONG)
        for shape, axis, keep in table
    ]  # fmt: skip


def _folded(label: str, make: Maker, dtypes: tuple[DType, ...], axis: tuple[int, ...] = (0,)) -> Case:
    return Case(label, make, dtypes, {"axis": axis, "keepdims": False})


NAN, INF = np.nan, np.inf
SPECIALS = fixed([[1.0, NAN, INF, -INF, 0.0, NAN], [NAN, 2.0, 1.0, 3.0, -0.0, NAN],
                  [3.0, 1.0, INF, INF, 1.0, NAN]])
TIES = fixed([[1, 0, 2], [1, 0, 1], [0, 0, 2]])

_EXTREMUM = [
    *_reduce(NUMBERS, smooth=True, over_nothing=False), _folded("specials", SPECIALS, FLOATS),
    _folded("ties", TIES, NUMBERS),
    _folded("extremes", extreme_values, NUMBERS),
]  # fmt: skip


def _positions() -> list[Case]:
    def along(shape: tuple[int, ...], axis: int, keep: bool) -> Case:
        return Case(f"{shape} along {axis}{' kept' * keep}", arrays(shape), NUMBERS,
                    {"axis": axis, "keepdims": keep})

    named = {"axis": 0, "keepdims": False}
    return [
        along((3, 4), 0, False), along((3, 4), 1, True), along((2, 3, 4), 1, False), along((1,), 0, False),
        along((0, 3), 1, False), along((65, 1031), 1, False), Case("specials", SPECIALS, FLOATS, named),
        Case("ties", TIES, NUMBERS, named), Case("extremes", extreme_values, NUMBERS, named),
    ]  # fmt: skip


def _products() -> list[Case]:
    def product(a: tuple[int, ...], b: tuple[int, ...], ta: bool = False, tb: bool = False,
                smooth: bool = True) -> Case:
        label = f"{a}{'T' * ta} {b}{'T' * tb}"
        return Case(label, arrays(a, b), NUMBERS, {"transpose_a": ta, "transpose_b": tb}, smooth=smooth)

    plain = {"transpose_a": False, "transpose_b": False}
    return [
        product((3, 4), (4, 5)), product((4, 3), (4, 5), True), product((3, 4), (5, 4), False, True),
        product((4, 3), (5, 4), True, True), product((2, 3, 4), (4, 2)), product((3, 4), (2, 4, 2)),
        product((2, 1, 3, 4), (5, 4, 2)), product((1, 3, 4), (2, 2, 4), False, True), product((1, 7), (7, 1)),
        product((3, 0), (0, 2)), product((0, 3), (3, 2)), product((0, 2, 3), (3, 2)), product((1, 1), (1, 1)),
        product((65, 70), (70, 33), smooth=False), product((70, 65), (33, 70), True, True, smooth=False),
        product((257, 3), (3, 259), smooth=False),
        Case("specials", fixed([[1.0, INF], [NAN, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, -INF]]), FLOATS,
             plain),
        Case("wrapping", extreme_pairs, dt.INTEGERS, plain),
    ]  # fmt: skip


def _softmaxes() -> list[Case]:
    def along(shape: tuple[int, ...], axis: int) -> Case:
        return Case(f"{shape} along {axis}", arrays(shape), FLOATS, {"axis": axis}, smooth=True)

    return [
        along((3, 4), 1), along((3, 4), 0), along((2, 3, 4), 1), along((5,), 0), along((0, 3), 1),
        along((4, 1), 1),
        Case("far apart", fixed([[1000.0, 0.0, -1000.0], [80.0, 80.0, 80.0]]), FLOATS, {"axis": 1}),
        Case("masked", fixed([[0.0, -INF, 1.0], [-INF, 2.0, -INF]]), FLOATS, {"axis": 1}),
        Case("NaN", fixed([[0.0, NAN, 1.0], [1.0, 2.0, 3.0]]), FLOATS, {"axis": 1}),
        Case("large", arrays(LARGE, low=-20, high=20), FLOATS, {"axis": 1}),
    ]  # fmt: skip


def _cross_entropies() -> list[Case]:
    def of(shape: tuple[int, ...], index: DType) -> Case:
        def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
            return draw(rng, dtype, shape), draw(rng, index, shape[:-1], 0, max(shape[-1] - 1, 0))

        return Case(f"{shape} by {index}", make, FLOATS, smooth=True)

    def spoilt(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        rows = np.array([[0, -INF, 1], [NAN, 0, 1], [INF, 0, 1], [2, 1, 0]]).astype(dtype)
        return rows, np.array([2, 1, 1, 0])

    return [of((4, 3), dt.int64), of((2, 3, 5), dt.int32), of((6,), dt.uint8), of((0, 3), dt.int64),
            of((6571, 10), dt.int64), Case("specials", spoilt, FLOATS)]


def _labels() -> list[Case]:
    def of(shape: tuple[int, ...], index: DType) -> Case:
        def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
            return draw(rng, dtype, shape), draw(rng, index, shape[:-1], 0 if index.kind == "u" else -2, shape[-1] + 1)

        return Case(f"{shape} by {index}", make, FLOATS)

    def spoilt(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        return *specials((4, 3))(rng, dtype), np.array([0, 3, -1, 2])

    return [of((4, 3), dt.int64), of((2, 3, 5), dt.int32), of((6,), dt.int8), of((0, 3), dt.int64),
            of((9, 200), dt.uint8), of((7, 300), dt.uint8), of((6571, 10), dt.int64),
            Case("specials", spoilt, FLOATS)]


def _with(cases: list[Case], **attributes: Hashable) -> list[Case]:
    """The same with further attributes, which the label names."""
    said = ", ".join(f"{k} {v}" for k, v in attributes.items())
    return [replace(c, label=f"{c.label}, {said}", attributes={**c.attributes, **attributes})  # type: ignore[dict-item]
            for c in cases]


FACTORS = fixed([[1.0, NAN, INF, -INF, 0.0, 2.0], [NAN, 2.0, -1.0, 0.0, -0.0, 0.5]])
ZEROS = fixed([[2.0, 0.0, -1.5, 0.0], [3.0, 1.0, 0.5, 0.0], [1.0, -2.0, 0.5, 3.0]])
FAR = fixed([[1000.0, 0.0, -1000.0], [80.0, 80.0, 80.0], [-INF, -INF, -INF], [INF, 0.0, 1.0], [NAN, 0.0, -INF]])
_OFFSET = Case("far from zero", arrays((5, 40), low=1e3, high=1.001e3), (dt.float32, dt.float64),
               {"axis": (1,), "keepdims": False})


def _products_along() -> list[Case]:
    plain = [c for c in _reduce((*NUMBERS, *COMPLEX), smooth=True, over_nothing=True) if "1031" not in c.label]
    return [
        *plain, _folded("long", arrays((1031, 65), low=0.5, high=1.5), FLOATS), _folded("specials", FACTORS, FLOATS),
        _folded("wrapping", wrapping, dt.INTEGERS),
        *[replace(_folded(f"zeros along {axis}", ZEROS, NUMBERS, axis), smooth=True) for axis in ((0,), (1,), (0, 1))],
    ]  # fmt: skip


def _variances(smooth: bool) -> list[Case]:
    """A standard deviation of zero has no derivative."""
    cases = _reduce((*FLOATS, *COMPLEX), smooth=True, over_nothing=True)
    single = [replace(c, smooth=c.smooth and (smooth or _folds_several(c))) for c in cases]
    some = [c for c in single if c.label.startswith(("(3, 4) over (0,)", "(2, 3, 4) over (0, 2)"))]
    return [
        *_with(single, correction=0.0), *_with(some, correction=1.0), *_with(some[:1], correction=0.5),
        *_with([_folded("fewer than the correction", arrays((2, 3)), FLOATS)], correction=2.0),
        *_with([_folded("specials", SPECIALS, FLOATS), _OFFSET], correction=0.0),
    ]  # fmt: skip


def _folds_several(case: Case) -> bool:
    return not case.label.startswith(("(3, 4) over ()", "() over", "(1, 5)", "(5, 1)"))


def _log_sums() -> list[Case]:
    return [*_reduce(FLOATS, smooth=True, over_nothing=True), _folded("far apart", FAR, FLOATS, (1,)),
            _folded("far apart everywhere", FAR, FLOATS, (0, 1))]


def _norms() -> list[Case]:
    some = [c for c in _reduce(FLOATS, smooth=True, over_nothing=False)
            if c.label.startswith(("(3, 4) over (0,)", "(2, 3, 4) over (0, 2)", "(1, 5)", "(0, 3)"))]
    found = _with(_reduce(FLOATS, smooth=True, over_nothing=True), ord=2.0)
    for ord in (1.0, 3.0, 0.5, 0.0, INF, -INF, -1.0, 2.5):
        found += _with([*some, _folded("specials", SPECIALS, FLOATS)], ord=ord)
    for ord in (0.0, 1.0, 2.0, INF, -INF, 3.0):
        found += _with([_folded("zeros", ZEROS, FLOATS)], ord=ord)
    return found


CASES: dict[str, list[Case]] = {
    "sum": [*_reduce(NUMBERS, smooth=True, over_nothing=True), _folded("specials", SPECIALS, FLOATS),
            _folded("wrapping", wrapping, dt.INTEGERS)],
    **dict.fromkeys(("max", "min"), _EXTREMUM),
    **dict.fromkeys(("argmax", "argmin"), _positions()),
    **dict.fromkeys(("all", "any"), _reduce((boolean,), smooth=False, over_nothing=True)),
    "mean": [*_reduce(FLOATS, smooth=True, over_nothing=True), _folded("specials", SPECIALS, FLOATS),
             _folded("sums too large for halves", arrays((2000, 3), low=50, high=100), FLOATS)],
    "prod": _products_along(), "var": _variances(smooth=True), "std": _variances(smooth=False),
    "logsumexp": _log_sums(), "vector_norm": _norms(),
    "matmul": _products(),
    **dict.fromkeys(("softmax", "log_softmax"), _softmaxes()),
    "cross_entropy": _cross_entropies(), "is_class": _labels(),
}  # fmt: skip
