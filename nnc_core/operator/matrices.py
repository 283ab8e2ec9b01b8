"""Small matrix algebra for the derivatives of linear algebra, on any kind of value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import is_complex
from nnc_core.operator.declare import V
from nnc_core.type import DimLike

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def t(F: Namespace[V], x: V) -> V:
    """Transposed matrices."""
    n = x.ndim
    return F.permute(x, axes=(*range(n - 2), n - 1, n - 2))


def mm(F: Namespace[V], *xs: Any) -> Any:
    """The product of matrices, from the left."""
    product = xs[0]
    for x in xs[1:]:
        product = F.matmul(product, x)
    return product


def h(F: Namespace[V], x: V) -> V:
    """Transposed matrices, conjugated if they are complex: adjoint ones."""
    return F.conjugate(t(F, x))


def hn(F: Namespace[V], a: V, b: V) -> V:
    """aᴴ b"""
    return F.matmul(F.conjugate(a), b, transpose_a=True)


def nh(F: Namespace[V], a: V, b: V) -> V:
    """a bᴴ"""
    return F.matmul(a, F.conjugate(b), transpose_b=True)


def hermitian(F: Namespace[V], x: V) -> V:
    """(x + xᴴ) / 2, of real matrices the symmetric part."""
    return F.multiply(F.add(x, h(F, x)), 0.5)


def real(F: Namespace[V], x: V) -> V:
    """The real part of complex numbers, real ones as they are."""
    return F.real(x) if is_complex(x.dtype) else x


def imaginary(F: Namespace[V], x: V) -> V:
    """i times real numbers."""
    return F.complex_(F.zeros_like(x), x)


def added(F: Namespace[V], *terms: V | None) -> Any:
    """The sum of those that are not None; None if all are."""
    total = None
    for term in terms:
        total = term if total is None else total if term is None else F.add(total, term)
    return total


def by_row(F: Namespace[V], v: V) -> V:
    """Numbers (..., n) as a column: factors of rows."""
    return F.reshape(v, shape=(*v.shape, 1))


def by_column(F: Namespace[V], v: V) -> V:
    """Numbers (..., n) as a row: factors of columns."""
    return F.reshape(v, shape=(*v.shape[:-1], 1, v.shape[-1]))


def _indices(F: Namespace[V], x: V) -> tuple[V, V]:
    rows, columns = x.shape[-2:]
    return F.reshape(F.arange(size=rows, dtype=dt.int64), shape=(rows, 1)), F.arange(size=columns, dtype=dt.int64)


def diagonal_mask(F: Namespace[V], x: V) -> V:
    """True where the row is the column, for matrices like x."""
    return F.equal(*_indices(F, x))


def lower(F: Namespace[V], x: V, strict: bool = False) -> V:
    """The lower triangle, zeros above; `strict`: without the diagonal."""
    compare = F.greater if strict else F.greater_equal
    return F.where(compare(*_indices(F, x)), x, 0)


def upper(F: Namespace[V], x: V) -> V:
    """The upper triangle with the diagonal, zeros below."""
    return F.where(F.less_equal(*_indices(F, x)), x, 0)


def half_lower(F: Namespace[V], x: V) -> V:
    """The lower triangle with half of the diagonal."""
    return lower(F, F.where(diagonal_mask(F, x), F.multiply(x, 0.5), x))


def off_diagonal(F: Namespace[V], x: V) -> V:
    """Zeros on the diagonal."""
    return F.where(diagonal_mask(F, x), 0, x)


def diagonal(F: Namespace[V], x: V) -> V:
    """The diagonal of square matrices: (..., n)."""
    return F.sum(F.where(diagonal_mask(F, x), x, 0), axis=(x.ndim - 1,))


def diagonal_matrix(F: Namespace[V], v: V) -> V:
    """Matrices (..., n, n) of diagonals (..., n)."""
    n = v.shape[-1]
    square = F.broadcast_to(by_column(F, v), shape=(*v.shape[:-1], n, n))
    return F.where(diagonal_mask(F, square), square, 0)


def real_diagonal(F: Namespace[V], x: V) -> V:
    """The imaginary parts of the diagonal dropped."""
    return F.where(diagonal_mask(F, x), F.cast(F.real(x), dtype=x.dtype), x) if is_complex(x.dtype) else x


def trace(F: Namespace[V], x: V) -> V:
    """(..., 1, 1): the sum of the diagonal."""
    return F.sum(F.where(diagonal_mask(F, x), x, 0), axis=(x.ndim - 2, x.ndim - 1), keepdims=True)


def inner(F: Namespace[V], a: V, b: V) -> V:
    """(..., 1, 1): the sum of the elements of a, conjugated, times those of b."""
    return F.sum(F.multiply(F.conjugate(a), b), axis=(a.ndim - 2, a.ndim - 1), keepdims=True)


def part(F: Namespace[V], x: V, rows: DimLike, columns: DimLike) -> V:
    """The first rows and columns."""
    lead = x.shape[:-2]
    if (rows, columns) == x.shape[-2:]:
        return x
    return F.slice(x, start=(0,) * x.ndim, stop=(*lead, rows, columns), step=(1,) * x.ndim)


def columns_from(F: Namespace[V], x: V, start: DimLike) -> V:
    """The columns from `start` on."""
    return F.slice(x, start=(*(0,) * (x.ndim - 1), start), stop=x.shape, step=(1,) * x.ndim)
