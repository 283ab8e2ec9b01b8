"""The order in which training sees its examples, and random shifts of images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from nnc_core.base.errors import DataError


def permutation(n: int, *, seed: int, stream: int = 0) -> NDArray[np.int64]:
    """The numbers 0 … n-1 in an order that depends on (seed, stream) alone; both in 0 … 2**64-1.

    Sorts the raw output of a Philox4x64-10 generator, which NumPy keeps unchanged from release to release; it
    gives no such promise for `Generator.permutation`.
    """
    for name, value in (("seed", seed), ("stream", stream)):
        if not 0 <= value < 2**64:
            raise DataError(f"{name} is {value}, expected 0 to 2**64-1")
    generator = np.random.Philox(key=np.array([seed, stream], dtype=np.uint64))
    return np.argsort(generator.random_raw(n), kind="stable").astype(np.int64, copy=False)


def batches(n: int, batch_size: int, *, seed: int, epoch: int,
            drop_last: bool = True) -> Iterator[NDArray[np.int64]]:
    """Index arrays that cover n examples once, in the order of (seed, epoch).

    Each has shape (batch_size,). What is left at the end comes as a smaller batch, or not at all under
    `drop_last`. Raises DataError (at the call, not at the first batch) when there would be no batch at all.
    """
    if batch_size < 1:
        raise DataError(f"batch_size is {batch_size}, expected at least 1")
    if n < (batch_size if drop_last else 1):
        raise DataError(f"{n} examples do not fill one batch of {batch_size}",
                        hint="a smaller batch_size, or drop_last=False" if n > 0 else "check the data set")
    order = permutation(n, seed=seed, stream=epoch)
    end = n - n % batch_size if drop_last else n
    return (order[start : start + batch_size] for start in range(0, end, batch_size))


def shift_images(images: NDArray[Any], limit: int, rng: np.random.Generator) -> NDArray[Any]:
    """Move each image by its own random dy and dx, uniform in -limit … limit pixels; zeros fill the rim.

    `images` has shape (N, H, W) or (N, H, W, C) and any dtype; the result is a new array of the same.
    """
    if limit < 0:
        raise DataError(f"limit is {limit} pixels, expected 0 or more")
    dy, dx = rng.integers(-limit, limit, size=(2, len(images)), endpoint=True)
    return translate_images(images, dy, dx)


def translate_images(images: NDArray[Any], dy: ArrayLike, dx: ArrayLike) -> NDArray[Any]:
    """Move image n down by dy[n] and right by dx[n] pixels (up and left where negative); zeros fill the rim.

    `images` has shape (N, H, W) or (N, H, W, C), `dy` and `dx` have (N,) integers; the result is a new array.
    """
    if images.ndim not in (3, 4):
        raise DataError(f"images have shape {images.shape}, expected (N, H, W) or (N, H, W, C)")
    down, right = _offsets(images, "dy", dy), _offsets(images, "dx", dx)
    height, width = images.shape[1:3]
    rim_y, rim_x = _reach(down), _reach(right)
    padded = np.pad(images, ((0, 0), (rim_y, rim_y), (rim_x, rim_x), *[(0, 0)] * (images.ndim - 3)))
    windows = sliding_window_view(padded, (height, width), axis=(1, 2))
    moved = windows[np.arange(len(images)), rim_y - down, rim_x - right]
    return np.ascontiguousarray(np.moveaxis(moved, (-2, -1), (1, 2)))


def _offsets(images: NDArray[Any], name: str, offsets: ArrayLike) -> NDArray[Any]:
    array = np.asarray(offsets)
    if array.shape != images.shape[:1] or array.dtype.kind not in "iu":
        raise DataError(f"{name} has shape {array.shape} and dtype {array.dtype}, "
                        f"expected {len(images)} integers, one for each image")
    return array.astype(np.int64)


def _reach(offsets: NDArray[Any]) -> int:
    return int(np.abs(offsets).max(initial=0))
