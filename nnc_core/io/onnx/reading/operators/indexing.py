"""Elements by their indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.lanes import Host
from nnc_core.io.onnx.reading.registry import on_host, operator
from nnc_core.values.tensor import Tensor


@operator("Gather")
def gather(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    return nnc.take(x, indices, axis=axis)


@on_host("Gather")
def _gather(x: Host, indices: Host, *, axis: int = 0) -> Any:
    return np.take(x, indices.astype(np.int64), axis)


@operator("GatherElements")
def gather_elements(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    return nnc.gather(x, axis, indices)


@operator("GatherND")
def gather_nd(x: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    return nnc.gather_nd(x, indices, batch_dims=batch_dims)


@operator("Compress")
def compress(x: Tensor, condition: Tensor, *, axis: int | None = None) -> Tensor:
    return nnc.compress(condition, x, axis=axis)


@operator("NonZero")
def nonzero(x: Tensor) -> Tensor:
    """int64[axes, count]; a scalar counts as one element, whose index has no numbers."""
    found = nnc.nonzero(nnc.reshape(x, (1,)) if x.ndim == 0 else x)
    return nnc.stack(found) if x.ndim else nnc.zeros((0, found[0].shape[0]), dtype=np.int64, device=x.device)


@on_host("NonZero")
def _nonzero_host(x: Host) -> Any:
    return np.stack(np.nonzero(x)) if x.ndim else np.zeros((0, int(np.count_nonzero(x))), np.int64)


@operator("OneHot")
def one_hot(indices: Tensor, depth: Host, values: Tensor, *, axis: int = -1) -> Tensor:
    """The second of two values at the index along a new axis, the first elsewhere; indices from -depth on count from
    the end."""
    size = int(depth.reshape(()))
    counted = nnc.astype(indices, np.int64)
    wrapped = nnc.where(nnc.less(counted, 0), nnc.add(counted, size), counted)
    marked = nnc.moveaxis(nnc.one_hot(wrapped, size, dtype=bool), -1, axis)
    return nnc.where(marked, values[1], values[0])


@operator("ReverseSequence")
def reverse_sequence(x: Tensor, lengths: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    return nnc.reverse_sequence(x, lengths, axis=time_axis, batch_axis=batch_axis)
