"""Rules of linear algebra: stacks of matrices along leading axes, of float32, float64 or complex numbers."""

from __future__ import annotations

from nnc_core.base import dtype as dt
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.shape.elementwise import broadcast, same_dtype
from nnc_core.type import DimLike, TensorSpec, TupleSpec

LAPACK = (dt.float32, dt.float64, *dt.COMPLEX)
"""The dtypes that matrices are decomposed in."""


def matrix(*xs: TensorSpec) -> TensorSpec:
    """Matrices of one dtype that LAPACK has; gives the first."""
    for x in xs:
        if x.ndim < 2:
            raise ShapeError(f"needs matrices, not {x}", hint="the last two axes are rows and columns; reshape it")
    dtype = same_dtype(*xs)
    if dtype not in LAPACK:
        raise DTypeError(f"needs matrices of float32, float64 or complex numbers, not {dtype}",
                         hint="cast with astype to float32")
    return xs[0]


def square(*xs: TensorSpec) -> TensorSpec:
    """Square matrices of one dtype; gives the first."""
    matrix(*xs)
    for x in xs:
        if x.shape[-2] != x.shape[-1]:
            raise ShapeError(f"needs square matrices, not {x}")
    return xs[0]


def smaller(x: TensorSpec) -> DimLike:
    """The smaller one of rows and columns; ShapeError where names leave it open."""
    m, n = x.shape[-2:]
    if m == n:
        return m
    if isinstance(m, int) and isinstance(n, int):
        return min(m, n)
    raise ShapeError(f"it is not known whether {m} or {n} is smaller", hint="give the dimensions numbers, or one name")


def scalar_of(a: TensorSpec) -> TensorSpec:
    """One number for each square matrix."""
    return TensorSpec(square(a).shape[:-2], a.dtype)


def rank(a: TensorSpec, rtol: float | None) -> TensorSpec:
    smaller(matrix(a))
    return TensorSpec(a.shape[:-2], dt.int64)


def slogdet(a: TensorSpec) -> TupleSpec:
    sign = scalar_of(a)
    return TupleSpec((sign, _real(sign)))


def _real(x: TensorSpec) -> TensorSpec:
    return TensorSpec(x.shape, dt.real_of(x.dtype))


def solve(a: TensorSpec, b: TensorSpec) -> TensorSpec:
    """Square a (..., n, n), right-hand sides b (..., n, k)."""
    matrix(a, b)
    return _solution(square(a), b)


def solve_triangular(a: TensorSpec, b: TensorSpec, lower: bool, unit_diagonal: bool) -> TensorSpec:
    return solve(a, b)


def _solution(a: TensorSpec, b: TensorSpec) -> TensorSpec:
    if a.shape[-2] != b.shape[-2]:
        raise ShapeError(f"{a} has {a.shape[-2]} rows, the right-hand sides {b} have {b.shape[-2]}")
    return TensorSpec((*broadcast(a.shape[:-2], b.shape[:-2]), a.shape[-1], b.shape[-1]), a.dtype)


def pinv(a: TensorSpec, rtol: float | None) -> TensorSpec:
    """(..., n, m) of (..., m, n)."""
    *batch, m, n = matrix(a).shape
    return TensorSpec((*batch, n, m), a.dtype)


def lstsq(a: TensorSpec, b: TensorSpec, rtol: float | None) -> TensorSpec:
    """a (..., m, n), right-hand sides b (..., m, k)."""
    return _solution(matrix(a, b), b)


def qr(a: TensorSpec, mode: str) -> TupleSpec:
    """Q (..., m, k), R (..., k, n), where k is m for "complete" and the smaller of m and n for "reduced"."""
    *batch, m, n = matrix(a).shape
    if mode not in ("reduced", "complete"):
        raise AttributeValueError(f"mode {mode!r} is neither 'reduced' nor 'complete'")
    k = m if mode == "complete" else smaller(a)
    return TupleSpec((TensorSpec((*batch, m, k), a.dtype), TensorSpec((*batch, k, n), a.dtype)))


def lu(a: TensorSpec) -> TupleSpec:
    """Both factors in one matrix like a, and the order of rows: int64 (..., m)."""
    return TupleSpec((matrix(a), TensorSpec(a.shape[:-1], dt.int64)))


def eigenvalues(a: TensorSpec) -> TensorSpec:
    """Eigenvalues of Hermitian matrices, which are real."""
    return TensorSpec(square(a).shape[:-1], dt.real_of(a.dtype))


def eigh(a: TensorSpec) -> TupleSpec:
    return TupleSpec((eigenvalues(a), a))


def complex_eigenvalues(a: TensorSpec) -> TensorSpec:
    return TensorSpec(square(a).shape[:-1], dt.complex_of(a.dtype))


def eig(a: TensorSpec) -> TupleSpec:
    values = complex_eigenvalues(a)
    return TupleSpec((values, TensorSpec(a.shape, values.dtype)))


def schur(a: TensorSpec, output: str) -> TupleSpec:
    """T and Z like a, of complex numbers for the output "complex"."""
    if output not in ("real", "complex"):
        raise AttributeValueError(f"output {output!r} is neither 'real' nor 'complex'")
    factor = TensorSpec(a.shape, dt.complex_of(a.dtype)) if output == "complex" else a
    return TupleSpec((TensorSpec(square(a).shape, factor.dtype), factor))


def hessenberg(a: TensorSpec) -> TupleSpec:
    return TupleSpec((square(a), a))


def singular_values(a: TensorSpec) -> TensorSpec:
    return TensorSpec((*matrix(a).shape[:-2], smaller(a)), dt.real_of(a.dtype))


def svd(a: TensorSpec, full_matrices: bool) -> TupleSpec:
    """U (..., m, m or k), S (..., k), Vh (..., n or k, n), where k is the smaller of m and n."""
    values = singular_values(a)
    *batch, m, n = a.shape
    rows, columns = (m, n) if full_matrices else (values.shape[-1],) * 2
    return TupleSpec((TensorSpec((*batch, m, rows), a.dtype), values, TensorSpec((*batch, columns, n), a.dtype)))


def two_sided(a: TensorSpec, b: TensorSpec, q: TensorSpec) -> TensorSpec:
    """a (..., m, m), b (..., n, n) and q (..., m, n), which the solution is like."""
    square(a, b)
    m, n = matrix(q, a).shape[-2:]
    if m != a.shape[-1] or n != b.shape[-1]:
        raise ShapeError(f"{q} should have {a.shape[-1]} rows, as {a}, and {b.shape[-1]} columns, as {b}")
    return TensorSpec((*broadcast(a.shape[:-2], b.shape[:-2], q.shape[:-2]), m, n), a.dtype)


def riccati(a: TensorSpec, b: TensorSpec, q: TensorSpec, r: TensorSpec) -> TensorSpec:
    """a and q (..., n, n), b (..., n, k), r (..., k, k); the solution is like q."""
    matrix(a, b, q, r)
    n, k = square(a, q).shape[-1], square(r).shape[-1]
    if q.shape[-1] != n or b.shape[-2:] != (n, k):
        raise ShapeError(f"a {a} asks for b of shape (..., {n}, {k}) and q of shape (..., {n}, {n}), not {b} and {q}")
    if k == 0:
        raise ShapeError(f"b {b} has no columns: there is nothing to control", hint="solve_continuous_lyapunov")
    batch = broadcast(*[x.shape[:-2] for x in (a, b, q, r)])
    return TensorSpec((*batch, n, n), a.dtype)
