"""Pools."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.lanes import Host
from nnc_core.io.onnx.reading.operators.convolution import geometry
from nnc_core.io.onnx.reading.operators.edges import padded
from nnc_core.io.onnx.reading.operators.windows import layout_of
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.io.onnx.reading.run import NodeCall
from nnc_core.values.tensor import Tensor

AVERAGE = {1: nnc.avg_pool1d, 2: nnc.avg_pool2d, 3: nnc.avg_pool3d}
MAXIMUM = {1: nnc.max_pool1d, 2: nnc.max_pool2d, 3: nnc.max_pool3d}


@operator("AveragePool")
def average_pool(x: Tensor, *, kernel_shape: Any, auto_pad: str = "NOTSET", ceil_mode: int = 0,
                 count_include_pad: int = 0, dilations: Any = None, pads: Any = None, strides: Any = None) -> Tensor:
    dims = x.ndim - 2
    settings = geometry(x, kernel_shape, auto_pad, pads, strides, dilations)
    return AVERAGE[dims](x, kernel_shape, ceil_mode=bool(ceil_mode), count_padding=bool(count_include_pad),
                         layout=layout_of(dims), **settings)


@operator("MaxPool")
def max_pool(x: Tensor, *, kernel_shape: Any, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Any = None,
             pads: Any = None, storage_order: int = 0, strides: Any = None, call: NodeCall) -> Any:
    dims = x.ndim - 2
    settings = geometry(x, kernel_shape, auto_pad, pads, strides, dilations)
    found = MAXIMUM[dims](x, kernel_shape, ceil_mode=bool(ceil_mode), with_indices=call.wants(1),
                          layout=layout_of(dims), **settings)
    return (found[0], _in_all(found[1], x.shape, bool(storage_order))) if call.wants(1) else found


def _in_all(places: Tensor, shape: tuple[Any, ...], column_major: bool) -> Tensor:
    """Places in an image as places in the whole array; `column_major` counts the first dimension fastest."""
    size = prod(shape[2:])
    if column_major:
        places = _column_major(places, shape[2:])
    images = nnc.reshape(nnc.arange(shape[0] * shape[1], dtype=np.int64, device=places.device),
                         (*shape[:2], *[1] * (len(shape) - 2)))
    return nnc.add(nnc.astype(places, np.int64), nnc.multiply(images, size))


def _column_major(places: Tensor, sizes: tuple[Any, ...]) -> Tensor:
    total, factor, rest = nnc.zeros_like(places), prod(sizes), places
    for size in reversed(sizes):
        factor = factor // size
        total = nnc.add(total, nnc.multiply(nnc.remainder(rest, size), factor))
        rest = nnc.floor_divide(rest, size)
    return total


@operator("MaxUnpool")
def max_unpool(x: Tensor, indices: Tensor, shape: Host | None = None, *, kernel_shape: Any, pads: Any = None,
               strides: Any = None) -> Tensor:
    dims = x.ndim - 2
    strides, pads = strides or (1,) * dims, pads or (0,) * 2 * dims
    own = [(n - 1) * s - pads[i] - pads[i + dims] + k
           for i, (n, s, k) in enumerate(zip(x.shape[2:], strides, kernel_shape, strict=True))]
    full = (*x.shape[:2], *own)  # indices count through what was pooled
    flat = nnc.zeros((prod(full),), dtype=x.dtype, device=x.device)
    y = nnc.reshape(nnc.scatter(flat, 0, nnc.reshape(indices, (-1,)), nnc.reshape(x, (-1,))), full)
    if shape is None:
        return y
    return padded(y, (0,) * dims + tuple(int(n) - m for n, m in zip(shape[2:], own, strict=True)), "constant", 0,
                  tuple(range(2, x.ndim)))


@operator("LpPool")
def lp_pool(x: Tensor, *, kernel_shape: Any, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Any = None,
            p: float = 2, pads: Any = None, strides: Any = None) -> Tensor:
    settings = geometry(x, kernel_shape, auto_pad, pads, strides, dilations)
    return nnc.lp_pool(x, kernel_shape, p=p, ceil_mode=bool(ceil_mode), layout=layout_of(x.ndim - 2), **settings)


# ---- of whole images
def _spatial(x: Tensor) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


@operator("GlobalAveragePool")
def global_average_pool(x: Tensor) -> Tensor:
    return nnc.mean(x, axis=_spatial(x), keepdims=True)


@operator("GlobalMaxPool")
def global_max_pool(x: Tensor) -> Tensor:
    return nnc.max(x, axis=_spatial(x), keepdims=True)


@operator("GlobalLpPool")
def global_lp_pool(x: Tensor, *, p: float = 2) -> Tensor:
    return nnc.pow(nnc.sum(nnc.pow(nnc.abs(x), p), axis=_spatial(x), keepdims=True), 1.0 / p)
