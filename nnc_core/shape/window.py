"""Rules of operators with sliding windows: convolution and pooling in two dimensions.

Layouts are NHWC (kernels HWIO: height, width, input channels of a group, output channels) and NCHW (kernels OIHW).
"""

from __future__ import annotations

from typing import NamedTuple

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.shape.elementwise import floating, same_dtype
from nnc_core.type import DimLike, TensorSpec

Pair = tuple[int, int]
Padding = tuple[Pair, Pair]
LAYOUTS = ("NHWC", "NCHW")


class Image(NamedTuple):
    """The dimensions of a batch of images, whatever their layout."""

    n: DimLike
    h: DimLike
    w: DimLike
    c: DimLike

    @staticmethod
    def of(spec: TensorSpec, layout: str) -> Image:
        if layout not in LAYOUTS:
            raise AttributeValueError(f"layout {layout!r} is none of {', '.join(LAYOUTS)}")
        if spec.ndim != 4:
            raise ShapeError(f"{spec} should have the four dimensions {layout}")
        if layout == "NHWC":
            return Image(*spec.shape)
        n, c, h, w = spec.shape
        return Image(n, h, w, c)

    def spec(self, layout: str, dtype: DType) -> TensorSpec:
        n, h, w, c = self
        return TensorSpec((n, h, w, c) if layout == "NHWC" else (n, c, h, w), dtype)


class Filter(NamedTuple):
    """The dimensions of a convolution's kernel, whatever its layout."""

    h: DimLike
    w: DimLike
    i: DimLike
    o: DimLike

    @staticmethod
    def of(spec: TensorSpec, layout: str) -> Filter:
        if spec.ndim != 4:
            raise ShapeError(f"kernel {spec} should have four dimensions")
        if layout == "NHWC":
            return Filter(*spec.shape)
        o, i, h, w = spec.shape
        return Filter(h, w, i, o)

    def spec(self, layout: str, dtype: DType) -> TensorSpec:
        h, w, i, o = self
        return TensorSpec((h, w, i, o) if layout == "NHWC" else (o, i, h, w), dtype)


def window_count(length: DimLike, window: DimLike, stride: int, padding: Pair, dilation: int) -> DimLike:
    """How many windows fit along an axis."""
    if stride < 1 or dilation < 1 or min(padding) < 0:
        raise AttributeValueError(f"stride {stride} and dilation {dilation} should be at least 1, "
                                  f"padding {padding} at least 0")
    room = length + (padding[0] + padding[1]) - (window - 1) * dilation - 1
    if isinstance(room, int) and room < 0:
        raise ShapeError(f"a window of {window} (dilation {dilation}) does not fit in length {length} "
                         f"padded by {padding}")
    return room // stride + 1


def conv2d(x: TensorSpec, kernel: TensorSpec, strides: Pair, padding: Padding, dilation: Pair, groups: int,
           layout: str) -> TensorSpec:
    image, filter = Image.of(x, layout), Filter.of(kernel, layout)
    _float_kernel(x, kernel)
    _check_channels(image.c, filter, groups)
    h = window_count(image.h, filter.h, strides[0], padding[0], dilation[0])
    w = window_count(image.w, filter.w, strides[1], padding[1], dilation[1])
    return Image(image.n, h, w, filter.o).spec(layout, x.dtype)


def conv2d_input_gradient(g: TensorSpec, kernel: TensorSpec, size: Pair, strides: Pair, padding: Padding,
                          dilation: Pair, groups: int, layout: str) -> TensorSpec:
    """`size`: height and width of the convolution's input."""
    image, filter = Image.of(g, layout), Filter.of(kernel, layout)
    _float_kernel(g, kernel)
    out = Image(image.n, size[0], size[1], filter.i * groups).spec(layout, g.dtype)
    _check_result(conv2d(out, kernel, strides, padding, dilation, groups, layout), g)
    return out


