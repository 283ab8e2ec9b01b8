"""Distinct values, and arrays as sets.  The results are as long as the data say."""

from __future__ import annotations

from typing import Any, NamedTuple

from nnc_core.base.dtype import boolean, int64, is_inexact
from nnc_core.functions.pieces import flat, moved
from nnc_core.functions.reduction import as_dtype, comparable
from nnc_core.functions.selection import places_of
from nnc_core.operator.along import shifted
from nnc_core.shape.axes import normalise_axis
from nnc_core.type import promote
from nnc_core.values.arguments import ArrayLike, as_value, as_values, count_of, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.modes import use_device
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value
from nnc_core.values.whole import as_whole

__all__ = ["intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_consecutive"]


class _Groups(NamedTuple):
    """Rows in an order in which equal ones are neighbours."""

    order: Value
    begins: Value
    """Whether a new one begins there."""
    first: Value
    """Where they do: as many as there are distinct ones."""

    @property
    def numbers(self) -> Value:
        """For each place in the order the number of its group."""
        return F.subtract(F.cumulative_sum(as_dtype(self.begins, int64), axis=0), 1)

    def inverse(self) -> Value:
        return F.scatter(F.zeros_like(self.order), self.order, self.numbers, axis=0, mode="set", batch=0)

    def counts(self) -> Value:
        with use_device(self.order.stack):
            none = F.full(shape=self.first.shape, value=0, dtype=int64)
        return F.scatter(none, self.numbers, F.full_like(self.order, 1), axis=0, mode="add", batch=0)


def _numbered(v: Value) -> Value:
    """0, 1, ... along the first axis."""
    with use_device(v.stack):
        return F.arange(size=v.shape[0], dtype=int64)


def _differ(a: Value, b: Value, equal_nan: bool) -> Value:
    unequal = F.not_equal(a, b)
    if not (equal_nan and is_inexact(a.dtype)):
        return unequal
    return F.logical_and(unequal, F.logical_or(F.equal(a, a), F.equal(b, b)))


def _groups(rows: Value, order: Value, equal_nan: bool) -> _Groups:
    """Groups of the rows (n, ...) taken in an order."""
    ordered = F.take(rows, order, axis=0)
    fill = False if rows.dtype == boolean else 0
    differs = _differ(ordered, shifted(F, ordered, 0, 1, fill), equal_nan)
    if differs.ndim > 1:
        differs = F.any(differs, axis=tuple(range(1, differs.ndim)))
    begins = F.logical_or(F.equal(_numbered(rows), 0), differs)
    return _Groups(order, begins, places_of(begins))


def _in_order(rows: Value) -> Value:
    """Positions of the rows (n, ...) in lexicographic order."""
    if rows.ndim == 1:
        return F.argsort(rows, axis=0)
    keys = F.reshape(rows, shape=(rows.shape[0], count_of(rows.shape[1:])))
    if keys.shape[1] == 0:
        return _numbered(rows)
    return F.lexsort(F.permute(F.flip(keys, axes=(1,)), axes=(1, 0)), axis=0)


def _rows(v: Value, axis: int | None) -> tuple[Value, int]:
    if axis is None:
        return flat(v), 0
    a = normalise_axis(axis, v.ndim)
    return moved(v, (a,), (0,)), a


@names_itself
def unique(x: ArrayLike, /, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: int | None = None, *, equal_nan: bool = True, sorted: bool = True) -> Any:
    """The distinct values, rising; with an axis the distinct slices, in lexicographic order.

    Then, if wanted: where each occurs first; for each element (or slice) of x the number of its value; how often each
    occurs.  NaN equals NaN unless `equal_nan` is false.
    """
    v = as_value(x)
    rows, a = _rows(v, axis)
    wanted = bool(return_index), bool(return_inverse), bool(return_counts)
    whole = as_whole("unique", (rows,), wanted) if rows.ndim == 1 else None
    if whole is not None:
        return _as_wanted(whole, v, axis, wanted)
    groups = _groups(rows, _in_order(rows), equal_nan)
    where = F.take(groups.order, groups.first, axis=0)
    values = moved(F.take(rows, where, axis=0), (0,), (a,))
    found = [values, *[where] * return_index]
    if return_inverse:
        inverse = groups.inverse()
        found.append(F.reshape(inverse, shape=v.shape) if axis is None else inverse)
    found += [groups.counts()] if return_counts else []
    return Tensor(values) if len(found) == 1 else tuple(map(Tensor, found))


