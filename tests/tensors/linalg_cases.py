"""Functions of nnc.linalg, and of NumPy's and SciPy's, on the same matrices: of real and of complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

import nnc_core as nnc

L, N = nnc.linalg, np.linalg
Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """nnc's function, the other's, and their operands."""

    f: Callable[..., Any]
    reference: Callable[..., Any]
    given: tuple[Array, ...]


class Operands:
    """Matrices that functions of linear algebra are held to: A is well-conditioned, S positive definite, W tall."""

    def __init__(self, complex_: bool) -> None:
        self.rng = np.random.default_rng(3 if complex_ else 0)
        self.complex = complex_
        self.A = self.draw(2, 4, 4) + np.diag([2.0, 2.5, 3.0, 3.5])
        self.S = self.A @ adjoint(self.A)
        self.W, self.B, self.V = self.draw(2, 5, 3), self.draw(4, 2), self.draw(4)

    def draw(self, *shape: int) -> Array:
        real = self.rng.uniform(-1, 1, shape)
        return np.asarray(real + 1j * self.rng.uniform(-1, 1, shape) if self.complex else real)


def adjoint(x: Any) -> Any:
    return x.swapaxes(-1, -2).conj()


def each(f: Callable[..., Any], *xs: Any) -> Any:
    """A function of SciPy's for every matrix of a stack."""
    results = [f(*[x[i] for x in xs]) for i in range(2)]
    return [np.stack(r) for r in zip(*results, strict=True)] if isinstance(results[0], tuple) else np.stack(results)


def norms(L: Any, x: Any) -> list[Any]:
    matrix = [L.matrix_norm(x, ord=o, keepdims=k) for o in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
              for k in (False, True)]
    vector = [L.vector_norm(x, axis=a, ord=o, keepdims=k) for o in (0, 1, 2, 3, 0.5, -1, np.inf, -np.inf)
              for a in (0, (2, 0), None) for k in (False, True)]
    both = [L.norm(x, o, (2, 0), k) for o in (None, "fro", "nuc", 1, -2, np.inf) for k in (False, True)]
    return matrix + vector + both + [L.norm(x), L.norm(x, keepdims=True), L.norm(x[0], 1), L.norm(x, 1, -1, True)]


def multiplied(t: Any, z: Any) -> Any:
    """Of a triangular form, whose vectors may have any phase, the matrix."""
    return z @ t @ nnc.conj(nnc.matrix_transpose(z))


