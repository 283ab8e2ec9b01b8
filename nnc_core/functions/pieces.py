"""Parts shared by many functions that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.base.errors import OperandError
from nnc_core.functions.constants import constant_beside
from nnc_core.type import DimLike, Dims
from nnc_core.values.arguments import count_of
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value


def flat(v: Value) -> Value:
    """The elements in C order."""
    return v if v.ndim == 1 else F.reshape(v, shape=(count_of(v.shape),))


def cut(v: Value, axis: int, start: DimLike, stop: DimLike, step: int = 1) -> Value:
    """A range along one axis."""
    ends = list(zip(*[(0, d, 1) if a != axis else (start, stop, step) for a, d in enumerate(v.shape)], strict=True))
    return F.slice(v, start=ends[0], stop=ends[1], step=ends[2])


def on_diagonal(v: Value, rows: int, columns: int, k: int) -> Value:
    """A matrix whose k-th diagonal is a vector, which is not empty, among zeros."""
    count, low = int(v.shape[0]), k if k >= 0 else -k * columns
    high = rows * columns - low - (count - 1) * (columns + 1) - 1
    return F.reshape(F.pad(v, low=(low,), high=(high,), interior=(columns,)), shape=(rows, columns))


def with_length(shape: Dims, axis: int, length: DimLike) -> Dims:
    """The shape with another length of one axis."""
    return (*shape[:axis], length, *shape[axis + 1 :])


def taken(v: Value, index: np.ndarray[Any, Any], axis: int) -> Value:
    """Slices along an axis by indices that are known here, all of them in range."""
    if index.ndim == 1 and len(index) and (found := _range(index)):
        start, stop, step = found
        piece = cut(v, axis, start, stop, abs(step))
        return F.flip(piece, axes=(axis,)) if step < 0 else piece
    return F.take(v, constant_beside(v, index), axis=axis)


def _range(index: np.ndarray[Any, Any]) -> tuple[int, int, int] | None:
    """The same indices as a range; None if they are none."""
    step = int(index[1] - index[0]) if len(index) > 1 else 1
    first, last = int(index[0]), int(index[-1])
    if step == 0 or (np.diff(index) != step).any():
        return None
    return (first, last + 1, step) if step > 0 else (last, first + 1, step)


def known(x: Any, what: str) -> np.ndarray[Any, Any]:
    """An array of integers or booleans whose values decide about shapes: read here and now."""
    host = x.numpy() if isinstance(x, Tensor) else np.asarray(x)
    if host.size == 0 and host.dtype.kind == "f":
        return host.astype(np.int64)
    if host.dtype.kind not in "iub":
        raise OperandError(f"{what} is {host.dtype}, not of integers or booleans", hint="cast it with astype")
    return host


def sequence(x: Any) -> tuple[Any, ...]:
    """One or several as several."""
    return tuple(x) if isinstance(x, (tuple, list)) else tuple(np.atleast_1d(x)) if isinstance(x, np.ndarray) else (x,)


def moved(v: Value, source: Sequence[int], target: Sequence[int]) -> Value:
    """Axes at other places, the others in their order; all are in canonical form."""
    order = [a for a in range(v.ndim) if a not in source]
    for to, a in sorted(zip(target, source, strict=True)):
        order.insert(to, a)
    return v if order == list(range(v.ndim)) else F.permute(v, axes=tuple(order))


