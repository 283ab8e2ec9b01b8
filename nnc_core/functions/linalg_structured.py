"""Matrices of a structure, made of vectors and blocks, with the names of scipy.linalg; and what is made of an SVD."""

from __future__ import annotations

from typing import NamedTuple

from nnc_core.base.dtype import int64, is_complex
from nnc_core.base.errors import AttributeValueError, OperandError, ShapeError
from nnc_core.functions.constants import beside
from nnc_core.functions.linalg_norms import floats
from nnc_core.functions.pieces import cut, on_diagonal
from nnc_core.functions.reduction import as_dtype, as_inexact
from nnc_core.operator.matrices import by_column, h, mm
from nnc_core.type import promote
from nnc_core.values.arguments import ArrayLike, as_value, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value
from nnc_core.values.whole import as_whole

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


def _with_diagonals(column: Value, rest: Value, columns: int, step: int) -> Value:
    """The matrix of so many columns whose rows are pieces of one vector, which is `rest` behind the first column: each
    begins an element after the one before (step 1), or before it (step -1), where the column stands backwards."""
    dtype = promote(column.dtype, rest.dtype)
    column, rest = as_dtype(column, dtype), as_dtype(rest, dtype)
    if (found := as_whole("pieces", (column, rest), (columns, step))) is not None:
        return found  # type: ignore[no-any-return]
    rows = column.spec.static_shape[0]
    start = 0 if step > 0 else rows - 1
    vector = F.concat(column if step > 0 else F.flip(column, axes=(0,)), rest, axis=0)
    with beside(column):
        begins = F.reshape(F.arange(size=rows, dtype=int64, start=start, step=step), shape=(rows, 1))
        places = F.add(begins, F.arange(size=columns, dtype=int64))
    return F.take(vector, places, axis=0)


def _rest(v: Value) -> Value:
    """All elements but the first."""
    n = v.spec.static_shape[0]
    return cut(v, 0, min(n, 1), n)


@by_shapes
@names_itself
def toeplitz(c: ArrayLike, r: ArrayLike | None = None, /) -> Tensor:
    """The matrix with the first column c whose diagonals are constant; its first row is r, of which the first element
    is not read, or c conjugated."""
    column, *given = (_vector(v) for v in as_values(*([c] if r is None else [c, r])))
    row = given[0] if given else F.conjugate(column) if is_complex(column.dtype) else column
    return Tensor(_with_diagonals(column, _rest(row), row.spec.static_shape[0], -1))


@by_shapes
@names_itself
def circulant(c: ArrayLike, /) -> Tensor:
    """The square matrix with the first column c, each further one turned down by one."""
    v = _vector(as_value(c))
    return Tensor(_with_diagonals(v, F.flip(_rest(v), axes=(0,)), v.spec.static_shape[0], -1))


@by_shapes
@names_itself
def hankel(c: ArrayLike, r: ArrayLike | None = None, /) -> Tensor:
    """The matrix with the first column c whose diagonals from the left below to the right above are constant; its last
    row is r, of which the first element is not read, or zeros."""
    column, *given = (_vector(v) for v in as_values(*([c] if r is None else [c, r])))
    row = given[0] if given else F.zeros_like(column)
    return Tensor(_with_diagonals(column, _rest(row), row.spec.static_shape[0], 1))


@by_shapes
@names_itself
def companion(a: ArrayLike, /) -> Tensor:
    """The matrix whose eigenvalues are the roots of the polynomial with the coefficients a, the highest power first."""
    v = as_inexact(_vector(as_value(a)))
    n = v.spec.static_shape[0] - 1
    if n < 1:
        raise ShapeError(f"the coefficients {v.spec} have no companion", hint="two or more")
    row = F.negative(F.divide(_rest(v), cut(v, 0, 0, 1)))
    if (found := as_whole("above_ones", (row,))) is not None:
        return Tensor(found)
    first = F.reshape(row, shape=(1, n))
    if n == 1:
        return Tensor(first)
    with beside(v):
        ones = F.full(shape=(n - 1,), value=1, dtype=v.dtype)
    return Tensor(F.concat(first, on_diagonal(ones, n - 1, n, 0), axis=0))


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
