"""NumPy references of the window operators: sliding windows and matrix products, with channels last inside."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from nnc_core.base.dtype import accumulator, is_float
from nnc_core.base.moved_axes import moved
from nnc_core.shape.window import has_channels_last

Array = np.ndarray[Any, Any]


def _last(x: Array, layout: str) -> Array:
    """Channels moved to the last axis."""
    return x if has_channels_last(layout) else moved(x, 1, -1)


def _restored(x: Array, layout: str) -> Array:
    return x if has_channels_last(layout) else moved(x, -1, 1)


def _window_first(kernel: Array, layout: str) -> Array:
    """A kernel as (window, i, o)."""
    return kernel if has_channels_last(layout) else np.moveaxis(kernel, (1, 0), (-2, -1))


def _restored_kernel(kernel: Array, layout: str) -> Array:
    return kernel if has_channels_last(layout) else np.moveaxis(kernel, (-2, -1), (1, 0))


def _padded(x: Array, padding: Any, fill: Any = 0) -> Array:
    return np.pad(x, ((0, 0), *padding, (0, 0)), constant_values=fill)


def _windows(x: Array, window: Any, strides: Any, dilation: Any) -> Array:
    """View (n, counts, window, c) of every window of an image that is padded already."""
    n, *size, c = x.shape
    counts = [(length - (k - 1) * d - 1) // s + 1
              for length, k, s, d in zip(size, window, strides, dilation, strict=True)]
    sn, *steps, sc = x.strides
    outer = [a * s for a, s in zip(steps, strides, strict=True)]
    inner = [a * d for a, d in zip(steps, dilation, strict=True)]
    return np.lib.stride_tricks.as_strided(x, (n, *counts, *window, c), (sn, *outer, *inner, sc), writeable=False)


def _columns(seen: Array, rank: int, groups: int = 1) -> Array:
    """Windows as (n, positions, elements, groups, channels of a group)."""
    n, *middle, c = seen.shape
    return seen.reshape(n, prod(middle[:rank]), prod(middle[rank:]), groups, c // groups)


def _grouped(x: Array, groups: int, lead: int) -> Array:
    """(first axes, all pixels, groups, channels of a group)"""
    return x.reshape(*x.shape[:lead], prod(x.shape[lead:-1]), groups, x.shape[-1] // groups)


def conv(x: Array, kernel: Array, strides: Any, padding: Any, dilation: Any, groups: int, layout: str) -> Array:
    wide, rank = accumulator(x.dtype), x.ndim - 2
    image = _padded(_last(x, layout).astype(wide), padding)
    weights = _window_first(kernel, layout).astype(wide)
    seen = _windows(image, weights.shape[:rank], strides, dilation)
    columns = _columns(seen, rank, groups)
    out = np.einsum("npkgi,kigo->npgo", columns, _weights(weights, groups), optimize=True)
    return _restored(out.reshape(*seen.shape[: rank + 1], weights.shape[-1]), layout).astype(x.dtype)


def _weights(kernel: Array, groups: int) -> Array:
    """A kernel (window, i, o) as (elements, i, groups, outputs of a group)."""
    *window, i, o = kernel.shape
    return kernel.reshape(prod(window), i, groups, o // groups)


def conv_input_gradient(g: Array, kernel: Array, size: Any, strides: Any, padding: Any, dilation: Any, groups: int,
                        layout: str) -> Array:
    wide = accumulator(g.dtype)
    cotangent = _last(g, layout).astype(wide)
    weights = _window_first(kernel, layout).astype(wide)
    per_window = np.einsum("npgo,kigo->npkgi", _grouped(cotangent, groups, 1), _weights(weights, groups), optimize=True)
    *window, i, _ = weights.shape
    shape = (*cotangent.shape[:-1], *window, groups * i)
    return _restored(_overlap(per_window.reshape(shape), size, strides, padding, dilation), layout).astype(g.dtype)


def _overlap(per_window: Array, size: Any, strides: Any, padding: Any, dilation: Any) -> Array:
    """Add (n, counts, window, c) back onto the image that the windows were taken from."""
    rank = len(size)
    n, counts, window, c = (per_window.shape[0], per_window.shape[1 : rank + 1], per_window.shape[rank + 1 : -1],
                            per_window.shape[-1])
    out = np.zeros((n, *[length + a + b for length, (a, b) in zip(size, padding, strict=True)], c), per_window.dtype)
    for k, places in _taps(counts, window, strides, dilation):
        out[:, *places] += per_window[(slice(None),) * (rank + 1) + k]
    return out[:, *[slice(a, a + length) for length, (a, _) in zip(size, padding, strict=True)]]


def _taps(counts: Any, window: Any, strides: Any, dilation: Any) -> Iterator[tuple[Any, Any]]:
    """Each position in the window, and where in a padded image all windows have it."""
    for k in np.ndindex(*window):
        axes = zip(k, counts, strides, dilation, strict=True)
        yield k, [slice(e * d, e * d + (n - 1) * s + 1, s) for e, n, s, d in axes]


def conv_kernel_gradient(x: Array, g: Array, size: Any, strides: Any, padding: Any, dilation: Any, groups: int,
                         layout: str) -> Array:
    wide, rank = accumulator(x.dtype), x.ndim - 2
    image = _padded(_last(x, layout).astype(wide), padding)
    cotangent = _last(g, layout).astype(wide)
    axes = zip(size, strides, dilation, cotangent.shape[1:-1], strict=True)
    image = image[:, *[slice((k - 1) * d + (n - 1) * s + 1) for k, s, d, n in axes]]
    columns = _columns(_windows(image, size, strides, dilation), rank, groups)
    out = np.einsum("npkgi,npgo->kigo", columns, _grouped(cotangent, groups, 1), optimize=True)
    return _restored_kernel(out.reshape(*size, columns.shape[-1], cotangent.shape[-1]), layout).astype(x.dtype)


def _pool_windows(x: Array, window: Any, strides: Any, padding: Any, dilation: Any, layout: str, fill: Any) -> Array:
    """(n, counts, elements of a window, c)"""
    seen = _windows(_padded(_last(x, layout), padding, fill), window, strides, dilation)
    return seen.reshape(*seen.shape[: x.ndim - 1], prod(window), seen.shape[-1])


def _lowest(x: Array) -> Any:
    return -np.inf if is_float(x.dtype) else np.iinfo(x.dtype).min


def max_pool(x: Array, window: Any, strides: Any, padding: Any, dilation: Any, layout: str) -> Array:
    seen = _pool_windows(x, window, strides, padding, dilation, layout, _lowest(x))
    return _restored(np.maximum.reduce(seen, -2), layout)


def max_pool_index(x: Array, window: Any, strides: Any, padding: Any, dilation: Any, layout: str) -> Array:
    seen = _pool_windows(x, window, strides, padding, dilation, layout, _lowest(x))
    return _restored(np.argmax(seen, -2).astype(np.int32), layout)


def pool_take(x: Array, index: Array, window: Any, strides: Any, padding: Any, dilation: Any, layout: str) -> Array:
    seen = _pool_windows(x, window, strides, padding, dilation, layout, 0)
    chosen = np.take_along_axis(seen, _last(index, layout)[..., None, :].astype(np.int64), -2)
    return _restored(chosen[..., 0, :], layout)


def pool_put(g: Array, index: Array, size: Any, window: Any, strides: Any, padding: Any, dilation: Any,
             layout: str) -> Array:
    cotangent, named = _last(g, layout), _last(index, layout)
    *outer, c = cotangent.shape
    per_window = np.zeros((*outer, prod(window), c), accumulator(g.dtype))
    where, what = named[..., None, :].astype(np.int64), cotangent[..., None, :].astype(per_window.dtype)
    np.put_along_axis(per_window, where, what, -2)
    out = _overlap(per_window.reshape(*outer, *window, c), size, strides, padding, dilation)
    return _restored(out, layout).astype(g.dtype)


def sum_pool(x: Array, window: Any, strides: Any, padding: Any, dilation: Any, layout: str) -> Array:
    seen = _pool_windows(x.astype(accumulator(x.dtype)), window, strides, padding, dilation, layout, 0)
    return _restored(np.add.reduce(seen, -2), layout).astype(x.dtype)


def sum_pool_gradient(g: Array, size: Any, window: Any, strides: Any, padding: Any, dilation: Any,
                      layout: str) -> Array:
    cotangent = _last(g, layout).astype(accumulator(g.dtype))
    *outer, c = cotangent.shape
    alone = cotangent.reshape(*outer, *(1,) * len(window), c)
    per_window = np.broadcast_to(alone, (*outer, *window, c))
    return _restored(_overlap(per_window, size, strides, padding, dilation), layout).astype(g.dtype)


def unfold(x: Array, window: Any, strides: Any, padding: Any, dilation: Any, layout: str) -> Array:
    seen = _pool_windows(x, window, strides, padding, dilation, layout, 0)
    *outer, k, c = seen.shape
    if has_channels_last(layout):
        return seen.reshape(*outer, k * c)
    return moved(seen.swapaxes(-1, -2).reshape(*outer, k * c), -1, 1)


def fold(y: Array, size: Any, window: Any, strides: Any, padding: Any, dilation: Any, layout: str) -> Array:
    columns = _last(y, layout).astype(accumulator(y.dtype))
    *outer, both = columns.shape
    k = prod(window)
    if has_channels_last(layout):
        per_window = columns.reshape(*outer, *window, both // k)
    else:
        per_window = columns.reshape(*outer, both // k, k).swapaxes(-1, -2).reshape(*outer, *window, both // k)
    return _restored(_overlap(per_window, size, strides, padding, dilation), layout).astype(y.dtype)
