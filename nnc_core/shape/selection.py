"""Rules of operators whose results have as many rows as the data say."""

from __future__ import annotations

from nnc_core.base.dtype import int64, is_integer
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.type import DimLike, TensorSpec


def _checked(size: DimLike) -> DimLike:
    if isinstance(size, int) and size < 0:
        raise AttributeValueError(f"size {size} is negative")
    return size


def nonzero(x: TensorSpec, size: DimLike) -> TensorSpec:
    """One row of indices for each element that is not zero."""
    if x.ndim == 0:
        raise ShapeError(f"{x} has no axis to give indices of", hint="reshape it to one dimension first")
    return TensorSpec((_checked(size), x.ndim), int64)


def distinct(x: TensorSpec, size: DimLike) -> TensorSpec:
    """One number for each distinct element."""
    return TensorSpec((_checked(size),), int64)


def bin_range(x: TensorSpec, size: DimLike) -> TensorSpec:
    """One number for each bin."""
    if not is_integer(x.dtype):
        raise DTypeError(f"bins are numbered by integers, not by {x.dtype}", hint="cast with astype")
    if x.ndim != 1:
        raise ShapeError(f"{x} should have one axis", hint="reshape it first")
    return TensorSpec((_checked(size),), int64)


def inverse(x: TensorSpec) -> TensorSpec:
    return TensorSpec(x.shape, int64)
