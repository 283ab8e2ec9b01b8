"""Rules of operators with sliding windows, over one, two or three spatial dimensions.

The layout tells how many there are: NWC, NHWC and NDHWC have their channels last and kernels HWIO (window, input
channels of a group, output channels); NCW, NCHW and NCDHW have them first and kernels OIHW.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.shape.elementwise import floating, ordered, same_dtype
from nnc_core.type import DimLike, Dims, TensorSpec

Sizes = tuple[int, ...]
Pair = tuple[int, int]
Padding = tuple[Pair, ...]
"""(before, after) for each spatial dimension."""
LAYOUTS = ("NWC", "NCW", "NHWC", "NCHW", "NDHWC", "NCDHW")
_NUMBERS = {3: "three", 4: "four", 5: "five"}


def has_channels_last(layout: str) -> bool:
    return layout[-1] == "C"


class Image(NamedTuple):
    """The dimensions of a batch of images, whatever their layout."""

    n: DimLike
    size: Dims
    c: DimLike

    @staticmethod
    def of(spec: TensorSpec, layout: str) -> Image:
        if layout not in LAYOUTS:
            raise AttributeValueError(f"layout {layout!r} is none of {', '.join(LAYOUTS)}")
        if spec.ndim != len(layout):
            raise ShapeError(f"{spec} should have the {_NUMBERS[len(layout)]} dimensions {layout}")
        if has_channels_last(layout):
            return Image(spec.shape[0], spec.shape[1:-1], spec.shape[-1])
        return Image(spec.shape[0], spec.shape[2:], spec.shape[1])

    def shape(self, layout: str) -> Dims:
        n, size, c = self
        return (n, *size, c) if has_channels_last(layout) else (n, c, *size)

    def spec(self, layout: str, dtype: DType) -> TensorSpec:
        return TensorSpec(self.shape(layout), dtype)


class Filter(NamedTuple):
    """The dimensions of a convolution's kernel, whatever its layout."""

    size: Dims
    i: DimLike
    o: DimLike

    @staticmethod
    def of(spec: TensorSpec, layout: str) -> Filter:
        if spec.ndim != len(layout):
            raise ShapeError(f"kernel {spec} should have {_NUMBERS[len(layout)]} dimensions")
        if has_channels_last(layout):
            return Filter(spec.shape[:-2], spec.shape[-2], spec.shape[-1])
        return Filter(spec.shape[2:], spec.shape[1], spec.shape[0])

    def spec(self, layout: str, dtype: DType) -> TensorSpec:
        size, i, o = self
        return TensorSpec((*size, i, o) if has_channels_last(layout) else (o, i, *size), dtype)


def window_count(length: DimLike, window: DimLike, stride: int, padding: Pair, dilation: int) -> DimLike:
    """The number of windows that fit along an axis."""
    if stride < 1 or dilation < 1 or min(padding) < 0:
        raise AttributeValueError(f"stride {stride} and dilation {dilation} should be at least 1, "
                                  f"padding {padding} at least 0")
    room = length + (padding[0] + padding[1]) - (window - 1) * dilation - 1
    if isinstance(room, int) and room < 0:
        raise ShapeError(f"a window of {window} (dilation {dilation}) does not fit in length {length} "
                         f"padded by {padding}")
    return room // stride + 1


def window_counts(size: Dims, window: Dims, strides: Sizes, padding: Padding, dilation: Sizes) -> Dims:
    """The same along each axis."""
    rank = len(size)
    given = {"window": window, "strides": strides, "padding": padding, "dilation": dilation}
    for name, value in given.items():
        if len(value) != rank:
            raise AttributeValueError(f"{name} {value} should have one entry for each of {rank} spatial dimensions")
    return tuple([window_count(*axis) for axis in zip(size, window, strides, padding, dilation, strict=True)])


def conv(x: TensorSpec, kernel: TensorSpec, strides: Sizes, padding: Padding, dilation: Sizes, groups: int,
         layout: str) -> TensorSpec:
    image, filter = Image.of(x, layout), Filter.of(kernel, layout)
    _float_kernel(x, kernel)
    _check_channels(image.c, filter, groups)
    counts = window_counts(image.size, filter.size, strides, padding, dilation)
    return Image(image.n, counts, filter.o).spec(layout, x.dtype)


def conv_input_gradient(g: TensorSpec, kernel: TensorSpec, size: Dims, strides: Sizes, padding: Padding,
                        dilation: Sizes, groups: int, layout: str) -> TensorSpec:
    """`size`: the spatial dimensions of the convolution's input."""
    image, filter = Image.of(g, layout), Filter.of(kernel, layout)
    _float_kernel(g, kernel)
    out = Image(image.n, _checked_size(size, layout), filter.i * groups).spec(layout, g.dtype)
    _check_result(conv(out, kernel, strides, padding, dilation, groups, layout), g)
    return out


