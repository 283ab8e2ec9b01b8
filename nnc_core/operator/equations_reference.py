"""Matrix equations by Schur decompositions and triangular substitution, on SciPy, in double precision; and the forms.

Sylvester's as in Bartels and Stewart, "Solution of the matrix equation AX + XB = C" (1972); the Riccati equations by
SciPy's solvers.  Stacks are solved one matrix after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnc_core.base.dtype import complex_of
from nnc_core.base.errors import LinAlgError
from nnc_core.base.missing import require
from nnc_core.operator.linalg_reference import finite, hermitian


def _scipy() -> Any:
    return require("scipy.linalg", purpose="solving matrix equations", extra="linalg")


def _each(solve: Callable[..., Any], *xs: Any) -> Any:
    """`solve` for every place of the common stack, on finite numbers in double precision; the third operand is like the
    solution."""
    if not all(np.isfinite(x).all() for x in xs):
        raise LinAlgError("the equation has no solution: a coefficient holds NaN or infinities")
    batch = np.broadcast_shapes(*[x.shape[:-2] for x in xs])
    double = np.complex128 if xs[0].dtype.kind == "c" else np.float64
    wide = [np.broadcast_to(x, (*batch, *x.shape[-2:])).astype(double) for x in xs]
    out = np.empty((*batch, *xs[2].shape[-2:]), xs[2].dtype)
    if out.size:
        for at in np.ndindex(batch):
            out[at] = solve(*[x[at] for x in wide])
    return out


def sylvester(a: Any, b: Any, q: Any) -> Any:
    """X of a X + X b = q."""
    return _each(_sylvester, a, b, q)


def _sylvester(a: Any, b: Any, q: Any) -> Any:
    linalg = _scipy()
    (t, u), (s, v) = linalg.schur(a), linalg.schur(b)
    substitute = linalg.lapack.ztrsyl if t.dtype.kind == "c" else linalg.lapack.dtrsyl
    y, scale, info = substitute(t, s, u.conj().T @ q @ v)
    if info != 0:
        raise LinAlgError("the equation has no unique solution: an eigenvalue of a is, or nearly, minus one of b")
    return u @ (y / scale) @ v.conj().T


def stein(a: Any, b: Any, q: Any) -> Any:
    """X of X = a X b + q."""
    return _each(_stein, a, b, q)


def _stein(a: Any, b: Any, q: Any) -> Any:
    """With a = U T Uᴴ and b = V S Vᴴ, Y = Uᴴ X V has the columns (1 - S_kk T) y_k = c_k + T (y_1 S_1k + ...)."""
    linalg = _scipy()
    (t, u), (s, v) = linalg.schur(a, "complex"), linalg.schur(b, "complex")
    y, one = u.conj().T @ q @ v, np.eye(len(t))
    products = np.abs(np.outer(np.diag(t), np.diag(s)))
    if (np.abs(1 - np.outer(np.diag(t), np.diag(s))) <= 4 * np.finfo(np.float64).eps * (1 + products)).any():
        raise LinAlgError("the equation has no unique solution: an eigenvalue of a times one of b is, or nearly, 1")
    for k in range(len(s)):
        y[:, k] = linalg.solve_triangular(one - s[k, k] * t, y[:, k] + t @ (y[:, :k] @ s[:k, k]))
    x = u @ y @ v.conj().T
    return x if q.dtype.kind == "c" else x.real


def care(a: Any, b: Any, q: Any, r: Any) -> Any:
    """The stabilising X of aᴴ X + X a - X b r⁻¹ bᴴ X + q = 0."""
    return _each(_riccati("solve_continuous_are"), a, b, hermitian(q), hermitian(r))


def dare(a: Any, b: Any, q: Any, r: Any) -> Any:
    """The stabilising X of aᴴ X a - X - aᴴ X b (r + bᴴ X b)⁻¹ bᴴ X a + q = 0."""
    return _each(_riccati("solve_discrete_are"), a, b, hermitian(q), hermitian(r))


def _riccati(name: str) -> Callable[..., Any]:
    def solve(a: Any, b: Any, q: Any, r: Any) -> Any:
        try:
            return getattr(_scipy(), name)(a, b, q, r)
        except ValueError as error:  # among them NumPy's LinAlgError
            raise LinAlgError(f"the equation has no stabilising solution: {error}",
                              hint="(a, b) should be stabilisable, (a, q) detectable, r invertible") from error

    return solve


# ---- triangular forms
def schur(a: Any, output: str) -> tuple[Any, Any]:
    """T and Z with Z T Zᴴ = a."""
    dtype = complex_of(a.dtype) if output == "complex" else a.dtype
    return _pairs(lambda x: _scipy().schur(x, output), finite(a, "Schur form"), dtype)


def hessenberg(a: Any) -> tuple[Any, Any]:
    """H and Q with Q H Qᴴ = a."""
    return _pairs(lambda x: _scipy().hessenberg(x, calc_q=True), finite(a, "Hessenberg form"), a.dtype)


def _pairs(f: Callable[[Any], Any], a: Any, dtype: Any) -> tuple[Any, Any]:
    """Two results like a for each matrix of a stack."""
    first, second = np.empty(a.shape, dtype), np.empty(a.shape, dtype)
    if first.size:
        for at in np.ndindex(a.shape[:-2]):
            first[at], second[at] = f(a[at])
    return first, second
