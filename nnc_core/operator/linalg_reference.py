"""Linear algebra by NumPy: LAPACK where NumPy has it, blocks of matrix products where it has not.

Stacks of matrices lie along leading axes.  What has no answer is a LinAlgError that says which matrix it was.  NaN and
infinities go through elimination as through any arithmetic; a matrix that holds them is not positive definite, and it
has no eigenvalues and no singular values.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from nnc_core.base.dtype import complex_of, is_complex
from nnc_core.base.errors import LinAlgError
from nnc_core.operator.phases import phases, settled, turned

BLOCK = 64
"""Rows that are eliminated or substituted one by one, or by LAPACK; all else is matrix products."""


def _which(bad: Any) -> str:
    """The first matrix of a stack that is bad."""
    found = np.argwhere(bad)
    return "the matrix" if not found.size else f"matrix {', '.join(map(str, found[0]))} of the stack"


def hermitian(a: Any) -> Any:
    """(a + aᴴ) / 2; of a Hermitian matrix the same bits."""
    return (a + a.swapaxes(-1, -2).conj()) / 2


def _singular(a: Any) -> LinAlgError:
    return LinAlgError(f"{_which(np.linalg.slogdet(a)[0] == 0)} is singular",
                       hint="lstsq and pinv take singular matrices; or add a multiple of the identity")


def inv(a: Any) -> Any:
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError as error:
        raise _singular(a) from error


def solve(a: Any, b: Any) -> Any:
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError as error:
        raise _singular(a) from error


def solve_triangular(a: Any, b: Any, lower: bool, unit_diagonal: bool) -> Any:
    """Substitution, which LAPACK's elimination comes to on what is upper triangular already."""
    n = a.shape[-1]
    diagonal = np.eye(n, dtype=np.bool_)
    if unit_diagonal:
        a = np.where(diagonal, a.dtype.type(1), a)
    elif (zero := (np.diagonal(a, axis1=-2, axis2=-1) == 0).any(-1)).any():
        raise LinAlgError(f"{_which(zero)} is singular: it has a zero on its diagonal")
    if lower:
        a, b = a[..., ::-1, ::-1], b[..., ::-1, :]
    x = np.array(np.broadcast_to(b, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])))
    for stop in range(n, 0, -BLOCK):
        rows, known = slice(max(0, stop - BLOCK), stop), slice(stop, n)
        rest = x[..., rows, :] - a[..., rows, known] @ x[..., known, :]
        x[..., rows, :] = np.linalg.solve(np.triu(a[..., rows, rows]), rest)
    return x[..., ::-1, :] if lower else x


def cholesky(a: Any) -> Any:
    a = hermitian(a)
    try:
        if np.isfinite(factor := np.linalg.cholesky(a)).all():
            return factor
        raise np.linalg.LinAlgError
    except np.linalg.LinAlgError as error:
        bad = np.array([not _definite(a[i]) for i in np.ndindex(a.shape[:-2])]).reshape(a.shape[:-2])
        raise LinAlgError(f"{_which(bad)} is not positive definite",
                          hint="add a small multiple of the identity, or take eigh") from error


def _definite(a: Any) -> bool:
    try:
        return bool(np.isfinite(np.linalg.cholesky(a)).all())
    except np.linalg.LinAlgError:
        return False


def qr(a: Any, mode: str) -> tuple[Any, Any]:
    q, r = np.linalg.qr(a, mode)  # type: ignore[call-overload]
    return q, r


def _converged(f: Callable[..., Any], a: Any, *options: Any) -> Any:
    try:
        return f(a, *options)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(str(error), hint="scale the matrix") from error


def finite(a: Any, values: str) -> Any:
    """Check what is found by iteration: LAPACK refuses NaN, and may never end with infinities."""
    bad = ~np.isfinite(a).all((-2, -1))
    if bad.any():
        raise LinAlgError(f"{_which(bad)} has no {values}: it holds NaN or infinities")
    return a


def eigh(a: Any) -> tuple[Any, Any]:
    w, v = _converged(np.linalg.eigh, finite(hermitian(a), "eigenvalues"))
    return w, settled(v) if is_complex(v.dtype) else v


def eigvalsh(a: Any) -> Any:
    return _converged(np.linalg.eigvalsh, finite(hermitian(a), "eigenvalues"))