def conv_kernel_gradient(x: TensorSpec, g: TensorSpec, size: Dims, strides: Sizes, padding: Padding, dilation: Sizes,
                         groups: int, layout: str) -> TensorSpec:
    """`size`: the spatial dimensions of the convolution's kernel."""
    channels = Image.of(x, layout).c
    _float_kernel(x, g)
    _check_groups(groups)
    if isinstance(channels, int) and channels % groups:
        raise ShapeError(f"{channels} channels do not divide into {groups} groups")
    out = Filter(_checked_size(size, layout), channels // groups, Image.of(g, layout).c).spec(layout, x.dtype)
    _check_result(conv(x, out, strides, padding, dilation, groups, layout), g)
    return out


def _checked_size(size: Dims, layout: str) -> Dims:
    if len(size) != len(layout) - 2:
        raise AttributeValueError(f"size {size} should have one entry for each of {len(layout) - 2} spatial dimensions")
    return tuple(size)


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


def pool(x: TensorSpec, window: Sizes, strides: Sizes, padding: Padding, dilation: Sizes, layout: str) -> TensorSpec:
    """One result for each window and channel."""
    image = Image.of(ordered(x), layout)
    if x.dtype == dt.boolean:
        raise DTypeError("needs numbers, not booleans", hint="cast with astype")
    _check_window(window)
    counts = window_counts(image.size, window, strides, padding, dilation)
    for axis in zip(image.size, window, strides, padding, dilation, strict=True):
        _check_windows_see(*axis)
    return Image(image.n, counts, image.c).spec(layout, x.dtype)


def _check_window(window: Sizes) -> None:
    if min(window) < 1:
        raise AttributeValueError(f"window {window} should be at least 1")


def _check_windows_see(length: DimLike, window: int, stride: int, padding: Pair, dilation: int) -> None:
    """A window that lies in the padding alone has no maximum; one with gaps can even straddle a short image."""
    blind = max(padding) > (window - 1) * dilation
    if isinstance(length, int) and dilation > length and not blind:
        starts = range(-padding[0], length + padding[1] - (window - 1) * dilation, stride)
        blind = any(not any(0 <= s + k * dilation < length for k in range(window)) for s in starts)
    if blind:
        raise AttributeValueError(f"padding {padding} makes windows of {window} (dilation {dilation}) that see "
                                  f"nothing of length {length}", hint="pad less")


def avg_pool(x: TensorSpec, window: Sizes, strides: Sizes, padding: Padding, dilation: Sizes, count_padding: bool,
             layout: str) -> TensorSpec:
    """Floats in, floats out."""
    return pool(floating(x), window, strides, padding, dilation, layout)


def pool_index(x: TensorSpec, window: Sizes, strides: Sizes, padding: Padding, dilation: Sizes,
               layout: str) -> TensorSpec:
    """The int32 position within each window."""
    return TensorSpec(pool(x, window, strides, padding, dilation, layout).shape, dt.int32)


def pool_place(x: TensorSpec, window: Sizes, strides: Sizes, padding: Padding, dilation: Sizes,
               layout: str) -> TensorSpec:
    """The int64 place in the flattened spatial dimensions."""
    return TensorSpec(pool(x, window, strides, padding, dilation, layout).shape, dt.int64)


def sum_pool_gradient(g: TensorSpec, size: Dims, window: Sizes, strides: Sizes, padding: Padding, dilation: Sizes,
                      layout: str) -> TensorSpec:
    """`size`: the spatial dimensions of the pool's input."""
    return _pooled_from(g, size, window, strides, padding, dilation, layout)


def pool_take(x: TensorSpec, index: TensorSpec, window: Sizes, strides: Sizes, padding: Padding, dilation: Sizes,
              layout: str) -> TensorSpec:
    out = pool(x, window, strides, padding, dilation, layout)
    _check_index(index, out)
    return out


def pool_put(g: TensorSpec, index: TensorSpec, size: Dims, window: Sizes, strides: Sizes, padding: Padding,
             dilation: Sizes, layout: str) -> TensorSpec:
    _check_index(index, g)
    return _pooled_from(g, size, window, strides, padding, dilation, layout)


def _pooled_from(g: TensorSpec, size: Dims, window: Sizes, strides: Sizes, padding: Padding, dilation: Sizes,
                 layout: str) -> TensorSpec:
    image = Image.of(g, layout)
    out = Image(image.n, _checked_size(size, layout), image.c).spec(layout, g.dtype)
    if (pooled := pool(out, window, strides, padding, dilation, layout)).shape != g.shape:
        raise ShapeError(f"the cotangent is {g} where the pool gives {pooled}")
    return out


def _check_index(index: TensorSpec, like: TensorSpec) -> None:
    if not dt.is_integer(index.dtype):
        raise DTypeError(f"the index is {index.dtype}, not integers")
    if index.shape != like.shape:
        raise ShapeError(f"the index is {index}, which does not fit {like}")


def of_size(x: TensorSpec, size: Dims, layout: str) -> TensorSpec:
    if (there := Image.of(x, layout).size) != tuple(size):
        raise ShapeError(f"the spatial dimensions of {x} are {there}, what follows was recorded for {size}")
    return x


def unfold(x: TensorSpec, window: Sizes, strides: Sizes, padding: Padding, dilation: Sizes, layout: str) -> TensorSpec:
    """The elements of each window as channels."""
    image = Image.of(x, layout)
    _check_window(window)
    counts = window_counts(image.size, window, strides, padding, dilation)
    return Image(image.n, counts, image.c * prod(window)).spec(layout, x.dtype)


def fold(y: TensorSpec, size: Dims, window: Sizes, strides: Sizes, padding: Padding, dilation: Sizes,
         layout: str) -> TensorSpec:
    """`size`: the spatial dimensions of what was unfolded."""
    image = Image.of(y, layout)
    if y.dtype == dt.boolean:
        raise DTypeError("needs numbers, not booleans", hint="cast with astype")
    _check_window(window)
    if isinstance(image.c, int) and image.c % prod(window):
        raise ShapeError(f"{image.c} channels are no multiple of the {prod(window)} elements of a window {window}")
    out = Image(image.n, _checked_size(size, layout), image.c // prod(window)).spec(layout, y.dtype)
    if (unfolded := unfold(out, window, strides, padding, dilation, layout)).shape != y.shape:
        raise ShapeError(f"{y} does not fold: windows {window} of an image {size} unfold to {unfolded}")
    return out