def _as_wanted(found: Any, v: Value, axis: int | None, wanted: tuple[bool, bool, bool]) -> Any:
    """Results that a device has found as a whole, the inverse in the shape of the elements."""
    if not isinstance(found, tuple):
        return Tensor(found)
    at = 1 + wanted[0]
    shaped = [F.reshape(y, shape=v.shape) if wanted[1] and i == at and axis is None else y for i, y in enumerate(found)]
    return tuple(map(Tensor, shaped))


@names_itself
def unique_consecutive(x: ArrayLike, /, return_inverse: bool = False, return_counts: bool = False,
                       axis: int | None = None) -> Any:
    """x without the elements (with an axis: the slices) that equal the one before; of the flattened x without an axis.

    Then, if wanted: for each element of x the number of its group; how long each group is.
    """
    v = as_value(x)
    rows, a = _rows(v, axis)
    groups = _groups(rows, _numbered(rows), equal_nan=False)
    values = moved(F.take(rows, groups.first, axis=0), (0,), (a,))
    found = [values]
    if return_inverse:
        found.append(F.reshape(groups.numbers, shape=v.shape) if axis is None else groups.numbers)
    found += [groups.counts()] if return_counts else []
    return Tensor(values) if len(found) == 1 else tuple(map(Tensor, found))


# ---- sets
def _pair(x1: ArrayLike, x2: ArrayLike) -> tuple[Value, Value]:
    """Flattened, of one dtype."""
    a, b = (flat(v) for v in as_values(x1, x2))
    dtype = promote(a.dtype, b.dtype)
    return tuple(as_dtype(v, dtype) for v in (a, b))  # type: ignore[return-value]


def _distinct(v: Value) -> tuple[Value, Value]:
    """Distinct values, rising, and where each occurs first."""
    if (found := as_whole("unique", (v,), (True, False, False))) is not None:
        return found  # type: ignore[no-any-return]
    groups = _groups(v, F.argsort(v, axis=0), equal_nan=True)
    where = F.take(groups.order, groups.first, axis=0)
    return F.take(v, where, axis=0), where


def _values(v: Value) -> Value:
    """Distinct values, rising."""
    found = as_whole("unique", (v,), (False, False, False))
    return _distinct(v)[0] if found is None else found


def _isin(v: Value, among: Value) -> Value:
    """Compare how many elements are smaller with how many are not larger; NaN is in nothing."""
    if (whole := as_whole("isin", (v, among))) is not None:
        return whole  # type: ignore[no-any-return]
    ordered = F.sort(among, axis=0)
    found = F.less(F.searchsorted(ordered, v, right=False), F.searchsorted(ordered, v, right=True))
    return F.logical_and(found, F.equal(v, v)) if is_inexact(v.dtype) else found


def _chosen(v: Value, mask: Value) -> Value:
    return F.take(v, places_of(mask), axis=0)


@names_itself
def isin(x1: ArrayLike, x2: ArrayLike, /, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """For each element of x1 whether it is among those of x2 (or not, if `invert`); NaN never is."""
    a, b = comparable(*as_values(x1, x2))
    found = _isin(a, flat(b))
    return Tensor(F.logical_not(found) if invert else found)


@names_itself
def intersect1d(x1: ArrayLike, x2: ArrayLike, /, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The distinct values that are in both, rising; with `return_indices` also where they occur first in each."""
    a, b = _pair(x1, x2)
    (values, where), (others, elsewhere) = _distinct(a), _distinct(b)
    mask = _isin(values, others)
    common = _chosen(values, mask)
    if not return_indices:
        return Tensor(common)
    there = F.take(elsewhere, F.searchsorted(others, common, right=False), axis=0)
    return Tensor(common), Tensor(_chosen(where, mask)), Tensor(there)


@names_itself
def union1d(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The distinct values that are in either, rising."""
    return Tensor(_values(F.concat(*_pair(x1, x2), axis=0)))


@names_itself
def setdiff1d(x1: ArrayLike, x2: ArrayLike, /, assume_unique: bool = False) -> Tensor:
    """The distinct values of x1 that are not in x2, rising; with `assume_unique` as they come."""
    a, b = (flat(v) for v in as_values(x1, x2))
    values = a if assume_unique else _values(a)
    return Tensor(_chosen(values, F.logical_not(_isin(*comparable(values, b)))))


@names_itself
def setxor1d(x1: ArrayLike, x2: ArrayLike, /, assume_unique: bool = False) -> Tensor:
    """The distinct values that are in one only, rising."""
    a, b = (_values(v) for v in _pair(x1, x2))
    parts = [_chosen(v, F.logical_not(_isin(v, other))) for v, other in ((a, b), (b, a))]
    return Tensor(F.sort(F.concat(*parts, axis=0), axis=0))
