"""Cases of linear algebra: well-conditioned matrices, whose decompositions are stable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, is_complex
from nnc_core.shape.linalg import LAPACK
from nnc_plugins.conformance.case import Array, Case, Maker

Shape = tuple[int, ...]
Kind = Callable[[np.random.Generator, Shape, DType], Array]
SQUARES = ((0, 0), (0, 2, 2), (2, 0, 0), (71, 71), (40, 6, 6))
RECTANGLES = ((3, 0), (0, 3), (2, 0, 3), (67, 5), (40, 7, 5))
"""Shapes of nothing, of matrices that are not small, and of stacks of small ones."""


def _noise(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    real = rng.uniform(-1, 1, shape)
    return np.asarray(real + 1j * rng.uniform(-1, 1, shape) if is_complex(dtype) else real)


def _unitary(rng: np.random.Generator, shape: Shape, n: int, dtype: DType) -> Array:
    return np.asarray(np.linalg.qr(_noise(rng, (*shape, n, n), dtype))[0])


def _graded(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    """Singular values near 1, 2, 3 ..., in any order of sign of the determinant."""
    *batch, m, n = shape
    k = min(m, n)
    u, v = _unitary(rng, tuple(batch), m, dtype), _unitary(rng, tuple(batch), n, dtype)
    return np.asarray((u[..., :k] * (1 + np.arange(k) + rng.uniform(-0.2, 0.2, k))) @ v[..., :k, :])


def _definite(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    """Eigenvalues near 1, 2, 3 ..., and a little that is not Hermitian."""
    v = _unitary(rng, shape[:-2], shape[-1], dtype)
    values = 1 + np.arange(shape[-1]) + rng.uniform(-0.2, 0.2, shape[-1])
    return np.asarray((v * values) @ v.swapaxes(-1, -2).conj() + 0.01 * _noise(rng, shape, dtype))


def _hermitian(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    """Eigenvalues of both signs."""
    return np.asarray(_definite(rng, shape, dtype) - (shape[-1] / 2 + 0.6) * np.eye(shape[-1]))


def _positive(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    """Eigenvalues to the right of zero."""
    return np.asarray(_small(rng, shape, dtype) + np.eye(shape[-1]))


def _small(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    """Eigenvalues within the unit circle."""
    return np.asarray(_noise(rng, shape, dtype) / (3 * max(shape[-1], 1) ** 0.5))


def _spread(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    """Eigenvalues apart from each other, of real matrices most of them real."""
    return np.asarray(_small(rng, shape, dtype) + np.diag(1.5 * np.arange(shape[-1])))


def _turning(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    """Eigenvalues apart from each other, of real matrices in pairs."""
    n = shape[-1]
    turns = np.zeros((n, n))
    pairs = np.arange(0, n - 1, 2)
    turns[pairs, pairs + 1], turns[pairs + 1, pairs] = 1 + pairs, -1 - pairs
    return np.asarray(_small(rng, shape, dtype) / 2 + turns)


def _triangles(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    """Full matrices whose two triangles are both well conditioned."""
    return np.asarray(_noise(rng, shape, dtype) / max(shape[-1], 1) + 2 * np.eye(shape[-1]))


def _drawn(*given: tuple[Kind, Shape]) -> Maker:
    def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        return tuple(kind(rng, shape, dtype).astype(dtype) for kind, shape in given)

    return make


def _case(*given: tuple[Kind, Shape], smooth: bool = True, **attributes: Any) -> Case:
    shown = " and ".join(str(shape) for _, shape in given) + "".join(f" {k} {v}" for k, v in attributes.items())
    return Case(shown, _drawn(*given), LAPACK, attributes, smooth=smooth)


def _square(kind: Kind, smooth: bool = True, **attributes: Any) -> list[Case]:
    return [*(_case((kind, shape), smooth=smooth, **attributes) for shape in ((3, 3), (2, 4, 4), (1, 1))),
            *(_case((kind, shape), smooth=False, **attributes) for shape in SQUARES)]


def _rectangular(**attributes: Any) -> list[Case]:
    return [*_square(_graded, **attributes), _case((_graded, (5, 3)), **attributes),
            _case((_graded, (2, 2, 4)), **attributes),
            *(_case((_graded, shape), smooth=False, **attributes) for shape in RECTANGLES)]


def _with_nan(kind: Kind, *others: tuple[Kind, Shape]) -> Case:
    def spoilt(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
        x = kind(rng, shape, dtype)
        x[0, 1] = np.nan
        return np.asarray(x)

    return Case("with NaN", _drawn((spoilt, (3, 3)), *others), LAPACK)


def _right_hand_sides(kind: Kind, **attributes: Any) -> list[Case]:
    smooth = [((3, 3), (3, 2)), ((2, 3, 3), (3, 1)), ((2, 2), (3, 1, 2, 2)), ((1, 1), (1, 4))]
    rest = [((0, 0), (0, 2)), ((3, 3), (3, 0)), ((0, 2, 2), (2, 3)), ((70, 70), (70, 3)), ((40, 6, 6), (6, 2))]
    return [*(_case((kind, a), (_noise, b), **attributes) for a, b in smooth),
            *(_case((kind, a), (_noise, b), smooth=False, **attributes) for a, b in rest)]


def _nearest(**attributes: Any) -> list[Case]:
    smooth = [((4, 2), (4, 3)), ((2, 4), (2, 2)), ((3, 3), (2, 3, 1)), ((2, 4, 2), (4, 1))]
    rest = [((3, 0), (3, 2)), ((0, 3), (0, 2)), ((3, 2), (3, 0)), ((0, 3, 2), (3, 1)), ((70, 9), (70, 2))]
    return [*(_case((_graded, a), (_noise, b), **attributes) for a, b in smooth),
            *(_case((_graded, a), (_noise, b), smooth=False, **attributes) for a, b in rest)]


def _two_sided(kind: Kind) -> list[Case]:
    smooth = [((3, 3), (2, 2), (3, 2)), ((2, 2, 2), (3, 3), (2, 3)), ((2, 2), (2, 2, 2), (3, 1, 2, 2)),
              ((1, 1), (1, 1), (1, 1))]
    rest = [((0, 0), (2, 2), (0, 2)), ((2, 2), (0, 0), (2, 0)), ((0, 2, 2), (2, 2), (2, 2)),
            ((40, 40), (30, 30), (40, 30))]
    return [*(_case((kind, a), (kind, b), (_noise, q)) for a, b, q in smooth),
            *(_case((kind, a), (kind, b), (_noise, q), smooth=False) for a, b, q in rest)]


def _riccati() -> list[Case]:
    shapes = [((3, 3), (3, 2), (3, 3), (2, 2)), ((2, 2, 2), (2, 1), (2, 2), (1, 1))]
    rest = [((0, 0), (0, 1), (0, 0), (1, 1)), ((0, 2, 2), (2, 1), (2, 2), (1, 1)), ((6, 6), (6, 3), (6, 6), (3, 3))]
    kinds = (_positive, _noise, _definite, _definite)
    return [*(_case(*zip(kinds, s, strict=True)) for s in shapes),
            *(_case(*zip(kinds, s, strict=True), smooth=False) for s in rest)]


CASES: dict[str, list[Case]] = {
    "inv": [*_square(_graded), _with_nan(_graded)],
    "solve": [*_right_hand_sides(_graded), _with_nan(_graded, (_noise, (3, 2)))],
    "solve_triangular": [case for lower in (False, True) for unit in (False, True)
                         for case in _right_hand_sides(_triangles, lower=lower, unit_diagonal=unit)],
    "det": [*_square(_graded), _with_nan(_graded)],
    "cofactor": [*_square(_graded), _with_nan(_graded)],
    "slogdet": [*_square(_graded), _with_nan(_graded)],
    "matrix_rank": [*_rectangular(rtol=None), *_rectangular(rtol=0.6)],
    "pinv": [*_rectangular(rtol=None), *_rectangular(rtol=1e-3)],
    "lstsq": [*_nearest(rtol=None), *_nearest(rtol=1e-3)],
    "cholesky": _square(_definite),
    "qr": [*_rectangular(mode="reduced"), *_square(_graded, mode="complete"), _case((_graded, (2, 4)), mode="complete"),
           *(_case((_graded, shape), smooth=False, mode="complete") for shape in ((4, 2), (3, 0)))],
    "lu": [*_rectangular(), _with_nan(_graded)],
    "eigh": _square(_hermitian),
    "eigvalsh": _square(_hermitian),
    "eig": [*_square(_spread), _case((_turning, (5, 5))), _case((_turning, (2, 2, 2)))],
    "eigvals": [*_square(_spread), _case((_turning, (5, 5))), _case((_turning, (2, 2, 2)))],
    "schur": [*_square(_spread, smooth=False, output="complex"), *_square(_turning, smooth=False, output="real")],
    "hessenberg": _square(_graded, smooth=False),
    "svd": [*_rectangular(full_matrices=False), *_square(_graded, full_matrices=True),
            *(_case((_graded, shape), smooth=False, full_matrices=True) for shape in ((4, 2), (2, 3, 5), (0, 2)))],
    "svdvals": _rectangular(),
    "sylvester": _two_sided(_positive),
    "stein": _two_sided(_small),
    "care": _riccati(),
    "dare": _riccati(),
}  # fmt: skip