def cases(o: Operands) -> dict[str, Case]:
    """Those of real and of complex numbers alike."""
    A, S, W, B, V = o.A, o.S, o.W, o.B, o.V
    table: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Array, ...]]] = {
        "block_diag": (lambda x, b, v: [L.block_diag(x, b, v), L.block_diag(v)],
                       lambda x, b, v: [scipy.linalg.block_diag(x, b, v), scipy.linalg.block_diag(v)], (A[0], B, V)),
        "cholesky": (L.cholesky, N.cholesky, (S,)),
        "cholesky, upper": (lambda x: L.cholesky(x, upper=True), lambda x: N.cholesky(x, upper=True), (S,)),
        "cholesky_solve": (lambda x, b: L.cholesky_solve(L.cholesky(x), b), N.solve, (S, B)),
        "cholesky_solve, upper": (lambda x, b: L.cholesky_solve(L.cholesky(x, upper=True), b, upper=True), N.solve,
                                  (S, V)),
        "circulant": (L.circulant, scipy.linalg.circulant, (V,)),
        "companion": (L.companion, scipy.linalg.companion, (V,)),
        "cond": (lambda x: [L.cond(x, p) for p in (None, 1, -1, 2, -2, np.inf, -np.inf, "fro")],
                 lambda x: [np.stack([N.cond(m, p) for m in x]) for p in (None, 1, -1, 2, -2, np.inf, -np.inf, "fro")],
                 (A,)),
        "cross": (L.cross, N.cross, (W, W[::-1].copy())),
        "det": (L.det, N.det, (A,)),
        "diagonal": (lambda x: L.diagonal(x, offset=-1), lambda x: N.diagonal(x, offset=-1), (W,)),
        "eigvalsh": (L.eigvalsh, N.eigvalsh, (S,)),
        "expm": (L.expm, scipy.linalg.expm, (A,)),
        "hankel": (lambda v, w: [L.hankel(v), L.hankel(v, w), L.hankel(w, v)],
                   lambda v, w: [scipy.linalg.hankel(v), scipy.linalg.hankel(v, w), scipy.linalg.hankel(w, v)],
                   (V, V[:3])),
        "hessenberg": (L.hessenberg, lambda x: each(lambda m: scipy.linalg.hessenberg(m, calc_q=True), x), (A,)),
        "inv": (L.inv, N.inv, (A,)),
        "lq": (L.lq, lambda x: tuple(adjoint(y) for y in reversed(N.qr(adjoint(x)))), (W,)),
        "lstsq": (L.lstsq, N.lstsq, (W[0], o.draw(5, 2))),
        "lstsq, a vector": (L.lstsq, N.lstsq, (W[0], o.draw(5))),
        "lu": (L.lu, lambda x: each(lambda m: tuple(y.astype(m.dtype) for y in scipy.linalg.lu(m)), x), (W,)),
        "lu_solve": (lambda x, b: L.lu_solve(L.lu_factor(x), b), N.solve, (A, B)),
        "lu_solve, a vector": (lambda x, b: L.lu_solve(L.lu_factor(x), b), N.solve, (A, V)),
        "matmul": (L.matmul, N.matmul, (A, B)),
        "matrix_power": (lambda x: [L.matrix_power(x, n) for n in (-2, 0, 1, 5, 6)],
                         lambda x: [N.matrix_power(x, n) for n in (-2, 0, 1, 5, 6)], (A,)),
        "matrix_rank": (L.matrix_rank, N.matrix_rank, (np.stack([A[0], np.ones((4, 4)), np.zeros((4, 4))]),)),
        "matrix_rank, tolerances": (lambda x: L.matrix_rank(x, rtol=np.array([0.9, 0.1])),
                                    lambda x: N.matrix_rank(x, rtol=np.array([0.9, 0.1])), (A,)),
        "matrix_rank of a vector": (L.matrix_rank, N.matrix_rank, (V,)),
        "matrix_transpose": (L.matrix_transpose, N.matrix_transpose, (W,)),
        "multi_dot": (lambda x, b: L.multi_dot([x, x, b]), lambda x, b: N.multi_dot([x, x, b]), (A[0], B)),
        "norms": (lambda x: norms(L, x), lambda x: norms(N, x), (W,)),
        "outer": (L.outer, N.outer, (V, V)),
        "pinv": (lambda x: [L.pinv(x), L.pinv(x, rtol=0.7)], lambda x: [N.pinv(x), N.pinv(x, rtol=0.7)], (W,)),
        "polar": (L.polar, lambda x: each(scipy.linalg.polar, x), (W,)),
        "polar, left": (lambda x: L.polar(x, "left"), lambda x: each(lambda m: scipy.linalg.polar(m, "left"), x), (W,)),
        "polar, wide": (L.polar, lambda x: each(scipy.linalg.polar, x), (W.swapaxes(-1, -2).copy(),)),
        "qr": (L.qr, N.qr, (W,)),
        "qr, complete": (lambda x: L.qr(x, mode="complete"), lambda x: N.qr(x, mode="complete"), (W,)),
        "schur": (lambda x: multiplied(*L.schur(x)), lambda x: x, (A,)),
        "schur, complex": (lambda x: multiplied(*L.schur(x, "complex")), lambda x: x + 0j, (A,)),
        "slogdet": (L.slogdet, N.slogdet, (A - 3 * np.eye(4),)),
        "solve": (L.solve, N.solve, (A, B)),
        "solve, a vector": (L.solve, N.solve, (A, V)),
        "solve, broadcast": (L.solve, N.solve, (A[0], W[:, :4])),
        "solve_triangular": (lambda x, b: L.solve_triangular(x, b, lower=True),
                             lambda x, b: N.solve(np.tril(x), b), (A, B)),
        "solve_triangular, unit": (lambda x, b: L.solve_triangular(x, b, unit_diagonal=True),
                                   lambda x, b: N.solve(np.triu(x, 1) + np.eye(4), b), (A, V)),
        "solve_sylvester": (L.solve_sylvester, lambda *xs: each(scipy.linalg.solve_sylvester, *xs),
                            (A, S[:, :3, :3], W[:, :4])),
        "solve_continuous_lyapunov": (L.solve_continuous_lyapunov,
                                      lambda a, q: each(scipy.linalg.solve_continuous_lyapunov, a, q), (A, S)),
        "solve_discrete_lyapunov": (L.solve_discrete_lyapunov,
                                    lambda a, q: each(scipy.linalg.solve_discrete_lyapunov, a, q), (A / 8, S)),
        "solve_continuous_are": (L.solve_continuous_are, lambda *xs: each(scipy.linalg.solve_continuous_are, *xs),
                                 (A, W[:, :4], S, S[:, :3, :3])),
        "solve_discrete_are": (L.solve_discrete_are, lambda *xs: each(scipy.linalg.solve_discrete_are, *xs),
                               (A / 4, W[:, :4], S, S[:, :3, :3])),
        "svdvals": (L.svdvals, N.svdvals, (W,)),
        "tensordot": (L.tensordot, N.tensordot, (W, W.transpose(1, 2, 0).copy())),
        "tensorinv": (L.tensorinv, N.tensorinv, (A[0].reshape(2, 2, 4, 1),) ),
        "tensorsolve": (lambda a, b: L.tensorsolve(a, b, axes=(0,)), lambda a, b: N.tensorsolve(a, b, axes=(0,)),
                        (A[0].reshape(4, 2, 2), B[:2])),
        "toeplitz": (lambda v, w: [L.toeplitz(v), L.toeplitz(v, w), L.toeplitz(w, v)],
                     lambda v, w: [scipy.linalg.toeplitz(v), scipy.linalg.toeplitz(v, w), scipy.linalg.toeplitz(w, v)],
                     (V, V[:3])),
        "trace": (lambda x: L.trace(x, offset=1), lambda x: N.trace(x, offset=1), (W,)),
        "vecdot": (L.vecdot, N.vecdot, (W, W)),
    }  # fmt: skip
    return {name: Case(*row) for name, row in table.items()}


