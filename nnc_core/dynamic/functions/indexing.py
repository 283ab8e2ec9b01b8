"""Reading by arrays of indices."""

from __future__ import annotations

from typing import Any

from nnc_core.dynamic.dispatch import F
from nnc_core.dynamic.functions.face import ArrayLike, as_value, as_values, count_of, located
from nnc_core.dynamic.tensor import Tensor
from nnc_core.shape.axes import normalise_axis
from nnc_core.type import admit_numpy, default_float

__all__ = ["one_hot", "take"]


@located
def take(x: ArrayLike, indices: ArrayLike, /, *, axis: int | None = None) -> Tensor:
    """Slices of x along an axis; of the flattened x if it is None.  Negative indices count from the end."""
    v, i = as_values(x, indices)
    if axis is None:
        return Tensor(F.take(F.reshape(v, shape=(count_of(v.shape),)), i, axis=0))
    return Tensor(F.take(v, i, axis=normalise_axis(axis, v.ndim)))


@located
def one_hot(indices: ArrayLike, depth: int, *, dtype: Any = None) -> Tensor:
    """A new last axis with 1 at the index and 0 elsewhere."""
    wanted = default_float() if dtype is None else admit_numpy(dtype)
    return Tensor(F.one_hot(as_value(indices), depth=depth, dtype=wanted))
