"""Convolution, pools and layouts by plain loops over windows, in any number of dimensions, with channels last."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LAYOUTS = {1: ("NWC", "NCW", "CWN"), 2: ("NHWC", "NCHW", "CHWN"), 3: ("NDHWC", "NCDHW", "CDHWN")}


def in_layout(x: Array, layout: str) -> Array:
    """From channels last."""
    if layout.startswith("NC"):
        return np.ascontiguousarray(np.moveaxis(x, -1, 1))
    return x if layout.endswith("C") else np.ascontiguousarray(np.swapaxes(x, 0, -1))


def last(x: Any, layout: str) -> Array:
    """Back to channels last."""
    x = np.asarray(x.numpy() if hasattr(x, "numpy") else x)
    if layout.startswith("NC"):
        return np.moveaxis(x, 1, -1)
    return x if layout.endswith("C") else np.swapaxes(x, 0, -1)


def kernel_in(kernel: Array, layout: str) -> Array:
    """From (window, I, O)."""
    if layout.startswith("NC"):
        return np.ascontiguousarray(np.moveaxis(kernel, (-1, -2), (0, 1)))
    return kernel if layout.endswith("C") else np.ascontiguousarray(np.moveaxis(kernel, -2, 0))


def windows(size: Sequence[int], counts: Sequence[int], window: Sequence[int], strides: Sequence[int],
            padding: Sequence[tuple[int, int]], dilation: Sequence[int]) -> Iterator[tuple[Any, Any, Any]]:
    """(window, place in it, place in the image) for all places inside the image."""
    for at in itertools.product(*map(range, counts)):
        for k in itertools.product(*map(range, window)):
            place = tuple(a * s + e * d - p for a, s, e, d, (p, _) in zip(
                at, strides, k, dilation, padding, strict=True))  # fmt: skip
            if all(0 <= p < n for p, n in zip(place, size, strict=True)):
                yield at, k, place


def counted(size: Any, window: Any, strides: Any, padding: Any, dilation: Any) -> list[int]:
    return [(n + a + b - (k - 1) * d - 1) // s + 1
            for n, k, s, (a, b), d in zip(size, window, strides, padding, dilation, strict=True)]


def correlated(x: Array, kernel: Array, strides: Any, padding: Any, dilation: Any, groups: int = 1) -> Array:
    size, window, (i, o) = x.shape[1:-1], kernel.shape[:-2], kernel.shape[-2:]
    counts = counted(size, window, strides, padding, dilation)
    out, per = np.zeros((len(x), *counts, o)), o // groups
    for at, k, place in windows(size, counts, window, strides, padding, dilation):
        for g in range(groups):
            mine = slice(g * per, (g + 1) * per)
            out[(slice(None), *at, mine)] += x[(slice(None), *place, slice(g * i, (g + 1) * i))] @ kernel[k][:, mine]
    return out


def spread(x: Array, kernel: Array, strides: Any, padding: Any, dilation: Any, more: Any, groups: int = 1) -> Array:
    """The transposed convolution: each pixel adds its multiple of the kernel, and the padding is cut off."""
    counts, window, (i, o) = x.shape[1:-1], kernel.shape[:-2], kernel.shape[-2:]
    reach = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(counts, strides, window, dilation, strict=True)]
    whole, per = np.zeros((len(x), *[r + m for r, m in zip(reach, more, strict=True)], i * groups)), o // groups
    for at in itertools.product(*map(range, counts)):
        for k in itertools.product(*map(range, window)):
            place = tuple(a * s + e * d for a, s, e, d in zip(at, strides, k, dilation, strict=True))
            for g in range(groups):
                taken = x[(slice(None), *at, slice(g * per, (g + 1) * per))] @ kernel[k][:, g * per : (g + 1) * per].T
                whole[(slice(None), *place, slice(g * i, (g + 1) * i))] += taken
    cut = [slice(a, r + m - b) for (a, b), r, m in zip(padding, reach, more, strict=True)]
    return whole[(slice(None), *cut)]


def pooled(kind: str, x: Array, window: Any, strides: Any, padding: Any, dilation: Any, counts: Any = None) -> Any:
    """Over the elements inside the image: "max" with places, "avg" with how many, "sum of squares"."""
    size = x.shape[1:-1]
    counts = counts or counted(size, window, strides, padding, dilation)
    shape = (len(x), *counts, x.shape[-1])
    out = np.full(shape, -np.inf) if kind == "max" else np.zeros(shape)
    also = np.zeros(shape, np.int64)
    for at, _, place in windows(size, counts, window, strides, padding, dilation):
        here, value = (slice(None), *at), x[(slice(None), *place)]
        if kind == "max":
            better = value > out[here]
            out[here] = np.where(better, value, out[here])
            also[here] = np.where(better, np.ravel_multi_index(place, size), also[here])
        else:
            out[here] += value * value if kind == "squares" else value
            also[here] += 1
    return out, also