REAL, COMPLEX = Operands(complex_=False), Operands(complex_=True)
CASES: dict[str, dict[str, Case]] = {
    "real": cases(REAL) | {
        "eig": Case(L.eig, N.eig, (REAL.A + 1j * REAL.A[::-1],)),
        "eigvals": Case(L.eigvals, N.eigvals, (REAL.A - 1j * REAL.A[::-1],)),
        "eigh": Case(L.eigh, N.eigh, (REAL.S,)),
        "logdet": Case(L.logdet, lambda x: N.slogdet(x)[1], (REAL.S,)),
        "svd": Case(L.svd, N.svd, (REAL.W,)),
        "svd, thin": Case(lambda x: L.svd(x, full_matrices=False), lambda x: N.svd(x, full_matrices=False), (REAL.W,)),
    },
    "complex": cases(COMPLEX) | {
        "eig, values": Case(lambda x: L.eig(x).eigenvalues, lambda x: N.eig(x).eigenvalues, (COMPLEX.A,)),
        "eigvals": Case(L.eigvals, N.eigvals, (COMPLEX.A,)),
        "eigh, values": Case(lambda x: L.eigh(x).eigenvalues, lambda x: N.eigh(x).eigenvalues, (COMPLEX.S,)),
        "logdet": Case(lambda x: nnc.exp(L.logdet(x)), N.det, (COMPLEX.A,)),
        "svd, values": Case(lambda x: L.svd(x).S, lambda x: N.svd(x).S, (COMPLEX.W,)),
    },
}  # fmt: skip
"""By kind of numbers, by name.  The phase of a complex vector is LAPACK's choice."""
