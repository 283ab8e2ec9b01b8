"""Regions of images and the boxes that bound them: aligned and pooled regions, non-maximum suppression.

A region's small image is a weighted sum of its pixels, by weights along rows times weights along columns, so that
`roi_align` is one product and its transpose; the weights are a formula of the box and have derivatives of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, accumulator, int32, int64, is_float
from nnc_core.base.loopnest import LoopNest
from nnc_core.operator import region_reference as numpy_rule
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.flops import pairs
from nnc_core.operator.loops import Index, NestBuilder, open_nest
from nnc_core.operator.roi_weights import roi_weights
from nnc_core.operator.window_nest import at, image_of
from nnc_core.shape import region as rule
from nnc_core.shape.region import Pair
from nnc_core.shape.window import Image
from nnc_core.type import DimLike, index_range

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def _number_of_image(nest: NestBuilder, argument: int, region: Index, count: int) -> Any:
    """The image that a region belongs to; negative numbers count from the end."""
    number = nest.load(argument, region).cast(int64)
    return (number < 0).select(number + count, number)


def _region_product_nest(command: Command) -> LoopNest:
    (order,) = command.attributes
    layout: Any = order
    x, rows, columns, _ = command.inputs
    wide = accumulator(x.dtype)
    nest = open_nest(command)
    out = image_of(command.output, layout)
    k, p, q, c = nest.outer(out.n, *out.size, out.c)
    with nest.stage(rows.shape[2], columns.shape[2]) as (h, w):
        number = _number_of_image(nest, 3, k, x.shape[0])
        weight = nest.load(1, k, p, h) * nest.load(2, k, q, w)
        value = nest.load(0, *at(layout, Index(gather=number, inside=False), (h, w), c)).cast(wide)
        total = nest.fold("sum", weight.not_equal(0).select(weight * value, 0))
    nest.store(0, total, *at(layout, k, (p, q), c))
    return nest.build()


def _region_product_gradient_nest(command: Command) -> LoopNest:
    count, order = command.attributes
    layout: Any = order
    g, rows, columns, _ = command.inputs
    wide = accumulator(g.dtype)
    nest = open_nest(command)
    out = image_of(command.output, layout)
    n, h, w, c = nest.outer(out.n, *out.size, out.c)
    with nest.stage(rows.shape[0], rows.shape[1], columns.shape[1]) as (k, p, q):
        mine = _number_of_image(nest, 3, k, count).equal(nest.position(n))
        weight = nest.load(1, k, p, h) * nest.load(2, k, q, w)
        value = nest.load(0, *at(layout, k, (p, q), c)).cast(wide)
        read = mine & weight.not_equal(0)
        total = nest.fold("sum", read.select(weight * value, 0))
    nest.store(0, total, *at(layout, n, (h, w), c))
    return nest.build()


def _corner(nest: NestBuilder, region: Index, which: int, scale: float) -> Any:
    """A coordinate of a box, rounded to the nearest pixel, halves away from zero."""
    given = nest.load(1, region, which)
    place = given.cast(accumulator(given.dtype)) * scale
    whole = (abs(place) + 0.5).apply("floor").minimum(1 << 24).cast(int64)
    return (place < 0).select(-whole, whole)


def _bin(nest: NestBuilder, first: Any, last: Any, index: Index, count: int) -> tuple[Any, Any]:
    """Begin and end of a part of the pixels from `first` to `last`."""
    size = (last - first + 1).maximum(1)
    i = nest.position(index)
    return first + (i * size).apply("floor_divide", count), first - (-(i + 1) * size).apply("floor_divide", count)


def _roi_pool_index_nest(command: Command) -> LoopNest:
    """First the maximum of each part, then where it is first."""
    size, scale, order = command.attributes
    layout: Any = order
    count: Any = size
    x, image = command.inputs[0], image_of(command.inputs[0], layout)
    nest = open_nest(command)
    k, p, q, c = nest.outer(*[n for n in image_of(command.output, layout)[:1]], *count, image.c)
    lowest = -np.inf if is_float(x.dtype) else int(np.iinfo(x.dtype).min)
    with nest.stage():
        number = _number_of_image(nest, 2, k, image.n)
        left, top, right, bottom = (_corner(nest, k, i, scale) for i in range(4))
        top, bottom = _bin(nest, top, bottom, p, count[0])
        left, right = _bin(nest, left, right, q, count[1])

    def seen(h: Index, w: Index) -> tuple[Any, Any]:
        """A mark of whether a pixel lies in the part, and its value."""
        inside = nest.valid(0, *at(layout, Index(gather=number, inside=False), (h, w), c))
        for place, begin, end in ((nest.position(h), top, bottom), (nest.position(w), left, right)):
            inside = inside & (place >= begin) & (place < end)
        return inside, nest.load(0, *at(layout, Index(gather=number, inside=False), (h, w), c))

    with nest.stage(*image.size) as (h, w):
        inside, value = seen(h, w)
        chosen = inside.select(value, lowest)
        some, largest = nest.fold("any", inside), nest.fold("maximum", chosen)
    with nest.stage(*image.size) as (h, w):
        inside, value = seen(h, w)
        hit = inside & (value.equal(largest) | value.not_equal(value))
        place = nest.fold("argmax", hit.cast(int32))
    nest.store(0, some.select(place, -1), *at(layout, k, (p, q), c))
    return nest.build()


def _parts(F: Namespace[V], x: V, images: V, layout: str, wide: DType) -> V:
    """The image of each region, channels last, in the wide dtype."""
    taken = F.cast(F.take(x, images, axis=0), dtype=wide)
    return taken if layout == "NHWC" else F.permute(taken, axes=(0, 2, 3, 1))


def _by_rows(F: Namespace[V], x: V, g: V, columns: V, images: V, layout: str) -> V:
    """(regions, results, height): each pixel's part of the cotangent, were its row's weight 1."""
    wide = columns.dtype
    image, cotangent = _parts(F, x, images, layout, wide), _cotangent(F, g, layout, wide)
    k, p, q, c = cotangent.shape
    across = F.matmul(F.reshape(columns, shape=(k, 1, q, columns.shape[2])), image)
    return F.matmul(F.reshape(cotangent, shape=(k, p, q * c)),
                    F.reshape(across, shape=(k, image.shape[1], q * c)), transpose_b=True)


def _by_columns(F: Namespace[V], x: V, g: V, rows: V, images: V, layout: str) -> V:
    wide = rows.dtype
    image, cotangent = _parts(F, x, images, layout, wide), _cotangent(F, g, layout, wide)
    k, p, q, c = cotangent.shape
    turned = F.permute(image, axes=(0, 2, 1, 3))
    down = F.matmul(F.reshape(rows, shape=(k, 1, p, rows.shape[2])), turned)
    return F.matmul(F.reshape(F.permute(cotangent, axes=(0, 2, 1, 3)), shape=(k, q, p * c)),
                    F.reshape(down, shape=(k, image.shape[2], p * c)), transpose_b=True)


def _cotangent(F: Namespace[V], g: V, layout: str, wide: DType) -> V:
    g = F.cast(g, dtype=wide)
    return g if layout == "NHWC" else F.permute(g, axes=(0, 2, 3, 1))


class Regions(Base[V], Generic[V]):
    """Boxes are rows x1, y1, x2, y2; `images` has the number of the image that each belongs to."""

    @op(infer=rule.region_product, reference=numpy_rule.region_product, nest=_region_product_nest, linear="each",
        indices=lambda shapes, layout: index_range.along(3, shapes[0][0]),
        vjp=(lambda F, g, y, x, rows, columns, images, layout: F.region_product_gradient(
                 g, rows, columns, images, count=x.shape[0], layout=layout),
             lambda F, g, y, x, rows, columns, images, layout: _by_rows(F, x, g, columns, images, layout),
             lambda F, g, y, x, rows, columns, images, layout: _by_columns(F, x, g, rows, images, layout), None))
    def region_product(self, x: V, rows: V, columns: V, images: V, *, layout: str) -> V:
        """For each region k the sum over h, w of rows[k, p, h] * columns[k, q, w] * x[images[k], h, w, c]."""
        ...

    @op(infer=rule.region_product_gradient, reference=numpy_rule.region_product_gradient,
        nest=_region_product_gradient_nest, linear="each",
        indices=lambda shapes, count, layout: index_range.along(3, count),
        vjp=(lambda F, h, y, g, rows, columns, images, count, layout: F.region_product(
                 h, rows, columns, images, layout=layout),
             lambda F, h, y, g, rows, columns, images, count, layout: _by_rows(F, h, g, columns, images, layout),
             lambda F, h, y, g, rows, columns, images, count, layout: _by_columns(F, h, g, rows, images, layout), None))
    def region_product_gradient(self, g: V, rows: V, columns: V, images: V, *, count: DimLike, layout: str) -> V:
        """The transpose of `region_product` in x, which has `count` images."""
        ...

    @op(composite=True, infer=rule.roi_align)
    def roi_align(self, x: V, boxes: V, images: V, *, size: Pair, scale: float, sampling_ratio: int, aligned: bool,
                  count_outside: bool, layout: str) -> V:
        """Means over a grid of samples, read linearly, in each of `size` parts of each box; boxes times `scale` are in
        pixels, and a pixel's centre is at its number or, if `aligned`, half a pixel further.  `sampling_ratio` samples
        along each side of a part; 0: as many as it has pixels, rounded up."""
        F: Any = self
        wide, lengths = accumulator(x.dtype), Image.of(x.spec, layout).size
        places = F.multiply(F.cast(boxes, dtype=wide), float(scale))
        places = F.subtract(places, 0.5) if aligned else places
        k = boxes.shape[0]
        left, top, right, bottom = (F.reshape(F.slice(places, start=(0, i), stop=(k, i + 1), step=(1, 1)), shape=(k,))
                                    for i in range(4))
        how: Any = {"ratio": sampling_ratio, "least": 0.0 if aligned else 1.0, "count_outside": count_outside}
        rows = roi_weights(F, top, bottom, size[0], lengths[0], **how)
        columns = roi_weights(F, left, right, size[1], lengths[1], **how)
        return F.region_product(x, rows, columns, images, layout=layout)  # type: ignore[no-any-return]

    @op(infer=rule.roi_pool_index, reference=numpy_rule.roi_pool_index, nest=_roi_pool_index_nest, exact=True,
        differentiable=False, indices=lambda shapes, *_: index_range.along(2, shapes[0][0]))
    def roi_pool_index(self, x: V, boxes: V, images: V, *, size: Pair, scale: float, layout: str) -> V:
        """int64 place, in the flattened image, of the first maximum in each of `size` parts of each box, whose corners
        are rounded to pixels; -1 for a part without pixels."""
        ...

    @op(composite=True, infer=rule.roi_pool)
    def roi_pool(self, x: V, boxes: V, images: V, *, size: Pair, scale: float, layout: str) -> V:
        """The maximum in each of `size` parts of each box, 0 for a part without pixels."""
        F: Any = self
        place = F.roi_pool_index(x, boxes, images, size=size, scale=scale, layout=layout)
        (_, (height, width), channels), found = Image.of(x.spec, layout), place.shape[0]
        ones = (found, 1, 1, 1)
        first = F.reshape(F.cast(images, dtype=int64), shape=ones)
        channel = F.arange(size=channels, dtype=int64)
        empty = F.less(place, 0)
        inside = F.where(empty, 0, place)
        pixels = height * width
        if layout == "NHWC":
            number = F.add(F.multiply(F.add(F.multiply(first, pixels), inside), channels), channel)
        else:
            channel = F.reshape(channel, shape=(channels, 1, 1))
            number = F.add(F.multiply(F.add(F.multiply(first, channels), channel), pixels), inside)
        whole = F.reshape(x, shape=(x.shape[0] * x.shape[1] * x.shape[2] * x.shape[3],))
        return F.where(empty, 0, F.take(whole, number, axis=0))  # type: ignore[no-any-return]

    @op(infer=rule.nms_order, reference=numpy_rule.nms_order, promote=(0, 1), host=True, exact=True,
        differentiable=False, flops=pairs(12))
    def nms_order(self, boxes: V, scores: V, groups: V, *, threshold: float) -> V:
        """The numbers of the boxes that stay, best score first, then -1 for each that goes: those that overlap a better
        one of their group that stays by more than the threshold (intersection over union)."""
        ...
