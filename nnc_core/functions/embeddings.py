"""Rows of tables by number, alone or in bags."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from nnc_core.base.dtype import int64
from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.functions.constants import beside
from nnc_core.functions.pieces import cut
from nnc_core.type import DimLike
from nnc_core.values.arguments import ArrayLike, as_value, as_values, names_itself, stack_of
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["embedding", "embedding_bag"]

MODES = ("sum", "mean", "max")


def _rows(table: Value, indices: Value, padding: int | None, max_norm: float | None, norm_type: float) -> Value:
    if table.ndim != 2:
        raise ShapeError(f"the table is {table.spec}, expected a row for each number")
    rows = F.take(table, indices, axis=0)
    if padding is not None:
        rows = F.where(_is_padding(table, indices, padding), F.stop_gradient(rows), rows)
    if max_norm is None:
        return rows
    norm = F.vector_norm(rows, axis=(rows.ndim - 1,), ord=float(norm_type), keepdims=True)
    factor = F.where(F.greater(norm, max_norm), F.divide(max_norm, F.add(norm, 1e-7)), 1.0)
    return F.multiply(rows, F.stop_gradient(factor))


def _is_padding(table: Value, indices: Value, padding: int) -> Value:
    """With an axis for the features."""
    wanted = padding if padding >= 0 or not isinstance(table.shape[0], int) else padding + table.shape[0]
    return F.reshape(F.equal(F.cast(indices, dtype=int64), wanted), shape=(*indices.shape, 1))


@names_itself
def embedding(table: ArrayLike, indices: ArrayLike, /, *, padding_index: int | None = None,
              max_norm: float | None = None, norm_type: float = 2.0) -> Tensor:
    """Rows of a table (numbers, features): (*indices, features).

    The row `padding_index` has no gradient from here.  Rows whose norm is larger than `max_norm` are scaled to it, by a
    factor that is constant to differentiation.
    """
    t, i = as_values(table, indices)
    return Tensor(_rows(t, i, padding_index, max_norm, norm_type))


@names_itself
def embedding_bag(table: ArrayLike, indices: ArrayLike, offsets: ArrayLike | None = None, /, *, mode: str = "mean",
                  weights: ArrayLike | None = None, padding_index: int | None = None, max_norm: float | None = None,
                  norm_type: float = 2.0) -> Tensor:
    """Sums, means or maxima of rows of a table: (bags, features).

    Indices are (bags, size), or one vector with the `offsets` at which bags begin, rising from 0.  `weights`, one for
    each index, go with the mode "sum".  Indices that are `padding_index` do not count; an empty bag gives 0.
    """
    if mode not in MODES:
        raise AttributeValueError(f"mode {mode!r} is none of {', '.join(map(repr, MODES))}")
    if weights is not None and mode != "sum":
        raise AttributeValueError(f"weights go with the mode 'sum', not {mode!r}")
    stack = stack_of((table, indices))
    t, i = (as_value(x, stack) for x in (table, indices))
    w = None if weights is None else as_value(weights, stack)
    if w is not None and w.shape != i.shape:
        raise ShapeError(f"the weights are {w.spec}, expected one for each index of {i.spec}")
    bags = _bags(i, None if offsets is None else as_value(offsets, stack))
    rows = _rows(t, i, padding_index, max_norm, norm_type)
    if w is not None:
        rows = F.multiply(rows, F.reshape(w, shape=(*i.shape, 1)))
    return Tensor(_folded(rows, _counts(t, i, padding_index), bags, mode))


class _Bags(NamedTuple):
    """The bag of each index, counted from 1, and how many bags there are."""

    numbers: Value
    length: DimLike


def _bags(indices: Value, offsets: Value | None) -> _Bags | None:
    """None where each row of the indices is a bag."""
    if offsets is None:
        if indices.ndim != 2:
            raise ShapeError(f"indices are {indices.spec}, expected (bags, size)", hint="give offsets with a vector")
        return None
    if indices.ndim != 1 or offsets.ndim != 1:
        raise ShapeError(f"indices {indices.spec} and offsets {offsets.spec}, expected two vectors")
    with beside(indices):
        places = F.arange(size=indices.shape[0], dtype=int64)
    return _Bags(F.searchsorted(F.cast(offsets, dtype=int64), places, right=True), offsets.shape[0])


def _counts(table: Value, indices: Value, padding: int | None) -> Value:
    """1 for each index that counts, 0 for padding, with an axis for the features."""
    if padding is None:
        counted = F.reshape(F.equal(indices, indices), shape=(*indices.shape, 1))
    else:
        counted = F.logical_not(_is_padding(table, indices, padding))
    return F.cast(counted, dtype=table.dtype)


def _folded(rows: Value, counts: Value, bags: _Bags | None, mode: str) -> Value:
    count = _fold(counts, bags, "add")
    if mode == "max":
        highest = _fold(F.where(F.equal(counts, 0), -inf, rows), bags, "max")
        return F.where(F.equal(count, 0), 0, highest)
    total = _fold(F.where(F.equal(counts, 0), 0, rows), bags, "add")
    return total if mode == "sum" else F.divide(total, F.maximum(count, 1))


def _fold(v: Value, bags: _Bags | None, mode: str) -> Value:
    """Over the rows of each bag; what lies before the first bag is dropped."""
    if bags is None and mode == "add":
        return F.sum(v, axis=(1,))
    if bags is None and v.shape[1] != 0:
        return F.max(v, axis=(1,))
    shape = (v.shape[0] if bags is None else bags.length + 1, v.shape[-1])
    with beside(v):
        start = F.full(shape=shape, value=-inf if mode == "max" else 0, dtype=v.dtype)
    return start if bags is None else cut(F.scatter(start, bags.numbers, v, axis=0, mode=mode), 0, 1, shape[0])
