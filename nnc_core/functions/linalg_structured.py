"""Matrices of a structure, made of vectors and blocks, with the names of scipy.linalg; and what is made of an SVD."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nnc_core.base.dtype import int64
from nnc_core.base.errors import AttributeValueError, OperandError, ShapeError
from nnc_core.functions.constants import beside, constant_beside
from nnc_core.functions.linalg_norms import floats
from nnc_core.functions.pieces import cut
from nnc_core.functions.reduction import as_dtype, as_inexact
from nnc_core.operator.matrices import by_column, h, mm
from nnc_core.type import promote
from nnc_core.values.arguments import ArrayLike, as_value, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["PolarResult", "block_diag", "circulant", "companion", "hankel", "polar", "toeplitz"]


class PolarResult(NamedTuple):
    """A unitary and a positive semidefinite matrix."""

    U: Tensor
    P: Tensor


def _vector(v: Value) -> Value:
    if v.ndim != 1:
        raise ShapeError(f"{v.spec} is no vector")
    return v


def _joined(*values: Value) -> Value:
    dtype = values[0].dtype
    for v in values[1:]:
        dtype = promote(dtype, v.dtype)
    return F.concat(*[as_dtype(v, dtype) for v in values], axis=0)


def _rows_and_columns(v: Value, m: int, n: int) -> tuple[Value, Value]:
    """(m, 1) and (n): the index of each row and of each column of a matrix beside v."""
    with beside(v):
        return F.reshape(F.arange(size=m, dtype=int64), shape=(m, 1)), F.arange(size=n, dtype=int64)


@by_shapes
@names_itself
def toeplitz(c: ArrayLike, r: ArrayLike | None = None, /) -> Tensor:
    """The matrix with the first column c whose diagonals are constant; its first row is r, of which the first element
    is not read, or c conjugated."""
    column, *given = (_vector(v) for v in as_values(*([c] if r is None else [c, r])))
    row = given[0] if given else F.conjugate(column)
    m, n = column.spec.static_shape[0], row.spec.static_shape[0]
    places = F.subtract(*_rows_and_columns(column, m, n))
    places = F.where(F.greater_equal(places, 0), places, F.subtract(m, places))
    return Tensor(F.take(_joined(column, row), places, axis=0))


@by_shapes
@names_itself
def circulant(c: ArrayLike, /) -> Tensor:
    """The square matrix with the first column c, each further one turned down by one."""
    v = _vector(as_value(c))
    n = v.spec.static_shape[0]
    places = F.remainder(F.subtract(*_rows_and_columns(v, n, n)), max(n, 1))
    return Tensor(F.take(v, places, axis=0))


@by_shapes
@names_itself
def hankel(c: ArrayLike, r: ArrayLike | None = None, /) -> Tensor:
    """The matrix with the first column c whose diagonals from the left below to the right above are constant; its last
    row is r, of which the first element is not read, or zeros."""
    column, *given = (_vector(v) for v in as_values(*([c] if r is None else [c, r])))
    row = given[0] if given else F.zeros_like(column)
    m, n = column.spec.static_shape[0], row.spec.static_shape[0]
    rest = row if n == 0 else cut(row, 0, 1, n)
    return Tensor(F.take(_joined(column, rest), F.add(*_rows_and_columns(column, m, n)), axis=0))


@by_shapes
@names_itself
def companion(a: ArrayLike, /) -> Tensor:
    """The matrix whose eigenvalues are the roots of the polynomial with the coefficients a, the highest power first."""
    v = as_inexact(_vector(as_value(a)))
    n = v.spec.static_shape[0] - 1
    if n < 1:
        raise ShapeError(f"the coefficients {v.spec} have no companion", hint="two or more")
    row = F.reshape(F.negative(F.divide(cut(v, 0, 1, n + 1), cut(v, 0, 0, 1))), shape=(1, n))
    return Tensor(F.concat(row, constant_beside(v, np.eye(n - 1, n), v.dtype), axis=0))


@by_shapes
@names_itself
def block_diag(*arrays: ArrayLike) -> Tensor:
    """The matrices one after the other along the diagonal, zeros elsewhere; vectors are rows, numbers matrices of one
    element."""
    if not arrays:
        raise OperandError("no matrices", hint="give one or more")
    values = [F.reshape(v, shape=(*(1,) * (2 - v.ndim), *v.shape)) if v.ndim < 2 else v for v in as_values(*arrays)]
    for v in values:
        if v.ndim != 2:
            raise ShapeError(f"{v.spec} is no matrix")
    columns = sum(v.spec.static_shape[1] for v in values)
    rows, before = [], 0
    for v in values:
        n = v.spec.static_shape[1]
        rows.append(F.pad(v, low=(0, before), high=(0, columns - before - n), interior=(0, 0)))
        before += n
    return Tensor(_joined(*rows))


@by_shapes
@names_itself
def polar(x: ArrayLike, /, side: str = "right") -> PolarResult:
    """U P = x (..., m, n), or P U = x for the side "left": U has orthonormal columns (rows, if there are fewer), P is
    Hermitian and positive semidefinite.

    Gradients are those of singular vectors: NaN where singular values are equal.
    """
    if side not in ("right", "left"):
        raise AttributeValueError(f"side {side!r} is neither 'right' nor 'left'")
    u, s, vh = F.picks(F.svd(floats(x), full_matrices=False))
    scaled = F.multiply(h(F, vh), by_column(F, s)) if side == "right" else F.multiply(u, by_column(F, s))
    return PolarResult(Tensor(mm(F, u, vh)), Tensor(mm(F, scaled, vh if side == "right" else h(F, u))))
