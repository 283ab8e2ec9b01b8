"""Rules of gathers and scatters."""

from __future__ import annotations

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.shape.axes import check_axes
from nnc_core.shape.elementwise import same_dtype
from nnc_core.type import DimLike, Dims, TensorSpec

SCATTERS = ("set", "add", "multiply", "min", "max")
"""Combinations of an element and an update that a scatter offers."""


def take(x: TensorSpec, indices: TensorSpec, axis: int, batch: int) -> TensorSpec:
    """The axis is replaced by the dimensions of the indices, but for the first `batch`, which both have."""
    return TensorSpec(_taken(x, indices, axis, batch), x.dtype)


def scatter(x: TensorSpec, indices: TensorSpec, updates: TensorSpec, axis: int, mode: str, batch: int) -> TensorSpec:
    """x with the slices that `take` would read changed by the updates."""
    if mode not in SCATTERS:
        raise AttributeValueError(f"mode {mode!r} is none of {', '.join(SCATTERS)}")
    if updates.shape != (wanted := _taken(x, indices, axis, batch)):
        raise ShapeError(f"updates {updates} should have shape {wanted}")
    dtype = same_dtype(x, updates)
    if dtype == dt.boolean and mode != "set":
        raise DTypeError(f"mode {mode!r} is for numbers, not booleans", hint="cast with astype")
    if dt.is_complex(dtype) and mode in ("min", "max"):
        raise DTypeError(f"mode {mode!r} is for numbers that have an order, not {dtype}")
    return x


def _taken(x: TensorSpec, indices: TensorSpec, axis: int, batch: int) -> Dims:
    check_axes((axis,), x.ndim)
    _check_indices(indices)
    if not 0 <= batch <= min(axis, indices.ndim):
        raise AttributeValueError(f"batch {batch} should be from 0 to {min(axis, indices.ndim)}, for axis {axis} and "
                                  f"{indices.ndim} dimensions of indices")
    if x.shape[:batch] != indices.shape[:batch]:
        raise ShapeError(f"{x} and {indices} differ in their first {batch} dimensions")
    return (*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :])


def _check_indices(indices: TensorSpec) -> None:
    if not dt.is_integer(indices.dtype):
        raise DTypeError(f"indices are {indices.dtype}, not integers", hint="cast with astype")


def earlier(indices: TensorSpec) -> TensorSpec:
    """int64 positions along the last axis."""
    _check_indices(indices)
    if not indices.shape:
        raise ShapeError(f"{indices} has no axis to look along")
    return TensorSpec(indices.shape, dt.int64)


def repeat_index(counts: TensorSpec, size: DimLike) -> TensorSpec:
    """Positions, as many as the counts add up to."""
    _check_indices(counts)
    if counts.ndim != 1:
        raise ShapeError(f"counts {counts} should have one dimension")
    if isinstance(size, int) and size < 0:
        raise AttributeValueError(f"size {size} is negative")
    return TensorSpec((size,), dt.int64)


def index_offset(indices: TensorSpec, length: int, stride: int, size: int, signed: bool) -> TensorSpec:
    """An int64 for each index."""
    _check_indices(indices)
    if min(length, stride, size) < 0:
        raise AttributeValueError(f"length {length}, stride {stride} or size {size} is negative")
    return TensorSpec(indices.shape, dt.int64)


def one_hot(indices: TensorSpec, depth: DimLike, dtype: DType) -> TensorSpec:
    """A new last axis of length `depth`."""
    _check_indices(indices)
    if isinstance(depth, int) and depth < 0:
        raise AttributeValueError(f"depth {depth} is negative")
    return TensorSpec((*indices.shape, depth), dtype)
