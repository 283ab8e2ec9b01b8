"""Elements written at indices."""

from __future__ import annotations

import numpy as np

from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.values.tensor import Tensor

REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@operator("Scatter", "ScatterElements")
def scatter_elements(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none") -> Tensor:
    places = nnc.astype(indices, np.int64)
    wrapped = nnc.where(nnc.less(places, 0), nnc.add(places, x.shape[axis]), places)
    if reduction == "none":
        return nnc.scatter(x, axis, wrapped, updates)
    return nnc.scatter_reduce(x, axis, wrapped, updates, REDUCTIONS[reduction])


MODES = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}


@operator("ScatterND")
def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    return nnc.scatter_nd(x, indices, updates, mode=MODES[reduction])


@operator("TensorScatter")
def tensor_scatter(past: Tensor, update: Tensor, write: Tensor | None = None, *, axis: int = -2,
                   mode: str = "linear") -> Tensor:
    """A cache of sequences with an update of each written from an index of its own on, around the end if circular."""
    axis = axis % past.ndim
    length, count = past.shape[axis], update.shape[axis]
    steps = nnc.arange(count, dtype=np.int64, device=past.device)
    first = nnc.zeros((past.shape[0],), dtype=np.int64, device=past.device) if write is None else write
    places = nnc.add(nnc.expand_dims(first, 1), steps)
    if mode == "circular":
        places = nnc.remainder(places, length)
    index = nnc.reshape(places, (past.shape[0], *[1] * (axis - 1), count, *[1] * (past.ndim - axis - 1)))
    return nnc.scatter(past, axis, nnc.broadcast_to(index, update.shape), update)
