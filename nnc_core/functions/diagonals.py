"""Functions of diagonals and triangles of matrices."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from nnc_core.base.dtype import int64
from nnc_core.base.errors import AttributeValueError, NotSupportedError, ShapeError
from nnc_core.functions.creation import asarray, created_on, shape_given
from nnc_core.functions.pieces import cut, flat, moved, on_diagonal
from nnc_core.functions.reduction import sum as total
from nnc_core.shape.axes import normalise_axis
from nnc_core.type import DimLike, admit_numpy, default_float, is_static, whole
from nnc_core.values.arguments import ArrayLike, as_value, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.modes import use_device
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value
from nnc_core.values.whole import as_whole

__all__ = [
    "diag", "diag_indices", "diagflat", "diagonal", "fill_diagonal", "trace", "tri", "tril", "tril_indices", "triu",
    "triu_indices",
]  # fmt: skip


# ---- triangles
def _below(like: Value | None, rows: DimLike, columns: DimLike, k: int) -> Value:
    """bool[rows, columns]: true on and below the k-th diagonal."""
    with use_device(like.stack) if like is not None else created_on(None):
        i = F.reshape(F.arange(size=rows, dtype=int64, start=whole(k, "k")), shape=(rows, 1))
        return F.greater_equal(i, F.arange(size=columns, dtype=int64))


def _matrix(x: ArrayLike) -> Value:
    v = as_value(x)
    if v.ndim < 2:
        raise ShapeError(f"{v.spec} is no matrix")
    return v


@by_shapes
@names_itself
def tril(x: ArrayLike, /, *, k: int = 0) -> Tensor:
    """Matrices with zeros above the k-th diagonal."""
    v = _matrix(x)
    return Tensor(F.where(_below(v, v.shape[-2], v.shape[-1], k), v, F.number(0, v.dtype, v)))


@by_shapes
@names_itself
def triu(x: ArrayLike, /, *, k: int = 0) -> Tensor:
    """Matrices with zeros below the k-th diagonal."""
    v = _matrix(x)
    return Tensor(F.where(_below(v, v.shape[-2], v.shape[-1], k - 1), F.number(0, v.dtype, v), v))


@by_shapes
@names_itself
def tri(n_rows: DimLike, n_cols: DimLike | None = None, /, k: int = 0, *, dtype: Any = None,
        device: Any = None) -> Tensor:
    """Ones on and below the k-th diagonal."""
    rows, columns = shape_given((n_rows, n_rows if n_cols is None else n_cols))
    wanted = default_float() if dtype is None else admit_numpy(dtype)
    with created_on(device) as stack:
        below = _below(None, rows, columns, k)
        return Tensor(F.cast(below, dtype=stack.type.admit(wanted)))


def _triangle(n: Any, k: Any, m: Any) -> tuple[int, int, int | None]:
    return whole(n, "n", 0), whole(k, "k"), None if m is None else whole(m, "m", 0)


@by_shapes
@names_itself
def tril_indices(n: int, /, k: int = 0, m: int | None = None, *, device: Any = None) -> tuple[Tensor, Tensor]:
    """int64: rows and columns of the elements of an (n, m) matrix on and below the k-th diagonal, in C order; m is n if
    not given."""
    rows, columns = np.tril_indices(*_triangle(n, k, m))
    return asarray(rows, device=device), asarray(columns, device=device)


@by_shapes
@names_itself
def triu_indices(n: int, /, k: int = 0, m: int | None = None, *, device: Any = None) -> tuple[Tensor, Tensor]:
    """int64: rows and columns of the elements of an (n, m) matrix on and above the k-th diagonal, in C order; m is n if
    not given."""
    rows, columns = np.triu_indices(*_triangle(n, k, m))
    return asarray(rows, device=device), asarray(columns, device=device)


@by_shapes
@names_itself
def diag_indices(n: int, ndim: int = 2, /, *, device: Any = None) -> tuple[Tensor, ...]:
    """int64: the indices of the diagonal of an array of `ndim` axes of length n."""
    return tuple([asarray(i, device=device) for i in np.diag_indices(whole(n, "n", 0), whole(ndim, "ndim", 0))])


# ---- diagonals
@by_shapes
@names_itself
def diagonal(x: ArrayLike, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonal of two axes, as the last axis; `offset` above the main one, below if negative."""
    return Tensor(diagonal_of(as_value(x), offset, axis1, axis2))


