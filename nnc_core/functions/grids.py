"""Functions that make arrays of coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nnc_core.base.dtype import int64
from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.control.alike import functions
from nnc_core.functions.creation import created_on, shape_given
from nnc_core.type import DimLike, Dims, admit_numpy, default_float
from nnc_core.values.arguments import ArrayLike, as_values, located, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["fromfunction", "indices", "meshgrid"]


@by_shapes
@names_itself
def meshgrid(*arrays: ArrayLike, indexing: str = "xy", sparse: bool = False) -> list[Tensor]:
    """Coordinates of a grid over some vectors, one array for each.

    "ij": the i-th array varies along axis i; "xy" (Cartesian): the first two axes change places.  `sparse` leaves the
    axes along which an array does not vary at length one.
    """
    if indexing not in ("xy", "ij"):
        raise AttributeValueError(f"indexing {indexing!r} is neither 'xy' nor 'ij'")
    values = as_values(*arrays)
    if any(v.ndim > 1 for v in values):
        raise ShapeError(f"{', '.join(repr(v.spec) for v in values)}: coordinates are vectors")
    count = len(values)
    axes = list(range(count))
    if indexing == "xy" and count > 1:
        axes[:2] = 1, 0
    lengths = [v.shape[0] if v.ndim else 1 for v in values]
    whole = tuple([lengths[axes.index(a)] for a in range(count)])
    return [Tensor(_along(v, n, a, whole, sparse)) for v, n, a in zip(values, lengths, axes, strict=True)]


def _along(v: Value, length: DimLike, axis: int, whole: Dims, sparse: bool) -> Value:
    open_ = F.reshape(v, shape=tuple([length if a == axis else 1 for a in range(len(whole))]))
    return open_ if sparse else F.broadcast_to(open_, shape=whole)


@by_shapes
@names_itself
def indices(dimensions: Sequence[DimLike], *, dtype: Any = None, sparse: bool = False,
            device: Any = None) -> Tensor | tuple[Tensor, ...]:
    """The index of each element along each axis: (number of axes, *dimensions), or a tuple if `sparse`."""
    whole = shape_given(dimensions)
    wanted = int64 if dtype is None else admit_numpy(dtype)
    with created_on(device) as stack:
        stack.type.admit(wanted)
        rows = [F.arange(size=d, dtype=int64) for d in whole]
        rows = [r if wanted == int64 else F.cast(r, dtype=wanted) for r in rows]
        grid = [_along(r, d, a, whole, sparse) for a, (r, d) in enumerate(zip(rows, whole, strict=True))]
        if sparse:
            return tuple(map(Tensor, grid))
        if not grid:
            return Tensor(F.full(shape=(0,), value=0, dtype=wanted))
        return Tensor(F.concat(*[F.reshape(g, shape=(1, *whole)) for g in grid], axis=0))


@located
def fromfunction(function: Callable[..., Any], shape: Sequence[DimLike], *, dtype: Any = None,
                 device: Any = None) -> Any:
    """Call a function with the indices of an array of that shape: one array of numbers for each axis."""
    functions(function=function)
    grid = indices(shape, dtype=default_float() if dtype is None else dtype, device=device)
    assert isinstance(grid, Tensor)
    return function(*[grid[a] for a in range(grid.shape[0].__index__())])
