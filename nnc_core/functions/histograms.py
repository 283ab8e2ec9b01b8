"""Counting what lies in bins."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.dtype import boolean, float64, int64, is_inexact, is_integer
from nnc_core.base.errors import AttributeValueError, DTypeError, NotSupportedError, OperandError, ShapeError
from nnc_core.functions.binning import Bins, bin_numbers, edges_of
from nnc_core.functions.constants import host_of
from nnc_core.functions.pieces import cut, flat
from nnc_core.functions.reduction import as_dtype, as_precise
from nnc_core.operator import OPERATORS
from nnc_core.type import DimLike, default_float, promote
from nnc_core.values.argument_checks import mismatch_error
from nnc_core.values.arguments import ArrayLike, as_values, names_itself
from nnc_core.values.data_dependent import size_for
from nnc_core.values.dispatch import F
from nnc_core.values.from_host import dtype_given
from nnc_core.values.modes import use_device
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value
from nnc_core.values.whole import as_whole

__all__ = [
    "bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd",
]  # fmt: skip

_BIN_RANGE = OPERATORS["bin_range"]
_WHOLE = 1 << 24
"""The integers up to here are float32s."""


class Histogram(NamedTuple):
    """Count or weight in each bin, and the edges, one more than bins."""

    histogram: Tensor
    bin_edges: Tensor


class Histogram2d(NamedTuple):
    """Count or weight in each bin, x along the first axis, and the edges of both."""

    histogram: Tensor
    x_edges: Tensor
    y_edges: Tensor


class HistogramDD(NamedTuple):
    """Count or weight in each bin, an axis for each coordinate, and the edges along each."""

    histogram: Tensor
    bin_edges: tuple[Tensor, ...]


# ---- counting
def _counted(numbers: Value, weights: Value | None, bins: DimLike, range: Value | None = None) -> Value:
    """Count, or sum the weights of, each number of a bin; `bins` itself is the number of what lies in none.

    `range` is what tells the number of bins, where the data do.
    """
    ones = F.full_like(numbers, 1) if weights is None else weights
    with use_device(numbers.stack):
        none = F.full(shape=(bins + 1,), value=0, dtype=ones.dtype)
    none = none if range is None else F.after(none, (range,))
    return cut(F.scatter(none, numbers, ones, axis=0, mode="add", batch=0), 0, 0, bins)


def _summable(weights: Value | None) -> Value | None:
    return as_dtype(weights, int64) if weights is not None and weights.dtype == boolean else weights


@names_itself
def bincount(x: ArrayLike, /, weights: ArrayLike | None = None, minlength: int = 0, *,
             length: int | None = None) -> Tensor:
    """Count how often each of 0, 1, 2 ... occurs in x, a vector of integers; the sum of their weights if there are any.

    As long as the largest number says, at least `minlength`.  With `length` the result has that length whatever the
    data, and numbers outside of it are left out: that keeps a graph's sizes independent of its data.
    """
    v, *given = as_values(x, *([] if weights is None else [weights]))
    if not is_integer(v.dtype):
        raise DTypeError(f"{v.spec} are no integers", hint="cast with astype")
    if v.ndim != 1:
        raise ShapeError(f"{v.spec} is no vector", hint="flatten it first")
    if given and given[0].shape != v.shape:
        raise ShapeError(f"weights {given[0].spec} do not go with {v.spec}")
    if minlength < 0:
        raise AttributeValueError(f"minlength {minlength} is negative")
    w = _summable(given[0]) if given else None
    v = as_dtype(v, int64)
    if length is not None:
        inside = F.logical_and(F.greater_equal(v, 0), F.less(v, length))
        return Tensor(_counted(F.where(inside, v, length), w, length))
    if w is None and (found := as_whole("bincount", (v,), (minlength,))) is not None:
        return Tensor(found)
    with use_device(v.stack):
        least = F.full(shape=(1,), value=minlength - 1, dtype=int64)
    seen = F.concat(v, least, axis=0) if minlength else v
    bins = F.bin_range(seen, size=size_for(seen, _BIN_RANGE))
    return Tensor(_counted(v, w, bins.shape[0], bins))


# ---- histograms
def _samples(x: ArrayLike, *others: ArrayLike | None) -> list[Value]:
    return [flat(v) for v in as_values(x, *[y for y in others if y is not None])]


def _comparable(v: Value) -> Value:
    """Samples as floats, beside which edges are floats: integers in float64.

    On a device without it they are float32: larger integers that are at hand are an error, for they would be counted in
    other bins.
    """
    host = None if is_inexact(v.dtype) or float64 in v.stack.type.dtypes else host_of(v)
    if host is not None and host.size and (host.max() > _WHOLE or host.min() < -_WHOLE):
        largest = max(map(abs, (int(host.max()), int(host.min()))))
        raise NotSupportedError(f"integers beyond {_WHOLE}, as large as {largest}, are counted in float64, which this "
                                "device has not", device=v.stack.device.spec.id,
                                hint='take them to another device: x.to("cpu"), or subtract their minimum')
    return as_precise(v)


@names_itself
def histogram_bin_edges(x: ArrayLike, /, bins: Bins = 10, range: Any = None,
                        weights: ArrayLike | None = None) -> Tensor:
    """The edges that `histogram` would use."""
    v, *given = _samples(x, weights)
    edges = edges_of(_comparable(v), bins, range, given[0] if given else None, not is_inexact(v.dtype))
    return Tensor(_shown(edges, v, bins))


def _shown(edges: Value, v: Value, bins: Any) -> Value:
    """Edges for integers, which are compared in float64, rounded once; those given as floats keep their dtype."""
    if is_inexact(v.dtype):
        return edges
    given = dtype_given(bins)
    return as_dtype(edges, given if given is not None and is_inexact(given) else default_float())


def _density(counts: Value, edges: Sequence[Value]) -> Value:
    """Divided by the whole and by the size of each bin, in the dtype of the edges."""
    real = reduce(promote, [e.dtype for e in edges])
    y = as_dtype(counts, promote(counts.dtype, real))
    total = F.sum(y, axis=tuple(range(y.ndim)))
    for axis, e in enumerate(edges):
        m = e.shape[0]
        widths = as_dtype(F.subtract(cut(e, 0, 1, m), cut(e, 0, 0, m - 1)), y.dtype)
        y = F.divide(y, F.reshape(widths, shape=tuple(y.shape[a] if a == axis else 1 for a in range(y.ndim))))
    return F.divide(y, total)


def _filled(v: Sequence[Value], edges: Sequence[Value], weights: Value | None, density: bool) -> Value:
    """Counts, an axis for each of the coordinates v."""
    sizes = [int(e.shape[0]) - 1 for e in edges]
    if weights is None and len(v) == 1 and (found := as_whole("counts_in_bins", (v[0], edges[0]))) is not None:
        return _density(found, edges) if density else found
    number = bin_numbers(v[0], edges[0])
    inside = F.less(number, sizes[0])
    for coordinate, e, size in zip(v[1:], edges[1:], sizes[1:], strict=True):
        mine = bin_numbers(coordinate, e)
        number = F.add(F.multiply(number, size), mine)
        inside = F.logical_and(inside, F.less(mine, size))
    bins = int(np.prod(sizes))
    counts = _counted(F.where(inside, number, bins), weights, bins)
    counts = F.reshape(counts, shape=tuple(sizes))
    return _density(counts, edges) if density else counts


def _checked(v: Value, weights: Value | None) -> Value | None:
    if weights is not None and weights.shape != v.shape:
        raise ShapeError(f"weights {weights.spec} do not go with the flattened {v.spec}")
    return _summable(weights)


@names_itself
def histogram(x: ArrayLike, /, bins: Bins = 10, range: Any = None, density: bool = False,
              weights: ArrayLike | None = None) -> Histogram:
    """Count the elements of the flattened x that lie in each bin, as int64, or sum their weights.

    `bins` is a number of equal bins between the ends of `range` (of the data, if there is none), the name of one of
    NumPy's rules (which look at the data on the host), or the edges.  Bins have their lower edge, the last one both.
    With `density` the integral is 1.
    """
    v, *given = _samples(x, weights)
    w = _checked(v, given[0] if given else None)
    edges = edges_of(_comparable(v), bins, range, w, not is_inexact(v.dtype))
    counts = _filled([_comparable(v)], [edges], w, density)
    shown = _shown(edges, v, bins)
    return Histogram(Tensor(_as_dense(counts, [shown], w) if density else counts), Tensor(shown))


def _as_dense(densities: Value, shown: Sequence[Value], weights: Value | None) -> Value:
    """Rounded once to the dtype of the edges that are shown, and of the weights."""
    real = reduce(promote, [e.dtype for e in shown])
    return as_dtype(densities, real if weights is None else promote(real, weights.dtype))


def _for_each(given: Any, count: int, what: str) -> list[Any]:
    """One for each coordinate."""
    if given is None or isinstance(given, (int, np.integer)):
        return [given] * count
    if not isinstance(given, (tuple, list, np.ndarray, Tensor)):
        raise mismatch_error(what, given, f"one for each of {count} coordinates, in a list")
    if len(given) != count:
        raise OperandError(f"{len(given)} {what} for {count} coordinates")
    return list(given)


def _histogramdd(coordinates: Sequence[Value], bins: Any, range: Any, density: bool,
                 weights: Value | None) -> tuple[Value, list[Value]]:
    count = len(coordinates)
    wanted, ends = _for_each(bins, count, "bins"), _for_each(range, count, "ranges")
    precise = [_comparable(v) for v in coordinates]
    edges = [edges_of(v, b, r) for v, b, r in zip(precise, wanted, ends, strict=True)]
    counts = _filled(precise, edges, weights, density)
    shown = [_shown(e, v, b) for e, v, b in zip(edges, coordinates, wanted, strict=True)]
    return (_as_dense(counts, shown, weights) if density else counts), shown


def _columns(table: Value) -> list[Value]:
    if table.ndim != 2:
        raise ShapeError(f"{table.spec} is no table of points", hint="a row for each")
    n, count = table.shape
    return [F.reshape(cut(table, 1, k, k + 1), shape=(n,)) for k in range(int(count))]


@names_itself
def histogramdd(sample: ArrayLike | Sequence[ArrayLike], /, bins: Any = 10, range: Any = None, density: bool = False,
                weights: ArrayLike | None = None) -> HistogramDD:
    """Count the points in each cell: points are rows of an array, or a sequence of coordinates, a vector each.

    `bins` is a number of equal bins, or for each coordinate a number or the edges; `range` for each one the ends.
    """
    given = [] if weights is None else [weights]
    if isinstance(sample, (tuple, list)):
        values = as_values(*sample, *given)
        coordinates = [flat(v) for v in values[: len(sample)]]
    else:
        values = as_values(sample, *given)
        coordinates = _columns(values[0])
    if len({v.shape for v in coordinates}) != 1:
        raise ShapeError(f"coordinates {', '.join(str(v.spec) for v in coordinates)} are unlike many")
    weighted = _checked(coordinates[0], flat(values[-1]) if given else None)
    counts, edges = _histogramdd(coordinates, bins, range, density, weighted)
    return HistogramDD(Tensor(counts), tuple(map(Tensor, edges)))


@names_itself
def histogram2d(x: ArrayLike, y: ArrayLike, /, bins: Any = 10, range: Any = None, density: bool = False,
                weights: ArrayLike | None = None) -> Histogram2d:
    """Count the points (x, y) in each cell; `bins` is a number, the edges of both, or a pair of either."""
    a, b, *given = (flat(v) for v in as_values(x, y, *([] if weights is None else [weights])))
    if a.shape != b.shape:
        raise ShapeError(f"coordinates {a.spec} and {b.spec} are unlike many")
    one_vector = (isinstance(bins, (tuple, list)) or getattr(bins, "ndim", 0) > 0) and len(bins) != 2
    wanted = [bins, bins] if one_vector else bins
    w = _checked(a, given[0] if given else None)
    counts, edges = _histogramdd([a, b], wanted, range, density, w)
    return Histogram2d(Tensor(counts), *map(Tensor, edges))
