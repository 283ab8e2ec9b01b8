"""Decompositions of matrices, which lie along the last two axes."""

from __future__ import annotations

from typing import NamedTuple

from nnc_core.base.dtype import real_of
from nnc_core.operator.matrices import diagonal_mask, h, lower, part, t, upper
from nnc_core.shape import linalg as rule
from nnc_core.values.arguments import ArrayLike, as_value, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.modes import use_device
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = [
    "EighResult", "LQResult", "LUFactors", "LUResult", "QRResult", "SVDResult", "cholesky", "eigh", "eigvalsh", "lq",
    "lu", "lu_factor", "qr", "svd", "svdvals",
]  # fmt: skip


class EighResult(NamedTuple):
    """Eigenvalues (..., n), real and rising, and orthonormal eigenvectors (..., n, n) in columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """Orthonormal columns and an upper triangle."""

    Q: Tensor
    R: Tensor


class LQResult(NamedTuple):
    """A lower triangle and orthonormal rows."""

    L: Tensor
    Q: Tensor


class SVDResult(NamedTuple):
    """Orthonormal columns, singular values falling, orthonormal rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class LUResult(NamedTuple):
    """A permutation matrix, a lower triangle with ones on its diagonal, an upper triangle."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactors(NamedTuple):
    """L below the diagonal of one matrix and U above; row i of L U is row permutation[i] of x."""

    lu: Tensor
    permutation: Tensor


def results(v: Value) -> list[Tensor]:
    """The results of an operator that has several."""
    return [Tensor(part) for part in F.picks(v)]


@by_shapes
@names_itself
def cholesky(x: ArrayLike, /, *, upper: bool = False) -> Tensor:
    """Lower triangles L with L Lᴴ = x, or upper ones U with Uᴴ U = x.

    x (..., n, n) is Hermitian and positive definite (LinAlgError otherwise); of another matrix the Hermitian part
    (x + xᴴ) / 2 is taken, to which the gradient belongs.
    """
    factor = F.cholesky(as_value(x))
    return Tensor(h(F, factor) if upper else factor)


@by_shapes
@names_itself
def eigh(x: ArrayLike, /) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices (..., n, n); of others the Hermitian part is taken.

    Of a complex eigenvector the largest component is real.  The eigenvectors of equal eigenvalues have no derivative:
    it is NaN or infinite.  Eigenvalues alone: eigvalsh.  LinAlgError if x holds NaN or infinities.
    """
    return EighResult(*results(F.eigh(as_value(x))))


@by_shapes
@names_itself
def eigvalsh(x: ArrayLike, /) -> Tensor:
    """Eigenvalues (..., n) of Hermitian matrices (..., n, n), rising; of others the Hermitian part is taken."""
    return Tensor(F.eigvalsh(as_value(x)))


@by_shapes
@names_itself
def qr(x: ArrayLike, /, *, mode: str = "reduced") -> QRResult:
    """Q R = x (..., m, n): Q (..., m, k) and R (..., k, n), where k is the smaller of m and n, or m if `mode` is
    "complete".  The diagonal of R is real.

    Gradients need as many independent first columns as there are rows in R (LinAlgError otherwise); the columns that
    "complete" fills up Q with have none.
    """
    return QRResult(*results(F.qr(as_value(x), mode=mode)))


@by_shapes
@names_itself
def lq(x: ArrayLike, /, *, mode: str = "reduced") -> LQResult:
    """L Q = x (..., m, n): L (..., m, k) and Q (..., k, n), where k is the smaller of m and n, or n if `mode` is
    "complete"; else as qr."""
    q, r = F.picks(F.qr(h(F, matrices(x)), mode=mode))
    return LQResult(Tensor(h(F, r)), Tensor(h(F, q)))


def matrices(x: ArrayLike) -> Value:
    """A value with rows and columns."""
    v = as_value(x)
    if v.ndim < 2:
        rule.matrix(v.spec)
    return v


@by_shapes
@names_itself
def svd(x: ArrayLike, /, *, full_matrices: bool = True) -> SVDResult:
    """U diag(S) Vh = x (..., m, n): U (..., m, k), S (..., k) and Vh (..., k, n), where k is the smaller of m and n;
    with `full_matrices` U is (..., m, m) and Vh (..., n, n).

    Of a complex column of U the largest component is real; the singular values are real.  The vectors of equal singular
    values have no derivative, it is NaN or infinite; nor have those that fill up U or Vh, which is a GradientError.
    Singular values alone: svdvals.  LinAlgError if x holds NaN or infinities.
    """
    return SVDResult(*results(F.svd(as_value(x), full_matrices=full_matrices)))


@by_shapes
@names_itself
def svdvals(x: ArrayLike, /) -> Tensor:
    """Singular values (..., k) of matrices (..., m, n), falling; k is the smaller of m and n."""
    return Tensor(F.svdvals(as_value(x)))


@by_shapes
@names_itself
def lu_factor(x: ArrayLike, /) -> LUFactors:
    """Both factors of x (..., m, n) in one matrix, and the order of rows, int64 (..., m): what lu_solve takes.

    The order is a permutation of the rows, not LAPACK's list of exchanges.
    """
    return LUFactors(*results(F.lu(as_value(x))))


@by_shapes
@names_itself
def lu(x: ArrayLike, /) -> LUResult:
    """P L U = x (..., m, n): P (..., m, m), L (..., m, k) and U (..., k, n), where k is the smaller of m and n."""
    factors, order = F.picks(F.lu(as_value(x)))
    m, n = factors.shape[-2:]
    k = rule.smaller(factors.spec)
    with use_device(factors.stack):
        left, right = part(F, factors, m, k), part(F, factors, k, n)
        ones = F.cast(diagonal_mask(F, left), dtype=left.dtype)
        p = F.cast(F.one_hot(order, depth=m, dtype=real_of(left.dtype)), dtype=left.dtype)
        return LUResult(Tensor(t(F, p)), Tensor(F.add(lower(F, left, strict=True), ones)), Tensor(upper(F, right)))
