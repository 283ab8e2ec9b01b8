"""Writing by arrays of indices: x with some elements changed, as a new array.

`x.at[key].set(...)` and its sisters write by keys; these functions have the names and signatures of PyTorch and JAX.
Everything is one operator, `scatter`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, is_float, is_inexact, is_integer
from nnc_core.base.errors import AttributeValueError, DTypeError, OperandError, ShapeError
from nnc_core.functions.indexing import spread
from nnc_core.functions.pieces import flat, with_length
from nnc_core.operator.along import taken_along
from nnc_core.shape.axes import normalise_axis
from nnc_core.shape.indexing import SCATTERS
from nnc_core.type import Dim, Dims, whole
from nnc_core.values.arguments import ArrayLike, as_value, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.modes import use_device
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = [
    "gather", "index_add", "put_along_axis", "scatter", "scatter_add", "scatter_reduce", "segment_max", "segment_min",
    "segment_prod", "segment_sum",
]  # fmt: skip

REDUCTIONS = {"sum": "add", "prod": "multiply", "mean": "add", "amax": "max", "amin": "min"}


def scattered_along(x: Value, indices: Value, updates: Value, axis: int, mode: str) -> Value:
    """Each row along the axis by its own row of indices; all but x have one shape."""
    last = x.ndim - 1
    if axis == last:
        return F.scatter(x, indices, updates, axis=last, mode=mode, batch=last)
    order = list(range(x.ndim))
    order[axis], order[last] = last, axis
    moved = [F.permute(v, axes=tuple(order)) for v in (x, indices, updates)]
    return F.permute(F.scatter(*moved, axis=last, mode=mode, batch=last), axes=tuple(order))


def _as_dtype(v: Value, dtype: DType) -> Value:
    return v if v.dtype == dtype else F.cast(v, dtype=dtype)


@by_shapes
@names_itself
def put_along_axis(x: ArrayLike, indices: ArrayLike, values: ArrayLike, /, axis: int | None = -1, *,
                   mode: str = "set") -> Tensor:
    """x with the elements that `take_along_axis` would read replaced by values, or changed by them: `mode` is "set",
    "add", "multiply", "min" or "max", and equal indices all count.  Of the flattened x without an axis."""
    v, i, new = as_values(x, indices, values)
    if mode not in SCATTERS:
        raise AttributeValueError(f"mode {mode!r} is none of {', '.join(SCATTERS)}")
    if axis is None:
        return Tensor(F.reshape(_put(flat(v), i, new, 0, mode), shape=v.shape))
    return Tensor(_put(v, i, new, normalise_axis(axis, v.ndim), mode))


def _put(v: Value, i: Value, new: Value, axis: int, mode: str) -> Value:
    if v.ndim != i.ndim:
        raise ShapeError(f"{v.spec} and indices {i.spec} should have as many dimensions")
    i = spread(i, with_length(v.shape, axis, i.shape[axis]))
    return scattered_along(v, i, spread(_as_dtype(new, v.dtype), i.shape), axis, mode)


# ---- as PyTorch has them
def _corner(v: Value, shape: Dims) -> Value:
    """The elements of the first indices."""
    if v.shape == shape:
        return v
    none = (0,) * v.ndim
    return F.slice(v, start=none, stop=shape, step=(1,) * v.ndim)


@names_itself
def gather(x: ArrayLike, axis: int, index: ArrayLike, /) -> Tensor:
    """out[i][j] = x[index[i][j]][j] for axis 0, and so on; the index may be shorter than x along the other axes."""
    v, i = as_values(x, index)
    a = _fitting(v, i, axis)
    return Tensor(taken_along(F, _corner(v, with_length(i.shape, a, v.shape[a])), i, a))


def _fitting(v: Value, i: Value, axis: int) -> int:
    a = normalise_axis(axis, v.ndim)
    if i.ndim != v.ndim:
        raise ShapeError(f"{v.spec} and the index {i.spec} should have as many dimensions")
    for k, (n, m) in enumerate(zip(v.shape, i.shape, strict=True)):
        if k != a and isinstance(m - n, int) and m > n:
            raise ShapeError(f"the index {i.spec} is longer than {v.spec} along axis {k}")
    return a


def _scattered(x: ArrayLike, axis: int, index: ArrayLike, src: Any, mode: str) -> Value:
    """x[index[i][j]][j] changed by src[i][j] for axis 0, and so on."""
    v, i, new = as_values(x, index, src)
    a = _fitting(v, i, axis)
    new = _as_dtype(new, v.dtype)
    new = F.broadcast_to(new, shape=i.shape) if new.ndim == 0 else _source(new, i)
    part = _corner(v, with_length(i.shape, a, v.shape[a]))
    done = scattered_along(part, i, new, a, mode)
    return done if done.shape == v.shape else F.update_slice(v, done, start=(0,) * v.ndim, step=(1,) * v.ndim)


def _source(new: Value, i: Value) -> Value:
    if new.ndim != i.ndim or any(isinstance(m - n, int) and m > n for n, m in zip(new.shape, i.shape, strict=True)):
        raise ShapeError(f"the source {new.spec} has not an element for each of the index {i.spec}")
    return _corner(new, i.shape)


@names_itself
def scatter(x: ArrayLike, axis: int, index: ArrayLike, src: Any, /, *, reduce: str | None = None) -> Tensor:
    """x with x[index[i][j]][j] = src[i][j] for axis 0, and so on; `reduce` "add" or "multiply" combines instead.

    The source is an array or a number; the index may be shorter than x along the other axes, and the source longer
    than the index.
    """
    if reduce not in (None, "add", "multiply"):
        raise AttributeValueError(f"reduce {reduce!r} is none of None, 'add', 'multiply'", hint="scatter_reduce")
    return Tensor(_scattered(x, axis, index, src, reduce or "set"))


@names_itself
def scatter_add(x: ArrayLike, axis: int, index: ArrayLike, src: Any, /) -> Tensor:
    """`scatter` that adds; equal indices all count."""
    return Tensor(_scattered(x, axis, index, src, "add"))


@names_itself
def scatter_reduce(x: ArrayLike, axis: int, index: ArrayLike, src: Any, /, reduce: str, *,
                   include_self: bool = True) -> Tensor:
    """`scatter` that combines by "sum", "prod", "mean", "amax" or "amin"; without `include_self` the elements of x that
    are meant do not count."""
    if reduce not in REDUCTIONS:
        raise AttributeValueError(f"reduce {reduce!r} is none of {', '.join(REDUCTIONS)}")
    v = as_value(x)
    mode = REDUCTIONS[reduce]
    if not include_self:
        meant = _counts(v, axis, index)
        v = F.where(F.greater(meant, 0), F.number(neutral(mode, v.dtype), v.dtype, v), v)
    done = _scattered(Tensor(v), axis, index, src, mode)
    if reduce != "mean":
        return Tensor(done)
    count = _counts(v, axis, index)
    count = F.add(count, 1) if include_self else F.maximum(count, 1)
    divide = F.divide if is_inexact(v.dtype) else F.floor_divide
    return Tensor(divide(done, F.cast(count, dtype=v.dtype)))


def _counts(v: Value, axis: int, index: ArrayLike) -> Value:
    """int64: how often each element is meant."""
    nothing = F.cast(F.zeros_like(v), dtype=np.dtype(np.int64))
    return _scattered(Tensor(nothing), axis, index, 1, "add")


def neutral(mode: str, dtype: DType) -> Any:
    """The number that changes nothing."""
    if mode in ("add", "multiply"):
        return 0 if mode == "add" else 1
    if is_float(dtype):
        return float("-inf") if mode == "max" else float("inf")
    if dtype.kind not in "iu":
        raise OperandError(f"{dtype} has no largest and no smallest number")
    limits = np.iinfo(dtype)
    return int(limits.min if mode == "max" else limits.max)


@names_itself
def index_add(x: ArrayLike, axis: int, index: ArrayLike, source: ArrayLike, /, *, alpha: float = 1) -> Tensor:
    """x with the slices of the source, times `alpha`, added to those slices along an axis that a vector of indices
    names; equal indices all count."""
    v, i, new = as_values(x, index, source)
    a = normalise_axis(axis, v.ndim)
    if i.ndim > 1:
        raise ShapeError(f"the index {i.spec} is no vector")
    i = F.reshape(i, shape=(1,)) if i.ndim == 0 else i
    new = _as_dtype(new, v.dtype) if alpha == 1 else _as_dtype(F.multiply(new, alpha), v.dtype)
    return Tensor(F.scatter(v, i, new, axis=a, mode="add"))


# ---- segments, as JAX has them
def _segments(name: str, mode: str, doc: str) -> Callable[..., Tensor]:
    def function(data: ArrayLike, segment_ids: ArrayLike, /, num_segments: int | None = None) -> Tensor:
        v, ids = as_values(data, segment_ids)
        if v.ndim == 0 or ids.shape != v.shape[:1]:
            raise ShapeError(f"{ids.spec} do not tell the segment of each row of {v.spec}")
        if not is_integer(ids.dtype):
            raise DTypeError(f"segment_ids are {ids.dtype}, not integers", hint="cast with astype")
        count = _number_of_segments(ids) if num_segments is None else num_segments
        if not isinstance(count, Dim):
            count = whole(count, "num_segments", 0)
        with use_device(v.stack):
            start = F.full(shape=(count, *v.shape[1:]), value=neutral(mode, v.dtype), dtype=v.dtype)
        return Tensor(F.scatter(start, ids, v, axis=0, mode=mode))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{doc} of the rows of each segment: `segment_ids` has a number for each row.

    Without `num_segments` there are as many as the largest number says, which has to be known then.
    """
    return names_itself(function)


def _number_of_segments(ids: Value) -> int:
    return 0 if ids.shape[0] == 0 else int(Tensor(F.max(ids, axis=(0,)))) + 1


segment_sum = _segments("segment_sum", "add", "The sum")
segment_prod = _segments("segment_prod", "multiply", "The product")
segment_max = _segments("segment_max", "max", "The maximum (-inf, or the smallest integer, where there is none)")
segment_min = _segments("segment_min", "min", "The minimum (inf, or the largest integer, where there is none)")