def conv2d_kernel_gradient(x: TensorSpec, g: TensorSpec, size: Pair, strides: Pair, padding: Padding, dilation: Pair,
                           groups: int, layout: str) -> TensorSpec:
    """`size`: height and width of the convolution's kernel."""
    channels = Image.of(x, layout).c
    _float_kernel(x, g)
    _check_groups(groups)
    if isinstance(channels, int) and channels % groups:
        raise ShapeError(f"{channels} channels do not divide into {groups} groups")
    out = Filter(size[0], size[1], channels // groups, Image.of(g, layout).c).spec(layout, x.dtype)
    _check_result(conv2d(x, out, strides, padding, dilation, groups, layout), g)
    return out


def _check_result(spec: TensorSpec, g: TensorSpec) -> None:
    if spec != g:
        raise ShapeError(f"the cotangent is {g} where the convolution gives {spec}")


def _float_kernel(x: TensorSpec, kernel: TensorSpec) -> None:
    if not dt.is_float(same_dtype(x, kernel)):
        raise DTypeError(f"needs floating-point numbers, not {x.dtype}", hint="cast with astype")


def _check_groups(groups: int) -> None:
    if groups < 1:
        raise AttributeValueError(f"groups {groups} should be at least 1")


def _check_channels(channels: DimLike, filter: Filter, groups: int) -> None:
    _check_groups(groups)
    if filter.i * groups != channels:
        raise ShapeError(f"the kernel takes {filter.i} channels in each of {groups} groups, the input has {channels}")
    if isinstance(filter.o, int) and filter.o % groups:
        raise ShapeError(f"{filter.o} output channels do not divide into {groups} groups")


def pool2d(x: TensorSpec, window: Pair, strides: Pair, padding: Padding, dilation: Pair, layout: str) -> TensorSpec:
    """One result for each window and channel."""
    image = Image.of(x, layout)
    if x.dtype == dt.boolean:
        raise DTypeError("needs numbers, not booleans", hint="cast with astype")
    if min(window) < 1:
        raise AttributeValueError(f"window {window} should be at least 1")
    h = window_count(image.h, window[0], strides[0], padding[0], dilation[0])
    w = window_count(image.w, window[1], strides[1], padding[1], dilation[1])
    _check_windows_see(image.h, window[0], strides[0], padding[0], dilation[0])
    _check_windows_see(image.w, window[1], strides[1], padding[1], dilation[1])
    return Image(image.n, h, w, image.c).spec(layout, x.dtype)


def _check_windows_see(length: DimLike, window: int, stride: int, padding: Pair, dilation: int) -> None:
    """A window that lies in the padding alone has no maximum; one with gaps can even straddle a short image."""
    blind = max(padding) > (window - 1) * dilation
    if isinstance(length, int) and dilation > length and not blind:
        starts = range(-padding[0], length + padding[1] - (window - 1) * dilation, stride)
        blind = any(not any(0 <= s + k * dilation < length for k in range(window)) for s in starts)
    if blind:
        raise AttributeValueError(f"padding {padding} makes windows of {window} (dilation {dilation}) that see "
                                  f"nothing of length {length}", hint="pad less")


def avg_pool2d(x: TensorSpec, window: Pair, strides: Pair, padding: Padding, dilation: Pair, count_padding: bool,
               layout: str) -> TensorSpec:
    """Floats in, floats out."""
    return pool2d(floating(x), window, strides, padding, dilation, layout)


def pool2d_index(x: TensorSpec, window: Pair, strides: Pair, padding: Padding, dilation: Pair,
                 layout: str) -> TensorSpec:
    """The int32 position within each window."""
    return TensorSpec(pool2d(x, window, strides, padding, dilation, layout).shape, dt.int32)


def sum_pool2d_gradient(g: TensorSpec, size: Pair, window: Pair, strides: Pair, padding: Padding, dilation: Pair,
                        layout: str) -> TensorSpec:
    """`size`: height and width of the pool's input."""
    return _pooled_from(g, size, window, strides, padding, dilation, layout)


def pool2d_take(x: TensorSpec, index: TensorSpec, window: Pair, strides: Pair, padding: Padding, dilation: Pair,
                layout: str) -> TensorSpec:
    out = pool2d(x, window, strides, padding, dilation, layout)
    _check_index(index, out)
    return out


def pool2d_put(g: TensorSpec, index: TensorSpec, size: Pair, window: Pair, strides: Pair, padding: Padding,
               dilation: Pair, layout: str) -> TensorSpec:
    _check_index(index, g)
    return _pooled_from(g, size, window, strides, padding, dilation, layout)


def _pooled_from(g: TensorSpec, size: Pair, window: Pair, strides: Pair, padding: Padding, dilation: Pair,
                 layout: str) -> TensorSpec:
    image = Image.of(g, layout)
    out = Image(image.n, size[0], size[1], image.c).spec(layout, g.dtype)
    if (pooled := pool2d(out, window, strides, padding, dilation, layout)).shape != g.shape:
        raise ShapeError(f"the cotangent is {g} where the pool gives {pooled}")
    return out


def _check_index(index: TensorSpec, like: TensorSpec) -> None:
    if not dt.is_integer(index.dtype):
        raise DTypeError(f"the index is {index.dtype}, not integers")
    if index.shape != like.shape:
        raise ShapeError(f"the index is {index}, which does not fit {like}")
