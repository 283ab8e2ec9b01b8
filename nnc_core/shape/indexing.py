"""Rules of gathers and scatters."""

from __future__ import annotations

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.shape.axes import check_axes
from nnc_core.shape.elementwise import same_dtype
from nnc_core.type import Dims, TensorSpec


def take(x: TensorSpec, indices: TensorSpec, axis: int) -> TensorSpec:
    """The axis is replaced by the dimensions of the indices."""
    return TensorSpec(_taken(x, indices, axis), x.dtype)


def scatter(x: TensorSpec, indices: TensorSpec, updates: TensorSpec, axis: int, mode: str) -> TensorSpec:
    """x with the slices that `take` would read replaced, or added to."""
    if mode not in ("set", "add"):
        raise AttributeValueError(f"mode {mode!r} is neither 'set' nor 'add'")
    if updates.shape != (wanted := _taken(x, indices, axis)):
        raise ShapeError(f"updates {updates} should have shape {wanted}")
    if same_dtype(x, updates) == dt.boolean and mode == "add":
        raise DTypeError("adds numbers, not booleans", hint="cast with astype")
    return x


def _taken(x: TensorSpec, indices: TensorSpec, axis: int) -> Dims:
    check_axes((axis,), x.ndim)
    if not dt.is_integer(indices.dtype):
        raise DTypeError(f"indices are {indices.dtype}, not integers")
    return (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


def one_hot(indices: TensorSpec, depth: int, dtype: DType) -> TensorSpec:
    """A new last axis of length `depth`."""
    if not dt.is_integer(indices.dtype):
        raise DTypeError(f"indices are {indices.dtype}, not integers")
    if depth < 0:
        raise AttributeValueError(f"depth {depth} is negative")
    return TensorSpec((*indices.shape, depth), dtype)
