"""Eigenvalues and triangular forms of general square matrices, which lie along the last two axes."""

from __future__ import annotations

from typing import NamedTuple

from nnc_core.functions.linalg_decompositions import results
from nnc_core.values.arguments import ArrayLike, as_value, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor

__all__ = ["EigResult", "HessenbergResult", "SchurResult", "eig", "eigvals", "hessenberg", "schur"]


class EigResult(NamedTuple):
    """Eigenvalues (..., n) and eigenvectors (..., n, n) in columns, complex numbers."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SchurResult(NamedTuple):
    """A triangle and a unitary matrix."""

    T: Tensor
    Z: Tensor


class HessenbergResult(NamedTuple):
    """A triangle with one more diagonal, and a unitary matrix."""

    H: Tensor
    Q: Tensor


@by_shapes
@names_itself
def eig(x: ArrayLike, /) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices (..., n, n), in no order, complex also where all are real.

    Vectors have length 1, and their largest components are positive.  Those of equal eigenvalues have no derivative: it
    is NaN or infinite, or LinAlgError where there are fewer vectors than rows.  LinAlgError if x
    holds NaN or infinities.
    """
    return EigResult(*results(F.eig(as_value(x))))


@by_shapes
@names_itself
def eigvals(x: ArrayLike, /) -> Tensor:
    """Eigenvalues (..., n) of square matrices (..., n, n), in no order, complex also where all are real."""
    return Tensor(F.eigvals(as_value(x)))


@by_shapes
@names_itself
def schur(x: ArrayLike, /, output: str = "real") -> SchurResult:
    """Z T Zᴴ = x (..., n, n): T upper triangular, Z unitary.

    T of a real x is real, with blocks of two by two for pairs of eigenvalues, unless `output` is "complex".  It needs
    SciPy, and has no derivative (GradientError).
    """
    return SchurResult(*results(F.schur(as_value(x), output=output)))


@by_shapes
@names_itself
def hessenberg(x: ArrayLike, /) -> HessenbergResult:
    """Q H Qᴴ = x (..., n, n): H is zero below its first subdiagonal, Q unitary.  It needs SciPy, and has no derivative
    (GradientError)."""
    return HessenbergResult(*results(F.hessenberg(as_value(x))))