def diagonal_of(v: Value, offset: int, axis1: int, axis2: int) -> Value:
    if v.ndim < 2:
        raise ShapeError(f"{v.spec} is no matrix")
    a, b = normalise_axis(axis1, v.ndim), normalise_axis(axis2, v.ndim)
    if a == b:
        raise AttributeValueError(f"axis {axis1} and axis {axis2} are one axis")
    if (found := as_whole("diagonal", (v,), (offset, a, b))) is not None:
        return found  # type: ignore[no-any-return]
    v = moved(v, [a, b], [v.ndim - 2, v.ndim - 1])
    rows, columns = v.shape[-2:]
    if not is_static(v.shape[-2:]):
        return _diagonal_of_named(v, offset)
    assert isinstance(rows, int) and isinstance(columns, int)
    first = offset if offset >= 0 else -offset * columns
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    row = F.reshape(v, shape=(*v.shape[:-2], rows * columns))
    first = first if length else 0
    return cut(row, v.ndim - 2, first, first + max((length - 1) * (columns + 1) + 1, 0) if length else 0, columns + 1)


def _diagonal_of_named(v: Value, offset: int) -> Value:
    rows, columns = v.shape[-2:]
    if rows != columns or offset:
        raise NotSupportedError(f"the diagonal {offset} of {v.spec}, whose length has no number",
                                hint="give these axes numbers")
    with use_device(v.stack):
        place = F.reshape(F.arange(size=rows, dtype=int64), shape=(rows, 1))
    shared = v.ndim - 1
    taken = F.take(v, F.broadcast_to(place, shape=(*v.shape[:-1], 1)), axis=shared, batch=shared)
    return F.reshape(taken, shape=v.shape[:-1])


@by_shapes
@names_itself
def trace(x: ArrayLike, /, offset: int = 0, axis1: int = 0, axis2: int = 1, *, dtype: Any = None) -> Tensor:
    """The sum of a diagonal of two axes."""
    v = as_value(x)
    if dtype is None and (found := as_whole("trace", (v,), (offset, axis1, axis2))) is not None:
        return Tensor(found)
    return total(Tensor(diagonal_of(v, offset, axis1, axis2)), axis=-1, dtype=dtype)


@by_shapes
@names_itself
def diag(x: ArrayLike, /, k: int = 0) -> Tensor:
    """The k-th diagonal of a matrix, or a matrix with a vector on its k-th diagonal and zeros elsewhere."""
    v = as_value(x)
    if v.ndim not in (1, 2):
        raise ShapeError(f"{v.spec} is neither a vector nor a matrix", hint="diagonal")
    return Tensor(diagonal_of(v, k, 0, 1) if v.ndim == 2 else _on_diagonal(v, k))


@by_shapes
@names_itself
def diagflat(x: ArrayLike, /, k: int = 0) -> Tensor:
    """A matrix with the elements of x on its k-th diagonal and zeros elsewhere."""
    return Tensor(_on_diagonal(flat(as_value(x)), k))


def _on_diagonal(v: Value, k: int) -> Value:
    n = v.shape[0]
    size = n + abs(k)
    if isinstance(size, int) and n:
        return on_diagonal(v, size, size, k)
    column = F.pad(v, low=(max(-k, 0),), high=(max(k, 0),), interior=(0,))
    column = F.broadcast_to(F.reshape(column, shape=(size, 1)), shape=(size, size))
    return F.where(_diagonal_mask(v, size, k), column, F.number(0, v.dtype, v))


def _diagonal_mask(like: Value, size: DimLike, k: int) -> Value:
    with use_device(like.stack):
        i = F.reshape(F.arange(size=size, dtype=int64, start=k), shape=(size, 1))
        return F.equal(i, F.arange(size=size, dtype=int64))


@by_shapes
@names_itself
def fill_diagonal(x: ArrayLike, value: ArrayLike, /, wrap: bool = False) -> Tensor:
    """x with its main diagonal set to a value, or to the elements of an array in turn.

    All axes of x have the same length if there are more than two.  `wrap`: below a tall matrix' end the diagonal
    begins again, with one row between.
    """
    v, new = as_values(x, value)
    if v.ndim < 2 or not is_static(v.shape):
        raise ShapeError(f"{v.spec} has no diagonal", hint="two dimensions or more, all with numbers")
    lengths = v.spec.static_shape
    if v.ndim > 2 and len(set(lengths)) != 1:
        raise ShapeError(f"the axes of {v.spec} should have one length")
    step = 1 + sum([prod(lengths[a + 1 :]) for a in range(v.ndim - 1)])
    end = prod(lengths) if wrap or v.ndim > 2 else lengths[1] * lengths[1]
    end = min(end, prod(lengths))
    new = flat(new if new.dtype == v.dtype else F.cast(new, dtype=v.dtype))
    if not end or new.shape[0] == 0:
        return Tensor(v)
    if (found := as_whole("diagonal_filled", (v, new), (end, step))) is not None:
        return Tensor(found)
    new = _in_turn(new, len(range(0, end, step)))
    changed = F.update_slice(flat(v), new, start=(0,), step=(step,))
    return Tensor(F.reshape(changed, shape=v.shape))


def _in_turn(new: Value, count: int) -> Value:
    there = int(new.shape[0])
    if there < count:
        rounds = -(-count // there)
        new = flat(F.broadcast_to(F.reshape(new, shape=(1, there)), shape=(rounds, there)))
    return cut(new, 0, 0, count)
