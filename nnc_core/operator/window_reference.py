"""NumPy references of the window operators: sliding windows and matrix products, in NHWC inside."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.dtype import accumulator, is_float

Array = np.ndarray[Any, Any]


def _nhwc(x: Array, layout: str) -> Array:
    return x if layout == "NHWC" else x.transpose(0, 2, 3, 1)


def _from_nhwc(x: Array, layout: str) -> Array:
    return x if layout == "NHWC" else x.transpose(0, 3, 1, 2)


def _hwio(kernel: Array, layout: str) -> Array:
    return kernel if layout == "NHWC" else kernel.transpose(2, 3, 1, 0)


def _from_hwio(kernel: Array, layout: str) -> Array:
    return kernel if layout == "NHWC" else kernel.transpose(3, 2, 0, 1)


def _padded(x: Array, padding: Any, fill: Any = 0) -> Array:
    return np.pad(x, ((0, 0), *padding, (0, 0)), constant_values=fill)


def _windows(x: Array, window: Any, strides: Any, dilation: Any) -> Array:
    """View (n, h, w, kh, kw, c) of every window of an image that is padded already."""
    n, height, width, c = x.shape
    span = [(k - 1) * d + 1 for k, d in zip(window, dilation, strict=True)]
    h, w = ((length - s) // stride + 1 for length, s, stride in zip((height, width), span, strides, strict=True))
    sn, sh, sw, sc = x.strides
    steps = (sn, sh * strides[0], sw * strides[1], sh * dilation[0], sw * dilation[1], sc)
    return np.lib.stride_tricks.as_strided(x, (n, h, w, *window, c), steps, writeable=False)


def _grouped(x: Array, groups: int) -> Array:
    """The last axis split into (groups, channels of a group)."""
    return x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)


def _joined(x: Array) -> Array:
    """The last two axes as one; reshape(-1) cannot tell its length where there are no images."""
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def conv2d(x: Array, kernel: Array, strides: Any, padding: Any, dilation: Any, groups: int, layout: str) -> Array:
    wide = accumulator(x.dtype)
    image = _padded(_nhwc(x, layout).astype(wide), padding)
    weights = _grouped(_hwio(kernel, layout).astype(wide), groups)
    seen = _grouped(_windows(image, weights.shape[:2], strides, dilation), groups)
    out = np.einsum("nhwklgi,kligo->nhwgo", seen, weights, optimize=True)
    return _from_nhwc(_joined(out), layout).astype(x.dtype)


def conv2d_input_gradient(g: Array, kernel: Array, size: Any, strides: Any, padding: Any, dilation: Any, groups: int,
                          layout: str) -> Array:
    wide = accumulator(g.dtype)
    cotangent = _grouped(_nhwc(g, layout).astype(wide), groups)
    weights = _grouped(_hwio(kernel, layout).astype(wide), groups)
    per_window = np.einsum("nhwgo,kligo->nhwklgi", cotangent, weights, optimize=True)
    return _from_nhwc(_overlap(_joined(per_window), size, strides, padding, dilation), layout).astype(g.dtype)


def _overlap(per_window: Array, size: Any, strides: Any, padding: Any, dilation: Any) -> Array:
    """Add (n, h, w, kh, kw, c) back onto the image that the windows were taken from."""
    n, h, w, kh, kw, c = per_window.shape
    (top, bottom), (left, right) = padding
    out = np.zeros((n, size[0] + top + bottom, size[1] + left + right, c), per_window.dtype)
    for k in range(kh):
        for j in range(kw):
            rows = slice(k * dilation[0], k * dilation[0] + (h - 1) * strides[0] + 1, strides[0])
            columns = slice(j * dilation[1], j * dilation[1] + (w - 1) * strides[1] + 1, strides[1])
            out[:, rows, columns] += per_window[:, :, :, k, j]
    return out[:, top : top + size[0], left : left + size[1]]


def conv2d_kernel_gradient(x: Array, g: Array, size: Any, strides: Any, padding: Any, dilation: Any, groups: int,
                           layout: str) -> Array:
    wide = accumulator(x.dtype)
    image = _padded(_nhwc(x, layout).astype(wide), padding)
    cotangent = _nhwc(g, layout).astype(wide)
    _, h, w, o = cotangent.shape
    image = image[:, : (size[0] - 1) * dilation[0] + (h - 1) * strides[0] + 1,
                  : (size[1] - 1) * dilation[1] + (w - 1) * strides[1] + 1]
    seen = _grouped(_windows(image, size, strides, dilation), groups)
    out = np.einsum("nhwklgi,nhwgo->kligo", seen, _grouped(cotangent, groups), optimize=True)
    return _from_hwio(out.reshape(*out.shape[:3], o), layout).astype(x.dtype)


def _pool_windows(x: Array, window: Any, strides: Any, padding: Any, dilation: Any, layout: str, fill: Any) -> Array:
    """(n, h, w, kh * kw, c)"""
    seen = _windows(_padded(_nhwc(x, layout), padding, fill), window, strides, dilation)
    return seen.reshape(*seen.shape[:3], window[0] * window[1], seen.shape[5])


def _lowest(x: Array) -> Any:
    return -np.inf if is_float(x.dtype) else np.iinfo(x.dtype).min


def max_pool2d(x: Array, window: Any, strides: Any, padding: Any, dilation: Any, layout: str) -> Array:
    seen = _pool_windows(x, window, strides, padding, dilation, layout, _lowest(x))
    return _from_nhwc(np.maximum.reduce(seen, 3), layout)


def max_pool2d_index(x: Array, window: Any, strides: Any, padding: Any, dilation: Any, layout: str) -> Array:
    seen = _pool_windows(x, window, strides, padding, dilation, layout, _lowest(x))
    return _from_nhwc(np.argmax(seen, 3).astype(np.int32), layout)


def pool2d_take(x: Array, index: Array, window: Any, strides: Any, padding: Any, dilation: Any, layout: str) -> Array:
    seen = _pool_windows(x, window, strides, padding, dilation, layout, 0)
    chosen = np.take_along_axis(seen, _nhwc(index, layout)[:, :, :, None].astype(np.int64), 3)
    return _from_nhwc(chosen[:, :, :, 0], layout)


def pool2d_put(g: Array, index: Array, size: Any, window: Any, strides: Any, padding: Any, dilation: Any,
               layout: str) -> Array:
    cotangent, named = _nhwc(g, layout), _nhwc(index, layout)
    n, h, w, c = cotangent.shape
    per_window = np.zeros((n, h, w, window[0] * window[1], c), accumulator(g.dtype))
    where, what = named[:, :, :, None].astype(np.int64), cotangent[:, :, :, None].astype(per_window.dtype)
    np.put_along_axis(per_window, where, what, 3)
    out = _overlap(per_window.reshape(n, h, w, *window, c), size, strides, padding, dilation)
    return _from_nhwc(out, layout).astype(g.dtype)


def sum_pool2d(x: Array, window: Any, strides: Any, padding: Any, dilation: Any, layout: str) -> Array:
    seen = _pool_windows(x.astype(accumulator(x.dtype)), window, strides, padding, dilation, layout, 0)
    return _from_nhwc(np.add.reduce(seen, 3), layout).astype(x.dtype)


def sum_pool2d_gradient(g: Array, size: Any, window: Any, strides: Any, padding: Any, dilation: Any,
                        layout: str) -> Array:
    cotangent = _nhwc(g, layout).astype(accumulator(g.dtype))
    n, h, w, c = cotangent.shape
    per_window = np.broadcast_to(cotangent[:, :, :, None, None], (n, h, w, *window, c))
    return _from_nhwc(_overlap(per_window, size, strides, padding, dilation), layout).astype(g.dtype)