def eig(a: Any) -> tuple[Any, Any]:
    """Vectors of length 1 with a phase of their own: of those of real matrices LAPACK leaves the sign to chance."""
    w, v = _converged(np.linalg.eig, finite(a, "eigenvalues"))
    return w.astype(complex_of(a.dtype), copy=False), settled(v.astype(complex_of(a.dtype), copy=False))


def eigvals(a: Any) -> Any:
    return _converged(np.linalg.eigvals, finite(a, "eigenvalues")).astype(complex_of(a.dtype), copy=False)


def svd(a: Any, full_matrices: bool) -> tuple[Any, Any, Any]:
    u, s, vh = _converged(np.linalg.svd, finite(a, "singular values"), full_matrices)
    if not is_complex(u.dtype):
        return u, s, vh
    k = s.shape[-1]
    back = phases(u[..., :k]).swapaxes(-1, -2).conj()
    return (np.concatenate([settled(u[..., :k]), u[..., k:]], -1), s,
            np.concatenate([turned(vh[..., :k, :], back), vh[..., k:, :]], -2))


def svdvals(a: Any) -> Any:
    return _converged(np.linalg.svdvals, finite(a, "singular values"))


def det(a: Any) -> Any:
    return np.asarray(np.linalg.det(a))


def slogdet(a: Any) -> tuple[Any, Any]:
    sign, logarithm = np.linalg.slogdet(a)
    return np.asarray(sign), np.asarray(logarithm)


def cofactor(a: Any) -> Any:
    """det(U) det(Vᴴ) times U diag(products of the other singular values) Vᴴ, conjugated: right for singular matrices
    too."""
    known = np.isfinite(a).all((-2, -1))[..., None, None]
    u, s, vh = np.linalg.svd(np.where(known, a, a.dtype.type(0)))
    turns = np.linalg.det(u) * np.linalg.det(vh)
    turns = (turns / np.abs(turns))[..., None, None].astype(a.dtype)
    one = np.ones((*s.shape[:-1], 1), s.dtype)
    before = np.cumprod(np.concatenate([one, s], -1), -1)[..., :-1]
    after = np.cumprod(np.concatenate([one, s[..., ::-1]], -1), -1)[..., -2::-1]
    return np.where(known, turns * ((u * (before * after)[..., None, :]) @ vh).conj(), a.dtype.type(np.nan))


def lu(a: Any) -> tuple[Any, Any]:
    """Elimination with row exchanges, by blocks of columns, for all matrices of a stack at once."""
    *batch, m, n = a.shape
    factors = np.array(a).reshape(prod(batch), m, n)
    order = np.tile(np.arange(m), (len(factors), 1))
    for start in range(0, min(m, n), BLOCK):
        stop = min(start + BLOCK, m, n)
        for column in range(start, stop):
            _eliminate(factors, order, column, stop)
        block, right, below = slice(start, stop), slice(stop, n), slice(stop, m)
        factors[:, block, right] = solve_triangular(factors[:, block, block], factors[:, block, right], True, True)
        factors[:, below, right] -= factors[:, below, block] @ factors[:, block, right]
    return factors.reshape(a.shape), order.reshape(a.shape[:-1])


def _eliminate(factors: Any, order: Any, k: int, stop: int) -> None:
    """Bring the largest element of column k to its diagonal, and subtract multiples of its row, up to column `stop`."""
    every = np.arange(len(factors))
    largest = k + np.argmax(_sizes(factors[:, k:, k]), axis=1) if len(factors) else every
    for rows in (factors, order):
        rows[every, largest], rows[:, k] = rows[:, k].copy(), rows[every, largest]
    pivot = factors[:, k, k, None]
    factors[:, k + 1 :, k] /= np.where(pivot == 0, factors.dtype.type(1), pivot)
    factors[:, k + 1 :, k + 1 : stop] -= factors[:, k + 1 :, k, None] * factors[:, k, None, k + 1 : stop]


def _sizes(x: Any) -> Any:
    """The magnitude that LAPACK compares: of complex numbers the sum of both parts' magnitudes."""
    return np.abs(x.real) + np.abs(x.imag) if is_complex(x.dtype) else np.abs(x)
