"""Pools over sliding windows, and max pooling undone."""

from __future__ import annotations

from math import inf
from typing import Any

from nnc_core.base import dtype as dt
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.functions.spatial import scattered_at
from nnc_core.functions.window_options import (
    Int,
    along,
    arranged,
    bound_to_size,
    is_same,
    per_axis,
    restored,
    size_of,
    sizes_of,
    sliding,
)
from nnc_core.type import Dims
from nnc_core.values.arguments import ArrayLike, as_value, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool", "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool"]


# ---- over sliding windows
def _pooling(x: ArrayLike, rank: int | None, window: Any, strides: Any, padding: Any, dilation: Any, ceil_mode: bool,
             layout: str | None) -> tuple[Value, dict[str, Any], Dims]:
    """Images, how windows slide over them, and by how much those of `ceil_mode` go beyond the padding."""
    v, order = arranged(as_value(x), layout, rank)
    sizes = sizes_of(v, order)
    size = per_axis(window, len(sizes), "window")
    how = sliding(sizes, size, size if strides is None else strides, padding, dilation)
    beyond = tuple([_beyond(*axis) for axis in zip(
        sizes, size, how["strides"], how["padding"], how["dilation"], strict=True)]) if ceil_mode else (0,) * len(size)
    how["padding"] = tuple([(a, b + more) for (a, b), more in zip(how["padding"], beyond, strict=True)])
    v = bound_to_size(v, order, how) if ceil_mode or is_same(padding) else v
    return v, {**how, "window": size, "layout": order}, beyond


def _beyond(length: Any, window: int, stride: int, padding: tuple[int, int], dilation: int) -> int:
    """The reach of one more window that begins inside the image or the padding before it, if any is left over."""
    before, after = padding
    if stride < 1:
        raise AttributeValueError(f"stride {stride} should be at least 1")
    room = length + before + after - (window - 1) * dilation - 1
    left = room % stride
    begins = room - left + stride
    return int(stride - left) if left and begins < length + before else 0


def _max_pool(rank: int, x: ArrayLike, window: Any, strides: Any, padding: Any, dilation: Any, ceil_mode: bool,
              with_indices: bool, layout: str) -> Tensor | tuple[Tensor, Tensor]:
    v, how, _ = _pooling(x, rank, window, strides, padding, dilation, ceil_mode, layout)
    y = Tensor(restored(F.max_pool(v, **how), layout))
    return (y, Tensor(restored(F.max_pool_place(v, **how), layout))) if with_indices else y


@names_itself
def max_pool1d(x: ArrayLike, /, window: Int, *, strides: Int | None = None, padding: Any = "VALID", dilation: Int = 1,
               ceil_mode: bool = False, with_indices: bool = False, layout: str = "NWC") -> Any:
    """The maximum of each window of sequences; see `max_pool2d`."""
    return _max_pool(1, x, window, strides, padding, dilation, ceil_mode, with_indices, layout)


@names_itself
def max_pool2d(x: ArrayLike, /, window: Int, *, strides: Int | None = None, padding: Any = "VALID", dilation: Int = 1,
               ceil_mode: bool = False, with_indices: bool = False, layout: str = "NHWC") -> Any:
    """The maximum of each window of each channel; NaN wins, and the first of equals has the gradient.

    `strides` default to the window, `padding` is as in `conv2d` and never wins.  `ceil_mode` keeps a last window that
    begins inside and ends beyond the padding.  `with_indices` gives (values, int64 indices), the indices into the
    flattened spatial dimensions of the image, which `max_unpool` takes.
    """
    return _max_pool(2, x, window, strides, padding, dilation, ceil_mode, with_indices, layout)


@names_itself
def max_pool3d(x: ArrayLike, /, window: Int, *, strides: Int | None = None, padding: Any = "VALID", dilation: Int = 1,
               ceil_mode: bool = False, with_indices: bool = False, layout: str = "NDHWC") -> Any:
    """The maximum of each window of volumes; see `max_pool2d`."""
    return _max_pool(3, x, window, strides, padding, dilation, ceil_mode, with_indices, layout)


