"""Cases of distributions: those that are sampled on the host, and what logarithms are taken of."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import FLOATS, INTEGERS, DType
from nnc_plugins.conformance.case import LARGE, Array, Case, draw

KEYS = ((0, 0), (2**63 + 7, 2**64 - 1), (12, 2**32 + 5))
NAN, INF = np.nan, np.inf


def _key(number: int = 0) -> Array:
    return np.array(KEYS[number], np.uint64)


def _opened() -> list[Case]:
    return [Case(f"{shape} of key {k}", lambda rng, dtype, k=k: (_key(k),), (dt.float32, dt.float64),  # type: ignore[misc]
                 lambda dtype, shape=shape: {"shape": shape, "dtype": dtype})  # type: ignore[misc]
            for shape, k in (((3, 5), 0), ((), 1), ((0, 4), 0), (LARGE, 2))]  # fmt: skip


def _of(label: str, *parameters: Array, dtypes: tuple[DType, ...] = FLOATS, number: int = 0,
        **attributes: Hashable) -> Case:
    """`parameters` in each dtype."""
    def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        return _key(number), *[np.asarray(p, dtype) for p in parameters]

    return Case(label, make, dtypes, attributes)


SIZES = np.array([[1e-3, 0.1, 0.5, 0.99], [1.0, 1.5, 9.5, 10.0], [30.0, 300.0, 1e4, 6e4]])
ODD = np.array([0.0, -1.0, NAN, INF, -INF, 1e-30, -0.0])


def _gammas() -> list[Case]:
    return [case for log in (False, True) for case in (
        _of(f"sizes, log {log}", SIZES, log=log), _of(f"scalar, log {log}", SIZES[1, 1], number=2, log=log),
        _of(f"empty, log {log}", SIZES[:0], log=log), _of(f"odd, log {log}", ODD, log=log),
        _of(f"many, log {log}", np.linspace(0.1, 5, 3000).reshape(30, 100), number=1, log=log))]  # fmt: skip


def _poissons() -> list[Case]:
    cases = [_of(f"sizes as {dtype}", SIZES, dtype=dtype) for dtype in INTEGERS]
    return [*cases, *[_of(label, x, number=k, dtype=dt.int64) for label, x, k in (
        ("scalar", SIZES[1, 1], 2), ("empty", SIZES[:0], 0), ("odd", ODD, 0),
        ("many", np.linspace(0.1, 50, 3000).reshape(30, 100), 1))]]  # fmt: skip


def _binomials() -> list[Case]:
    def of(label: str, count: Array, probability: Array, dtype: DType = dt.int64, number: int = 0) -> Case:
        def make(rng: np.random.Generator, given: DType) -> tuple[Array, ...]:
            return _key(number), count, np.asarray(probability, given)

        return Case(label, make, FLOATS, {"dtype": dtype})

    trials, chances = np.array([[0], [1], [7], [60], [2000]]), np.array([0.0, 1e-3, 0.3, 0.5, 0.8, 1.0, -1.0, 2.0, NAN])
    return [
        of("several of each", trials, chances), of("as int32", trials, chances, dt.int32, 1),
        of("negative", np.array([-3, 5], np.int32), np.array(0.5)), of("scalars", np.array(9), np.array(0.25)),
        of("empty", trials[:0], chances), of("many", np.full((40, 50), 100), np.linspace(0, 1, 50), number=2),
    ]  # fmt: skip


def _multinomials() -> list[Case]:
    def of(label: str, count: Array, probabilities: Array, dtype: DType = dt.int64) -> Case:
        def make(rng: np.random.Generator, given: DType) -> tuple[Array, ...]:
            return _key(1), count, probabilities.astype(given)

        return Case(label, make, FLOATS, {"dtype": dtype})

    rows = np.array([[0.2, 0.5, 0.3], [0.0, 1.0, 1.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    return [of("a vector", np.array(20), rows[0]), of("rows", np.array([100, 7, 5, 3]), rows),
            of("one number for all", np.array(9), rows, dt.uint16), of("no categories", np.array(3), rows[:, :0]),
            of("empty", np.zeros(0, np.int64), rows[:0])]  # fmt: skip


def _choices() -> list[Case]:
    def of(label: str, length: int, size: int, replace: bool) -> Case:
        def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
            weights = draw(rng, dtype, (length,), 0.1, 2)
            weights[3:5] = 0
            return _key(), weights

        return Case(label, make, FLOATS, {"size": size, "replace": replace})

    return [of("with replacement", 9, 50, True), of("without", 9, 7, False), of("some", 9, 2, False),
            of("none", 9, 0, False), of("none of none", 0, 0, True), of("large", 1000, 300, False)]


CASES: dict[str, list[Case]] = {
    "open_uniform": _opened(), "random_gamma": _gammas(), "random_poisson": _poissons(),
    "random_binomial": _binomials(), "random_multinomial": _multinomials(), "random_choice": _choices(),
}  # fmt: skip
