"""Arrays of indices: several as one number and back, of triangles and diagonals, of all pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from nnc_core.base.dtype import boolean, int64, is_integer
from nnc_core.base.errors import AttributeValueError, DTypeError, OutOfRangeError, ShapeError
from nnc_core.control.alike import functions
from nnc_core.functions.creation import ones
from nnc_core.functions.diagonals import diag_indices, tril_indices, triu_indices
from nnc_core.functions.reduction import as_dtype
from nnc_core.functions.selection import nonzero, places_of
from nnc_core.values.arguments import ArrayLike, as_value, as_values, located, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = [
    "diag_indices_from", "ix_", "mask_indices", "ravel_multi_index", "tril_indices_from", "triu_indices_from",
    "unravel_index",
]  # fmt: skip

MODES = ("raise", "wrap", "clip")


# ---- several indices and one
def _integers(v: Value) -> Value:
    if not is_integer(v.dtype):
        raise DTypeError(f"indices are {v.dtype}, not integers", hint="cast with astype")
    return as_dtype(v, int64)


def _steps(dims: Sequence[int], order: str) -> list[int]:
    """The number of places that each index counts for."""
    if order not in ("C", "F"):
        raise AttributeValueError(f"order {order!r} is neither 'C' nor 'F'")
    n = len(dims)
    return [prod(dims[i + 1 :]) if order == "C" else prod(dims[:i]) for i in range(n)]


def _checked(given: Any, size: int) -> None:
    """Check indices that are on the host; operators see to tensors."""
    host = None if isinstance(given, Tensor) else np.asarray(given)
    if host is not None and host.dtype.kind in "iu" and ((host < 0) | (host >= size)).any():
        raise OutOfRangeError(f"an index is out of range for length {size}", hint='mode="clip", or "wrap"')


@by_shapes
@names_itself
def ravel_multi_index(multi_index: Sequence[ArrayLike], dims: Sequence[int], /, mode: str | Sequence[str] = "raise",
                      order: str = "C") -> Tensor:
    """int64: the place in a flattened array of shape `dims` of the element at one index for each axis.

    Indices out of range are an error ("raise"; those of a tensor as in `take`, and where they are none the place is out
    of range too), begin again ("wrap") or are moved to the end ("clip"); one mode for all axes, or one for each.
    """
    given = list(multi_index)
    modes = [mode] * len(dims) if isinstance(mode, str) else list(mode)
    if not len(given) == len(dims) == len(modes) or not len(dims):
        raise AttributeValueError(f"{len(given)} indices and {len(modes)} modes for {len(dims)} axes")
    total: Value | None = None
    for v, host, length, how, step in zip(as_values(*given), given, dims, modes, _steps(dims, order), strict=True):
        if how == "raise":
            _checked(host, length)
        part = _part(v, length, how, step, prod(dims))
        total = part if total is None else F.add(total, part)
    assert total is not None
    return Tensor(total)


def _part(v: Value, length: int, mode: str, step: int, size: int) -> Value:
    """Return what the index of one axis adds to the place of an element."""
    if mode not in MODES:
        raise AttributeValueError(f"mode {mode!r} is none of {', '.join(MODES)}")
    index = _integers(v)
    if mode == "raise":
        return F.index_offset(index, length=length, stride=step, size=size, signed=False)
    return F.multiply(F.remainder(index, length) if mode == "wrap" else F.clip(index, 0, length - 1), step)


@by_shapes
@names_itself
def unravel_index(indices: ArrayLike, shape: Sequence[int] | int, /, order: str = "C") -> tuple[Tensor, ...]:
    """int64: for places in a flattened array of this shape the index along each axis.

    Places out of range are an error; those of a tensor as in `take`, and where they are none the indices mean nothing.
    """
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    size = prod(dims)
    _checked(indices, size)
    v = F.index_offset(_integers(as_value(indices)), length=size, stride=1, size=size, signed=False)
    return tuple([Tensor(F.remainder(F.floor_divide(v, step), length) if length else v)
                  for step, length in zip(_steps(dims, order), dims, strict=True)])


# ---- of matrices
def _square(x: ArrayLike) -> tuple[int, ...]:
    v = as_value(x)
    if v.ndim < 2 or len(set(v.spec.static_shape)) != 1:
        raise ShapeError(f"the axes of {v.spec} should be two or more, of one length")
    return v.spec.static_shape


def _matrix(x: ArrayLike) -> tuple[int, int]:
    v = as_value(x)
    if v.ndim != 2:
        raise ShapeError(f"{v.spec} is no matrix")
    rows, columns = v.spec.static_shape
    return rows, columns


@by_shapes
@names_itself
def tril_indices_from(x: ArrayLike, /, k: int = 0) -> tuple[Tensor, Tensor]:
    """tril_indices for a matrix like x."""
    rows, columns = _matrix(x)
    return tril_indices(rows, k, columns)


@by_shapes
@names_itself
def triu_indices_from(x: ArrayLike, /, k: int = 0) -> tuple[Tensor, Tensor]:
    """triu_indices for a matrix like x."""
    rows, columns = _matrix(x)
    return triu_indices(rows, k, columns)


@by_shapes
@names_itself
def diag_indices_from(x: ArrayLike, /) -> tuple[Tensor, ...]:
    """diag_indices for an array like x, all of whose axes have one length."""
    shape = _square(x)
    return diag_indices(shape[0], len(shape))


@located
def mask_indices(n: int, mask_func: Callable[..., Any], k: Any = 0, /) -> tuple[Tensor, ...]:
    """int64: the indices of an (n, n) matrix at which mask_func(matrix of ones, k) is not zero."""
    functions(mask_func=mask_func)
    return nonzero(mask_func(ones((n, n), dtype=int64), k=k))


@names_itself
def ix_(*args: ArrayLike) -> tuple[Tensor, ...]:
    """Vectors with as many axes as there are vectors, each along its own: x[ix_(rows, columns)] is all of their pairs.

    Booleans stand for the indices at which they are true.
    """
    found = []
    for axis, v in enumerate(as_values(*args)):
        if v.ndim != 1:
            raise ShapeError(f"{v.spec} is no vector")
        if v.shape[0] == 0 and not is_integer(v.dtype):
            v = F.cast(v, dtype=int64)
        v = places_of(v) if v.dtype == boolean else v
        found.append(Tensor(F.reshape(v, shape=tuple([v.shape[0] if a == axis else 1 for a in range(len(args))]))))
    return tuple(found)
