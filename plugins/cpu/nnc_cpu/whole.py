"""Functions that NumPy has an algorithm of its own for: eager kernels by the names of functions, not of operators.

Each gives what the operators that make the function up otherwise would give, to the last bit; but sums of products
(`slid`) may be rounded in another order, and partitions have in another order what they leave open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nnc_core.base.moved_axes import moved
from nnc_cpu.memory import Array
from nnc_cpu.ordering import is_sorted_by_value

PLAIN = 13
"""Dtypes that NumPy computes with as they are have numbers below this."""
PIECE = 1 << 14
Axes = tuple[int, ...]


# ---- bits
def packbits(x: Array, axis: int, bitorder: str) -> Array:
    return np.packbits(x, axis, bitorder)  # type: ignore[call-overload, no-any-return]


def unpackbits(x: Array, axis: int, bitorder: str) -> Array:
    return np.unpackbits(x, axis, None, bitorder)  # type: ignore[call-overload, no-any-return]


# ---- order: zeros of either sign, and NaN, are told apart by where they were
def order_statistics(rows: Array, places: Axes, low: Axes, high: Axes) -> Any:
    """The elements at `low` and those at `high` of the sorted rows, both among `places`, without sorting the rest."""
    if not is_sorted_by_value(rows):
        return NotImplemented
    parted = np.partition(rows, places, -1)
    return parted[..., list(low)], parted[..., list(high)]


def diagonal_filled(x: Array, new: Array, end: int, step: int) -> Any:
    """A copy with the elements of `new` in turn at each `step` of its flattened elements up to `end`."""
    out = np.array(x, order="C")
    places = out.reshape(-1)[:end:step]
    places[:] = new if len(new) == 1 else np.resize(new, len(places))
    return out


def neighbours(x: Array, places: Array, values: Array) -> Any:
    """Places and values on both sides of each element of x, and those of both ends; places rise.  Machine code is
    quicker at looking for many."""
    if x.dtype.num >= PLAIN or x.size >= PIECE:
        return NotImplemented
    last = len(places) - 1
    after = np.minimum(np.maximum(places.searchsorted(x, "right"), min(1, last)), last)  # quicker than `clip`
    before = np.maximum(after - 1, 0)
    return (*[y.take(i) for y in (places, values) for i in (before, after)],
            *[y[i : i + 1].reshape(()) for y in (places, values) for i in (0, last)])


def partitioned(x: Array, axis: int, places: Axes) -> Any:
    """The elements along an axis with those at these places where they would stand in order; zeros of either sign and
    NaN would not be told apart."""
    return np.partition(x, places, axis) if is_sorted_by_value(x) else NotImplemented


def arg_partitioned(x: Array, axis: int, places: Axes) -> Any:
    """int64: the positions of such elements."""
    return np.argpartition(x, places, axis) if is_sorted_by_value(x) else NotImplemented


def complex_sorted(x: Array, axis: int) -> Any:
    """Complex numbers along an axis, by their real parts and then by their imaginary ones."""
    if not x.flags.c_contiguous or not x.ndim or not is_sorted_by_value(x.view(x.real.dtype)):
        return NotImplemented
    return np.sort(x, axis)


def has_nan(x: Array) -> Any:
    return np.asarray(np.isnan(np.max(x)))


def unique(x: Array, index: bool, inverse: bool, counts: bool) -> Any:
    """The distinct values of a vector, and what else is wanted, each int64."""
    if not is_sorted_by_value(x):
        return NotImplemented
    if not (index or inverse or counts):
        return np.unique(x)
    found: Any = np.unique(x, return_index=index, return_inverse=inverse, return_counts=counts)  # type: ignore[call-overload]
    return found


def isin(x: Array, among: Array) -> Any:
    return np.isin(x, among) if x.dtype.num < PLAIN else NotImplemented  # not the halves, nor complex numbers


# ---- counts
def count_nonzero(x: Array, axes: Axes, keepdims: bool) -> Any:
    if x.dtype.num >= PLAIN:
        return NotImplemented
    return np.asarray(np.count_nonzero(x, axis=None if len(axes) == x.ndim and not keepdims else axes,
                                       keepdims=keepdims), np.int64)


def bincount(x: Array, least: int) -> Array:
    return np.bincount(x, minlength=least).astype(np.int64, copy=False)


def counts_in_bins(x: Array, edges: Array) -> Any:
    """int64: the elements in each of at least two bins of a vector of edges that rise evenly, the last with both its
    edges.  A first guess is put right by the edges themselves."""
    bins, low, high = len(edges) - 1, edges[0], edges[-1]
    if x.dtype != edges.dtype or x.dtype.kind != "f" or not (low < high and np.isfinite(high - low)) or bins > 1 << 16:
        return NotImplemented
    total = np.zeros(bins, np.int64)
    x = x.reshape(-1)
    for begin in range(0, len(x), PIECE):
        piece = x[begin : begin + PIECE]
        within = (piece >= low) & (piece <= high)
        piece = piece if within.all() else piece[within]
        number = np.minimum(((piece - low) * (bins / (high - low))).astype(np.intp), bins - 1)
        number -= piece < edges[number]
        number += (piece >= edges[number + 1]) & (number < bins - 1)
        if (piece < edges[number]).any() or ((piece >= edges[number + 1]) & (number < bins - 1)).any():
            return NotImplemented
        total += np.bincount(number, minlength=bins)
    return total


def digitized(x: Array, edges: Array, right: bool) -> Any:
    """int64: the bin of each element, between at least two edges that rise or fall."""
    if x.dtype != edges.dtype or x.dtype.num >= PLAIN or x.dtype.kind == "c" or edges.ndim != 1 or len(edges) < 2:
        return NotImplemented
    side: Any = "left" if right else "right"
    if edges[0] <= edges[-1]:
        return np.asarray(np.searchsorted(edges, x, side), np.int64)
    return np.asarray(len(edges) - np.searchsorted(edges[::-1], x, side), np.int64)


# ---- pieces
def repeated(x: Array, count: int, axis: int) -> Array:
    return x.repeat(count, axis)


def places(x: Array) -> Any:
    """int64: where the elements of a vector are that are not zero."""
    return x.nonzero()[0] if x.dtype.num < PLAIN else NotImplemented


def unstacked(x: Array, axis: int) -> Any:
    """The slices along an axis."""
    return tuple(moved(x, axis, 0)) if x.ndim > 1 else NotImplemented


def pieces(column: Array, rest: Array, columns: int, step: int) -> Any:
    """A matrix whose rows are pieces of one vector, which is `rest` behind the first column: each begins an element
    after the one before (step 1), or before it (step -1), where the column stands backwards."""
    rows, size = len(column), column.itemsize
    if not rows or not columns:
        return NotImplemented
    vector, first = np.concatenate((column[::step], rest)), 0 if step > 0 else (rows - 1) * size
    return np.ndarray((rows, columns), vector.dtype, vector, first, (step * size, size)).copy()


def slid(a: Array, b: Array, mode: str) -> Any:
    """Products of a vector of floats with one that slides along it and is not longer, where they overlap at all
    ("full") or completely ("valid")."""
    if a.dtype.num >= PLAIN or a.dtype.kind != "f":
        return NotImplemented
    return np.correlate(a, b, mode)  # type: ignore[call-overload]


# ---- diagonals
def diagonal(x: Array, offset: int, axis1: int, axis2: int) -> Array:
    return x.diagonal(offset, axis1, axis2).copy()


def trace(x: Array, offset: int, axis1: int, axis2: int) -> Any:
    """The sums of diagonals, which are packed before as everything is that is summed."""
    if x.dtype.num >= PLAIN or x.dtype.kind not in "fc":
        return NotImplemented
    return np.asarray(np.add.reduce(np.ascontiguousarray(x.diagonal(offset, axis1, axis2)), -1))


def above_ones(row: Array) -> Array:
    """A square matrix with a first row, ones below the diagonal, and zeros."""
    n = len(row)
    out = np.zeros((n, n), row.dtype)
    out[0] = row
    out.reshape(-1)[n :: n + 1] = 1
    return out


# ---- digits
def rounded(x: Array, unit: float, behind: bool) -> Any:
    """Floats rounded to multiples of a power of ten, or behind the point to those of its inverse; as the operators do
    where nothing is infinite or NaN on the way."""
    if x.dtype.num >= PLAIN:
        return NotImplemented
    there, back = (np.multiply, np.true_divide) if behind else (np.true_divide, np.multiply)
    shape, x = x.shape, np.ascontiguousarray(x).reshape(-1)
    out = np.empty_like(x)
    for begin in range(0, len(x), PIECE):
        piece = out[begin : begin + PIECE]
        there(x[begin : begin + PIECE], unit, out=piece)
        if not np.isfinite(piece).all():
            return NotImplemented
        np.rint(piece, out=piece)
        back(piece, unit, out=piece)
    return out.reshape(shape)


# ---- extremes
def extremum_without_nan(x: Array, axes: Axes, largest: bool, keepdims: bool) -> Any:
    """With NaN there a zero may be another one than operators would choose."""
    if x.dtype.kind != "f" or x.dtype.num >= PLAIN:
        return NotImplemented
    plain: Any = (np.maximum if largest else np.minimum).reduce
    y = np.asarray(plain(x, axis=axes, keepdims=keepdims))
    if not np.isnan(y).any():
        return y
    passing: Any = (np.fmax if largest else np.fmin).reduce
    y = np.asarray(passing(x, axis=axes, keepdims=keepdims))
    return NotImplemented if (y == 0).any() else y


WHOLE: Mapping[str, Callable[..., Any]] = {
    "packbits": packbits, "unpackbits": unpackbits, "bitwise_count": np.bitwise_count,
    "order_statistics": order_statistics, "has_nan": has_nan, "unique": unique, "isin": isin,
    "count_nonzero": count_nonzero, "bincount": bincount, "counts_in_bins": counts_in_bins,
    "extremum_without_nan": extremum_without_nan, "digitized": digitized, "trace": trace, "rounded": rounded,
    "repeated": repeated, "places": places, "pieces": pieces,
    "neighbours": neighbours, "partitioned": partitioned, "arg_partitioned": arg_partitioned, "unstacked": unstacked,
    "slid": slid, "diagonal": diagonal, "diagonal_filled": diagonal_filled, "above_ones": above_ones,
    "complex_sorted": complex_sorted,
}  # fmt: skip
MADE_OF: Mapping[str, tuple[str, ...]] = {
    "packbits": ("sum", "bitwise_left_shift", "cast"), "unpackbits": ("bitwise_right_shift", "bitwise_and"),
    "bitwise_count": ("bitwise_and", "bitwise_right_shift", "add"), "order_statistics": ("sort", "argsort", "take"),
    "has_nan": ("max",), "unique": ("argsort", "unique_index", "unique_inverse", "unique_counts"),
    "isin": ("sort", "searchsorted"), "count_nonzero": ("cast", "sum"), "bincount": ("bin_range", "scatter"),
    "counts_in_bins": ("searchsorted", "scatter"), "extremum_without_nan": ("max", "min", "where"),
    "digitized": ("searchsorted", "where", "subtract"), "trace": ("sum", "slice", "reshape"),
    "rounded": ("round", "multiply", "divide", "where"), "neighbours": ("searchsorted", "clip", "take"),
    "repeated": ("reshape", "broadcast_to"), "places": ("nonzero", "reshape"),
    "pieces": ("concat", "flip", "progression", "add", "take"),
    "partitioned": ("sort",), "arg_partitioned": ("argsort",),
    "unstacked": ("slice", "reshape"), "slid": ("conv", "pad", "reshape"), "diagonal": ("slice", "reshape", "permute"),
    "diagonal_filled": ("update_slice", "reshape", "broadcast_to"),
    "above_ones": ("filled", "pad", "concat"), "complex_sorted": ("lexsort", "take"),
}  # fmt: skip
"""The operators in whose place each stands."""
