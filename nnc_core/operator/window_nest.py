"""The common part of the loop nests of windows: where windows lie, in either layout and any number of dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnc_core.base.dtype import DType, accumulator
from nnc_core.base.layout import Layout
from nnc_core.operator.loops import Index, IndexLike, NestBuilder
from nnc_core.shape.window import Filter, Image, Padding, Sizes, has_channels_last
from nnc_core.type import TensorSpec


def image_of(layout: Layout, order: str) -> Any:
    return Image.of(TensorSpec(layout.shape, layout.dtype), order)


def filter_of(layout: Layout, order: str) -> Any:
    return Filter.of(TensorSpec(layout.shape, layout.dtype), order)


def at(order: str, n: IndexLike, place: Sequence[IndexLike], c: IndexLike) -> tuple[IndexLike, ...]:
    """An element of a batch of images."""
    return (n, *place, c) if has_channels_last(order) else (n, c, *place)


def kernel_at(order: str, k: Sequence[IndexLike], i: IndexLike, o: IndexLike) -> tuple[IndexLike, ...]:
    """An element of a kernel."""
    return (*k, i, o) if has_channels_last(order) else (o, i, *k)


def seen(window: Sequence[Index], k: Sequence[IndexLike], strides: Sizes, padding: Padding,
         dilation: Sizes) -> list[Index]:
    """The place in the image that element k of a window sees; may lie in the padding."""
    return [(w * s + e * d - p).guarded()
            for w, e, s, (p, _), d in zip(window, k, strides, padding, dilation, strict=True)]


def seeing(place: Sequence[Index], k: Sequence[IndexLike], strides: Sizes, padding: Padding,
           dilation: Sizes) -> list[Index]:
    """The window whose element k sees this place in the image, if there is one."""
    return [(x + p - e * d).over(s).guarded()
            for x, e, s, (p, _), d in zip(place, k, strides, padding, dilation, strict=True)]


def candidates(window: Sizes, strides: Sizes, dilation: Sizes) -> list[int]:
    """The windows on each axis that may see one place: one for each element where elements or windows lie otherwise."""
    return [-(-n // s) if d == 1 else n for n, s, d in zip(window, strides, dilation, strict=True)]


def seeing_one(nest: NestBuilder, x: Index, k: Index, window: int, stride: int, before: int,
               dilation: int) -> tuple[Index, Index]:
    """Candidate k of the windows that may see a place on an axis, and the element of it that does, the first element's
    first; no window where there is none."""
    if dilation != 1 or stride == 1:
        return (x + before - k * dilation).over(stride).guarded(), k
    place = nest.position(x + before)
    last = place.apply("floor_divide", stride)
    element = place - last * stride + nest.position(k * stride)
    found = last - nest.position(k)
    if window % stride:
        found = element.apply("less", window).select(found, -1)
    return Index(gather=found).guarded(), Index(gather=element)


def row_major(k: Sequence[Index], window: Sizes) -> Index:
    """The number of element k in a window."""
    number = k[0]
    for index, length in zip(k[1:], window[1:], strict=True):
        number = number * length + index
    return number


def dot(nest: NestBuilder, a: Any, b: Any, dtype: DType) -> Any:
    """The sum of products over the stage, in the dtype that results of `dtype` are added in."""
    wide = accumulator(dtype)
    return nest.fold("dot", a.cast(wide), b.cast(wide))