def _avg_pool(rank: int, x: ArrayLike, window: Any, strides: Any, padding: Any, dilation: Any, ceil_mode: bool,
              count_padding: bool, layout: str) -> Tensor:
    v, how, beyond = _pooling(x, rank, window, strides, padding, dilation, ceil_mode, layout)
    if count_padding and any(beyond):  # what lies beyond the padding never counts
        pads = [(a, b - more) for (a, b), more in zip(how["padding"], beyond, strict=True)]
        v = F.pad(v, low=along(how["layout"], 0, [a for a, _ in pads], 0),
                  high=along(how["layout"], 0, [b for _, b in pads], 0), interior=(0,) * v.ndim)
        how["padding"], count_padding = tuple([(0, more) for more in beyond]), False
    return Tensor(restored(F.avg_pool(v, count_padding=count_padding, **how), layout))


@names_itself
def avg_pool1d(x: ArrayLike, /, window: Int, *, strides: Int | None = None, padding: Any = "VALID", dilation: Int = 1,
               ceil_mode: bool = False, count_padding: bool = False, layout: str = "NWC") -> Tensor:
    """The mean of each window of sequences; see `avg_pool2d`."""
    return _avg_pool(1, x, window, strides, padding, dilation, ceil_mode, count_padding, layout)


@names_itself
def avg_pool2d(x: ArrayLike, /, window: Int, *, strides: Int | None = None, padding: Any = "VALID", dilation: Int = 1,
               ceil_mode: bool = False, count_padding: bool = False, layout: str = "NHWC") -> Tensor:
    """The mean of each window of each channel; padding does not count unless asked.

    `strides`, `padding` and `ceil_mode` are as in `max_pool2d`; what is beyond the padding never counts.
    """
    return _avg_pool(2, x, window, strides, padding, dilation, ceil_mode, count_padding, layout)


@names_itself
def avg_pool3d(x: ArrayLike, /, window: Int, *, strides: Int | None = None, padding: Any = "VALID", dilation: Int = 1,
               ceil_mode: bool = False, count_padding: bool = False, layout: str = "NDHWC") -> Tensor:
    """The mean of each window of volumes; see `avg_pool2d`."""
    return _avg_pool(3, x, window, strides, padding, dilation, ceil_mode, count_padding, layout)


@names_itself
def lp_pool(x: ArrayLike, /, window: Int, *, p: float = 2, strides: Int | None = None, padding: Any = "VALID",
            dilation: Int = 1, ceil_mode: bool = False, layout: str | None = None) -> Tensor:
    """(sum |x|**p) ** (1 / p) over each window, in one to three spatial dimensions; p may be inf.

    The gradient is 0 where a whole window is 0.
    """
    if not p > 0:
        raise AttributeValueError(f"p {p!r} should be greater than 0")
    v, how, _ = _pooling(x, None, window, strides, padding, dilation, ceil_mode, layout)
    if p == inf:
        return Tensor(restored(F.max_pool(F.abs(v), **how), layout))
    return Tensor(restored(_root(F.sum_pool(F.power(F.abs(v), float(p)), **how), float(p)), layout))


def _root(total: Value, p: float) -> Value:
    nothing = F.equal(total, 0)
    return F.where(nothing, 0, F.power(F.where(nothing, 1, total), 1 / p))


@names_itself
def max_unpool(x: ArrayLike, indices: ArrayLike, /, size: Any, *, layout: str | None = None) -> Tensor:
    """Images of the spatial dimensions `size`, zero but at the indices that a max pool gave for x."""
    values, places = as_values(x, indices)
    v, order = arranged(values, layout)
    where, _ = arranged(places, layout)
    if not dt.is_integer(where.dtype):
        raise DTypeError(f"the indices are {where.dtype}, not integers", hint="those of a pool with with_indices=True")
    if where.shape != v.shape:
        raise ShapeError(f"indices {where.spec} and values {v.spec} should have one shape")
    return Tensor(restored(scattered_at(v, where, size_of(size, len(order) - 2), order), layout))
