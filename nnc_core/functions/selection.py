"""Reading by what the data are: indices of elements that are not zero, distinct values, vectors without outer zeros.

The results have as many rows as the data say.  In deferred mode that number is not known until somebody asks for it:
`static_shape` has None there, `shape` computes.  In a graph it stays a name.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from nnc_core.base.dtype import int64
from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.operator import OPERATORS
from nnc_core.values.arguments import ArrayLike, as_value, count_of, names_itself
from nnc_core.values.data_dependent import size_for
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value
from nnc_core.values.whole import as_whole

__all__ = [
    "argwhere", "flatnonzero", "nonzero", "trim_zeros", "unique_all", "unique_counts", "unique_inverse",
    "unique_values",
]  # fmt: skip

_NONZERO, _UNIQUE = OPERATORS["nonzero"], OPERATORS["unique_index"]


class UniqueAll(NamedTuple):
    """Distinct values by rising value, where each occurs first, the number of each element's value, and how often."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct values by rising value, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct values by rising value, and the number of each element's value among them."""

    values: Tensor
    inverse_indices: Tensor


def flattened(v: Value) -> Value:
    """The elements in C order."""
    return v if v.ndim == 1 else F.reshape(v, shape=(count_of(v.shape),))


def rows_of(v: Value) -> Value:
    """int64[n, ndim]: the indices of the elements that are not zero."""
    return F.nonzero(v, size=size_for(v, _NONZERO))


def places_of(v: Value) -> Value:
    """int64[n]: where in the flattened v the elements are that are not zero."""
    flat = flattened(v)
    if (found := as_whole("places", (flat,))) is not None:
        return found  # type: ignore[no-any-return]
    rows = F.nonzero(flat, size=size_for(v if v.ndim else flat, _NONZERO))
    return F.reshape(rows, shape=rows.shape[:1])


@names_itself
def argwhere(x: Any, /) -> Tensor:
    """int64[n, ndim]: the indices of the elements that are not zero, in C order."""
    v = as_value(x)
    if v.ndim == 0:  # whether it is true says how many rows of no indices there are
        rows = rows_of(flattened(v))
        return Tensor(F.slice(rows, start=(0, 0), stop=(rows.shape[0], 0), step=(1, 1)))
    return Tensor(rows_of(v))


@names_itself
def flatnonzero(x: Any, /) -> Tensor:
    """int64[n]: where in the flattened x the elements are that are not zero."""
    return Tensor(places_of(as_value(x)))


@names_itself
def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero: one int64[n] for each axis, in C order."""
    v = as_value(x)
    if v.ndim == 1:
        return (Tensor(places_of(v)),)
    rows = rows_of(v)
    n = rows.shape[0]
    columns = [F.slice(rows, start=(0, a), stop=(n, a + 1), step=(1, 1)) for a in range(v.ndim)]
    return tuple([Tensor(F.reshape(c, shape=(n,))) for c in columns])


def _first(v: Value) -> Value:
    return F.unique_index(v, size=size_for(v, _UNIQUE))


def _distinct(v: Value, first: Value) -> Tensor:
    return Tensor(F.take(flattened(v), first, axis=0))


def _counts(v: Value) -> Tensor:
    return Tensor(F.unique_counts(v, size=size_for(v, _UNIQUE)))


def _as_whole(v: Value, *, index: bool = False, inverse: bool = False, counts: bool = False) -> Any:
    return as_whole("unique", (flattened(v),), (index, inverse, counts))


@names_itself
def unique_values(x: Any, /) -> Tensor:
    """The distinct values, rising; each NaN is one of its own, 0.0 and -0.0 are one."""
    v = as_value(x)
    found = _as_whole(v)
    return _distinct(v, _first(v)) if found is None else Tensor(found)


@names_itself
def unique_counts(x: Any, /) -> UniqueCounts:
    """The distinct values, rising, and how often each occurs."""
    v = as_value(x)
    if (found := _as_whole(v, counts=True)) is not None:
        return UniqueCounts(*map(Tensor, found))
    return UniqueCounts(_distinct(v, _first(v)), _counts(v))


@names_itself
def unique_inverse(x: Any, /) -> UniqueInverse:
    """The distinct values, rising, and for each element of x the number of its value: values[inverse] is x."""
    v = as_value(x)
    if (found := _as_whole(v, inverse=True)) is not None:
        return UniqueInverse(Tensor(found[0]), Tensor(F.reshape(found[1], shape=v.shape)))
    return UniqueInverse(_distinct(v, _first(v)), Tensor(F.unique_inverse(v)))


@names_itself
def unique_all(x: Any, /) -> UniqueAll:
    """The distinct values, rising; where in the flattened x each occurs first; inverse; counts."""
    v = as_value(x)
    if (found := _as_whole(v, index=True, inverse=True, counts=True)) is not None:
        values, first, inverse, counts = found
        return UniqueAll(*map(Tensor, (values, first, F.reshape(inverse, shape=v.shape), counts)))
    first = _first(v)
    return UniqueAll(_distinct(v, first), Tensor(first), Tensor(F.unique_inverse(v)), _counts(v))


@names_itself
def trim_zeros(x: ArrayLike, /, trim: str = "fb") -> Tensor:
    """A vector without the zeros before its first and behind its last other element; `trim` "f" or "b": only there.

    How long it is depends on data.
    """
    v = as_value(x)
    if v.ndim != 1:
        raise ShapeError(f"{v.spec} is no vector")
    if trim.lower() not in ("f", "b", "fb", "bf"):
        raise AttributeValueError(f"trim {trim!r} is none of 'f', 'b', 'fb'")
    marks = F.cast(F.not_equal(v, F.number(0, v.dtype, v)), dtype=int64)
    kept = F.greater_equal(marks, 0)
    for end, backwards in (("f", False), ("b", True)):
        if end in trim.lower():
            kept = F.logical_and(kept, F.greater(F.cumulative_sum(marks, axis=0, reverse=backwards), 0))
    return Tensor(F.take(v, places_of(kept), axis=0))
