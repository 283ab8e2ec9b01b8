"""Functions that move elements: shapes, axes, joining, padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.base.errors import AttributeValueError, OperandError, ShapeError
from nnc_core.dynamic.dispatch import F
from nnc_core.dynamic.functions.face import ArrayLike, Axis, as_value, as_values, count_of, located
from nnc_core.dynamic.tensor import Tensor
from nnc_core.shape.axes import normalise_axes, normalise_axis
from nnc_core.shape.elementwise import broadcast
from nnc_core.type import DimLike

__all__ = [
    "broadcast_arrays", "broadcast_to", "concat", "expand_dims", "flip", "matrix_transpose", "pad", "permute_dims",
    "reshape", "squeeze", "stack",
]  # fmt: skip


@located
def reshape(x: ArrayLike, /, shape: DimLike | Sequence[DimLike]) -> Tensor:
    """The elements in C order under another shape; one dimension may be -1."""
    v = as_value(x)
    wanted: list[Any] = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    if wanted.count(-1) > 1:
        raise AttributeValueError(f"shape {tuple(wanted)} has more than one -1")
    if -1 in wanted:
        known = count_of(tuple(d for d in wanted if d != -1))
        total = count_of(v.shape)
        if isinstance(total, int) and isinstance(known, int) and (known == 0 or total % known):
            raise ShapeError(f"{v.spec} cannot be reshaped to {tuple(wanted)}")
        wanted[wanted.index(-1)] = total // known
    return Tensor(F.reshape(v, shape=tuple(int(d) if isinstance(d, np.integer) else d for d in wanted)))


@located
def permute_dims(x: ArrayLike, /, axes: Sequence[int]) -> Tensor:
    """Axis i of the result is axis axes[i] of x."""
    v = as_value(x)
    return Tensor(F.permute(v, axes=tuple(normalise_axis(a, v.ndim) for a in axes)))


@located
def matrix_transpose(x: ArrayLike, /) -> Tensor:
    """The last two axes swapped."""
    v = as_value(x)
    if v.ndim < 2:
        raise ShapeError(f"{v.spec} is no matrix")
    return Tensor(F.permute(v, axes=(*range(v.ndim - 2), v.ndim - 1, v.ndim - 2)))


@located
def broadcast_to(x: ArrayLike, /, shape: Sequence[DimLike]) -> Tensor:
    """x repeated along new axes and those of length one."""
    return Tensor(F.broadcast_to(as_value(x), shape=tuple(shape)))


def broadcast_arrays(*arrays: ArrayLike) -> list[Tensor]:
    """All brought to their common shape."""
    values = as_values(*arrays)
    shape = broadcast(*[v.shape for v in values])
    return [Tensor(v if v.shape == shape else F.broadcast_to(v, shape=shape)) for v in values]


@located
def expand_dims(x: ArrayLike, /, *, axis: int = 0) -> Tensor:
    """A new axis of length one."""
    v = as_value(x)
    at = normalise_axis(axis, v.ndim + 1)
    return Tensor(F.reshape(v, shape=(*v.shape[:at], 1, *v.shape[at:])))


@located
def squeeze(x: ArrayLike, /, axis: int | Sequence[int]) -> Tensor:
    """Axes of length one removed."""
    v = as_value(x)
    axes = normalise_axes(axis, v.ndim)
    for a in axes:
        if v.shape[a] != 1:
            raise ShapeError(f"axis {a} of {v.spec} has length {v.shape[a]}, not 1")
    return Tensor(F.reshape(v, shape=tuple(d for i, d in enumerate(v.shape) if i not in axes)))


@located
def flip(x: ArrayLike, /, *, axis: Axis = None) -> Tensor:
    """The order of elements reversed along axes."""
    v = as_value(x)
    return Tensor(F.flip(v, axes=normalise_axes(axis, v.ndim)))


@located
def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Tensor:
    """One after another along an axis; flattened first if it is None."""
    values = as_values(*arrays)
    if not values:
        raise OperandError("nothing to concatenate")
    if axis is None:
        values, axis = [F.reshape(v, shape=(count_of(v.shape),)) for v in values], 0
    return Tensor(F.concat(*values, axis=normalise_axis(axis, values[0].ndim)))


@located
def stack(arrays: Sequence[ArrayLike], /, *, axis: int = 0) -> Tensor:
    """Joined along a new axis."""
    values = as_values(*arrays)
    if not values:
        raise OperandError("nothing to stack")
    at = normalise_axis(axis, values[0].ndim + 1)
    return Tensor(F.concat(*[F.reshape(v, shape=(*v.shape[:at], 1, *v.shape[at:])) for v in values], axis=at))


@located
def pad(x: ArrayLike, /, pad_width: int | Sequence[Any], *, value: float = 0) -> Tensor:
    """`value` around x; widths as NumPy has them: one number, (before, after), or one pair for each axis."""
    v = as_value(x)
    pairs = np.broadcast_to(np.asarray(pad_width, dtype=np.int64), (v.ndim, 2)).tolist() if v.ndim else []
    low, high = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    return Tensor(F.pad(v, low=low, high=high, interior=(0,) * v.ndim, value=value))
