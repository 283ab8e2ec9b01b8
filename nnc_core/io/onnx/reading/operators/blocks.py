"""Blocks of images as channels, and columns as images."""

from __future__ import annotations

from math import prod

import numpy as np

from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.lanes import Host
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.values.tensor import Tensor


@operator("DepthToSpace")
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, h, w = x.shape
    b = blocksize
    if mode == "DCR":
        parts = nnc.permute_dims(nnc.reshape(x, (n, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2))
    else:
        parts = nnc.permute_dims(nnc.reshape(x, (n, c // (b * b), b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return nnc.reshape(parts, (n, c // (b * b), h * b, w * b))


@operator("SpaceToDepth")
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, h, w = x.shape
    b = blocksize
    blocks = nnc.reshape(x, (n, c, h // b, b, w // b, b))
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return nnc.reshape(nnc.permute_dims(blocks, order), (n, c * b * b, h // b, w // b))


@operator("Col2Im")
def col2im(x: Tensor, image: Host, block: Host, *, dilations: tuple[int, ...] | None = None,
           pads: tuple[int, ...] | None = None, strides: tuple[int, ...] | None = None) -> Tensor:
    """Columns (batch, channels * block, positions) added where they came from; any number of dimensions."""
    size, window = tuple(map(int, image)), tuple(map(int, block))
    n = len(size)
    dilation, stride = dilations or (1,) * n, strides or (1,) * n
    low = tuple(pads[:n]) if pads else (0,) * n
    high = tuple(pads[n:]) if pads else (0,) * n
    full = [size[i] + low[i] + high[i] for i in range(n)]
    counts = [(full[i] - dilation[i] * (window[i] - 1) - 1) // stride[i] + 1 for i in range(n)]
    channels = x.shape[1] // prod(window)
    blocks = nnc.reshape(x, (x.shape[0], channels, prod(window), *counts))
    total: Tensor | None = None
    for k, offset in enumerate(np.ndindex(*window)):
        widths = [(offset[i] * dilation[i], full[i] - offset[i] * dilation[i] - (counts[i] - 1) * stride[i] - 1)
                  for i in range(n)]
        placed = _spread(blocks[:, :, k], stride)
        placed = nnc.pad(placed, [(0, 0), (0, 0), *widths])
        total = placed if total is None else nnc.add(total, placed)
    assert total is not None
    return total[(slice(None), slice(None), *(slice(low[i], low[i] + size[i]) for i in range(n)))]


def _spread(x: Tensor, strides: tuple[int, ...]) -> Tensor:
    """Zeros between the elements of spatial axes."""
    for axis, stride in enumerate(strides, start=2):
        if stride > 1:
            size = x.shape[axis]
            wide = nnc.pad(nnc.expand_dims(x, axis + 1), [(0, 0)] * (axis + 1) + [(0, stride - 1)]
                           + [(0, 0)] * (x.ndim - axis - 1))
            merged = nnc.reshape(wide, (*x.shape[:axis], size * stride, *x.shape[axis + 1:]))
            x = merged[(*[slice(None)] * axis, slice(0, (size - 1) * stride + 1))]
    return x
