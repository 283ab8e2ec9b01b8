"""Products of 8-bit integers with zero points, as ONNX has them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from nnc_core.base.dtype import int32
from nnc_core.base.errors import ShapeError
from nnc_core.functions.constants import constant_beside
from nnc_core.functions.padding import pad
from nnc_core.functions.quantisation import zero_point_beside
from nnc_core.functions.window_options import (
    Int,
    arranged,
    arranged_kernel,
    bound_to_size,
    is_same,
    rank_of,
    restored,
    sizes_of,
    sliding,
    spatial_axes,
)
from nnc_core.shape.window import Filter, has_channels_last
from nnc_core.values.arguments import ArrayLike, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["conv_integer", "matmul_integer"]


@names_itself
def matmul_integer(a: ArrayLike, b: ArrayLike, a_zero_point: ArrayLike | None = None,
                   b_zero_point: ArrayLike | None = None, /) -> Tensor:
    """(a - a_zero_point) @ (b - b_zero_point) in int32, exactly, of stacks of matrices of int8 or uint8.

    Each factor has its own dtype, and its zero point that dtype: a number, or a vector, for the rows of a or the
    columns of b.  Sums wrap around, which takes more than 33,000 products.
    """
    v, w = as_values(a, b)
    y = F.matmul_integer(v, w)
    rows = None if a_zero_point is None else _of_matrix(zero_point_beside(a_zero_point, v, v.dtype), rows=True)
    columns = None if b_zero_point is None else _of_matrix(zero_point_beside(b_zero_point, w, w.dtype), rows=False)
    if rows is not None:
        y = F.subtract(y, F.multiply(rows, _sums(w, (w.ndim - 2,), None)))
    if columns is not None:
        y = F.subtract(y, F.multiply(columns, _sums(v, (v.ndim - 1,), rows)))
    return Tensor(y)


@names_itself
def conv_integer(x: ArrayLike, kernel: ArrayLike, x_zero_point: ArrayLike | None = None,
                 kernel_zero_point: ArrayLike | None = None, /, *, strides: Int = 1, padding: Any = "VALID",
                 dilation: Int = 1, groups: int = 1, layout: str | None = None) -> Tensor:
    """The convolution of x - x_zero_point with kernel - kernel_zero_point in int32, exactly, of int8 or uint8.

    One, two or three spatial dimensions; options as `conv2d` has them, the layout by default with channels last.
    Padding is with the zero point.  Each factor has its own dtype, and its zero point that dtype: a number, that of the
    kernel also a vector with one for each output channel.
    """
    v, k = as_values(x, kernel)
    v, order = arranged(v, layout, rank_of(v))
    k = arranged_kernel(k, layout)
    filter = Filter.of(k.spec, order)
    how = sliding(sizes_of(v, order), filter.size, strides, padding, dilation)
    v = bound_to_size(v, order, how) if is_same(padding) else v
    given = None if x_zero_point is None else zero_point_beside(x_zero_point, v, v.dtype)
    if given is not None:
        if given.ndim:
            raise ShapeError(f"x_zero_point {given.spec} should be a number")
        v, how["padding"] = _padded(v, given, order, how["padding"]), ((0, 0),) * len(filter.size)
    slide = {**how, "groups": groups, "layout": order}
    y = F.conv_integer(v, k, **slide)
    zero = None if given is None else F.cast(given, dtype=int32)
    own = None if kernel_zero_point is None else _by_channel(zero_point_beside(kernel_zero_point, k, k.dtype), order)
    if zero is not None:
        axes = (*range(len(filter.size)), k.ndim - 2) if has_channels_last(order) else tuple(range(1, k.ndim))
        sums = F.sum(F.cast(k, dtype=int32), axis=axes, keepdims=False)
        y = F.subtract(y, F.multiply(zero, _channels(sums, order)))
    if own is not None:
        y = F.subtract(y, F.multiply(own, _window_sums(v, filter, slide, order)))
    if zero is not None and own is not None:
        count = constant_beside(v, prod((*filter.size, filter.i)), int32)
        y = F.add(y, F.multiply(F.multiply(zero, own), count))
    return Tensor(restored(y, layout))


# ---- matrices
def _of_matrix(zero: Value, rows: bool) -> Value:
    """A zero point beside a matrix."""
    wide = F.cast(zero, dtype=int32)
    if zero.ndim > 1:
        raise ShapeError(f"a zero point of {zero.spec} should be a number or a vector")
    return F.reshape(wide, shape=(*zero.shape, 1)) if rows and zero.ndim else wide


def _sums(x: Value, axis: tuple[int, ...], zero: Value | None) -> Value:
    wide = F.cast(x, dtype=int32)
    return F.sum(wide if zero is None else F.subtract(wide, zero), axis=axis, keepdims=True)


# ---- images
def _padded(x: Value, zero: Value, order: str, padding: Any) -> Value:
    """Images with the zero point around them."""
    if not any(map(any, padding)):
        return x
    widths = [(0, 0)] * x.ndim
    for axis, pair in zip(spatial_axes(order), padding, strict=True):
        widths[axis] = pair
    return pad(Tensor(x), tuple(widths), value=Tensor(zero))._value


def _channels(x: Value, order: str) -> Value:
    """A vector along the channels of images."""
    return x if has_channels_last(order) else F.reshape(x, shape=(*x.shape, *(1,) * (len(order) - 2)))


def _by_channel(zero: Value, order: str) -> Value:
    wide = F.cast(zero, dtype=int32)
    if zero.ndim > 1:
        raise ShapeError(f"a zero point of {zero.spec} should be a number or a vector")
    return _channels(wide, order) if zero.ndim else wide


def _window_sums(x: Value, filter: Filter, slide: dict[str, Any], order: str) -> Value:
    """The sum of the elements of each window, for each output channel or for all."""
    groups = slide["groups"]
    ones = constant_beside(x, np.ones(Filter(filter.size, filter.i, groups).spec(order, np.dtype(np.int8)).static_shape,
                                      np.int8))
    sums = F.conv_integer(x, ones, **slide)
    if groups == 1:
        return sums
    axis = sums.ndim - 1 if has_channels_last(order) else 1
    numbers = np.repeat(np.arange(groups), filter.o // groups)
    return F.take(sums, constant_beside(x, numbers), axis=axis, batch=0)
