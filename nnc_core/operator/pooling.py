"""Pooling over one, two or three spatial dimensions, and windows unfolded into channels.

Max pooling's derivatives go through the position of each window's maximum: `pool_take` and `pool_put` are linear and
transposes of each other, which gives every order.  So are `sum_pool` and its gradient, `unfold` and `fold`.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import accumulator, int64, is_float
from nnc_core.base.loopnest import LoopNest
from nnc_core.operator import window_reference as numpy_rule
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.loops import Index, NestBuilder, open_nest
from nnc_core.operator.window_nest import at, candidates, image_of, row_major, seeing, seeing_one, seen
from nnc_core.shape import window as rule
from nnc_core.shape.window import Image, Padding, Sizes, has_channels_last
from nnc_core.type import Dims

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def _pool_nest(command: Command, kind: str) -> LoopNest:
    window, *slide, order = command.attributes
    x, image = command.inputs[0], image_of(command.output, order)
    nest = open_nest(command)
    n, *place, c = nest.outer(image.n, *image.size, image.c)
    fill: float = 0 if kind == "sum" else -np.inf if is_float(x.dtype) else int(np.iinfo(x.dtype).min)
    with nest.stage(*window) as k:
        value = nest.load(0, *at(order, n, seen(place, k, *slide), c), fill=fill)
        result = nest.fold(kind, value.cast(accumulator(x.dtype)) if kind == "sum" else value)
    nest.store(0, result, *at(order, n, place, c))
    return nest.build()


def _sum_pool_gradient_nest(command: Command) -> LoopNest:
    return _windows_over(command, lambda nest, where, element: nest.load(0, *where))


def _pool_put_nest(command: Command) -> LoopNest:
    window: Any = command.attributes[1]

    def share(nest: NestBuilder, where: Any, element: list[Index]) -> Any:
        """The window's cotangent, if this element is the one that its index names."""
        value = nest.load(0, *where)
        named = nest.load(1, *where, fill=-1).cast(int64)
        return named.equal(nest.position(row_major(element, window))).select(value, 0)

    return _windows_over(command, share)


def _windows_over(command: Command, share: Any) -> LoopNest:
    """For each input position the sum of `share` over all windows that see it."""
    _, window, strides, padding, dilation, order = command.attributes
    image = image_of(command.output, order)
    nest = open_nest(command)
    n, *place, c = nest.outer(image.n, *image.size, image.c)
    with nest.stage(*candidates(window, strides, dilation)) as k:
        seeing = [seeing_one(nest, x, e, length, stride, before, step) for x, e, length, stride, (before, _), step
                  in zip(place, k, window, strides, padding, dilation, strict=True)]
        value = share(nest, at(order, n, [w for w, _ in seeing], c), [element for _, element in seeing])
        total = nest.fold("sum", value.cast(accumulator(value.dtype)))
    nest.store(0, total, *at(order, n, place, c))
    return nest.build()


def _pool_take_nest(command: Command) -> LoopNest:
    window, strides, padding, dilation, order = command.attributes
    image = image_of(command.output, order)
    nest = open_nest(command)
    n, *place, c = nest.outer(image.n, *image.size, image.c)
    rest = nest.load(1, *at(order, n, place, c)).cast(int64)
    source: list[Index] = []
    axes = zip(reversed(place), reversed(window), reversed(strides), reversed(padding), reversed(dilation), strict=True)
    for index, length, stride, (before, _), step in axes:
        element = rest.apply("remainder", length) * step
        rest = rest.apply("floor_divide", length)
        source.insert(0, (index * stride - before + Index(gather=element)).guarded())
    nest.store(0, nest.load(0, *at(order, n, source, c)), *at(order, n, place, c))
    return nest.build()


def _unfolded_channel(order: str, k: Index, c: Index, channels: int, elements: int) -> Index:
    """Windows' elements come before channels where those are last, as in kernels HWIO, else after them, as in OIHW."""
    return k * channels + c if has_channels_last(order) else c * elements + k


def _unfold_nest(command: Command) -> LoopNest:
    window, *slide, order = command.attributes
    image, channels = image_of(command.output, order), image_of(command.inputs[0], order).c
    nest = open_nest(command)
    n, *rest = nest.outer(image.n, *image.size, *window, channels)
    place, k, c = rest[: len(window)], rest[len(window) : -1], rest[-1]
    value = nest.load(0, *at(order, n, seen(place, k, *slide), c))
    channel = _unfolded_channel(order, row_major(k, window), c, channels, prod(window))
    nest.store(0, value, *at(order, n, place, channel))
    return nest.build()


def _fold_nest(command: Command) -> LoopNest:
    _, window, *slide, order = command.attributes
    image = image_of(command.output, order)
    nest = open_nest(command)
    n, *place, c = nest.outer(image.n, *image.size, image.c)
    with nest.stage(*window) as k:
        channel = _unfolded_channel(order, row_major(k, window), c, image.c, prod(window))
        value = nest.load(0, *at(order, n, seeing(place, k, *slide), channel))
        total = nest.fold("sum", value.cast(accumulator(value.dtype)))
    nest.store(0, total, *at(order, n, place, c))
    return nest.build()


def _geometry(values: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(("window", "strides", "padding", "dilation", "layout"), values, strict=True))


def _size(x: Any, layout: str) -> Any:
    return Image.of(x.spec, layout).size


def _max_pool_vjp(F: Namespace[V], g: V, y: V, x: V, *geometry: Any) -> tuple[V]:
    how = _geometry(geometry)
    return (F.pool_put(g, F.max_pool_index(x, **how), size=_size(x, how["layout"]), **how),)


def _max_pool_jvp(F: Namespace[V], t: Any, y: V, x: V, *geometry: Any) -> V:
    how = _geometry(geometry)
    return F.pool_take(t[0], F.max_pool_index(x, **how), **how)


def _ruler(F: Namespace[V], layout: str, axis: int, count: Any, step: int, begin: int) -> V:
    """begin, begin + step, ... along one spatial axis of images."""
    places = [count if a == axis else 1 for a in range(len(layout) - 2)]
    steps = F.arange(size=count, dtype=int64, start=begin, step=step)
    return F.reshape(steps, shape=Image(1, tuple(places), 1).shape(layout))


def _inside(F: Namespace[V], element: V, begin: V, length: Any, window: int, step: int) -> V:
    """The element, moved to the nearest one inside the image: where everything is -inf, padding ties with it."""
    first = F.maximum(F.floor_divide(F.subtract(step - 1, begin), step), 0)
    last = F.minimum(F.floor_divide(F.subtract(length - 1, begin), step), window - 1)
    return F.minimum(F.maximum(element, first), last)


class Pooling(Base[V], Generic[V]):
    """`window`, `strides` and `dilation` have a number for each spatial dimension, `padding` a pair (before, after)."""

    @op(infer=rule.pool, reference=numpy_rule.max_pool, nest=lambda c: _pool_nest(c, "maximum"), exact=True,
        vjp=_max_pool_vjp, jvp=_max_pool_jvp)
    def max_pool(self, x: V, *, window: Sizes, strides: Sizes, padding: Padding, dilation: Sizes, layout: str) -> V:
        """The maximum of each window; NaN wins.  The first maximum has the gradient."""
        ...

    @op(infer=rule.pool_index, reference=numpy_rule.max_pool_index, nest=lambda c: _pool_nest(c, "argmax"),
        exact=True, differentiable=False)
    def max_pool_index(self, x: V, *, window: Sizes, strides: Sizes, padding: Padding, dilation: Sizes,
                       layout: str) -> V:
        """int32 position of the first maximum within its window, counted in C order."""
        ...

    @op(composite=True, infer=rule.pool_place, differentiable=False)
    def max_pool_place(self, x: V, *, window: Sizes, strides: Sizes, padding: Padding, dilation: Sizes,
                       layout: str) -> V:
        """int64 place of each window's first maximum in the flattened spatial dimensions of its image."""
        F: Any = self
        element = F.cast(F.max_pool_index(x, **_geometry((window, strides, padding, dilation, layout))), dtype=int64)
        sizes, counts = _size(x, layout), _size(element, layout)
        place: Any = None
        for axis, length in enumerate(sizes):
            within = F.remainder(F.floor_divide(element, prod(window[axis + 1 :])), window[axis])
            begin = _ruler(F, layout, axis, counts[axis], strides[axis], -padding[axis][0])
            within = _inside(F, within, begin, length, window[axis], dilation[axis])
            here = F.add(begin, F.multiply(within, dilation[axis]))
            place = here if place is None else F.add(F.multiply(place, length), here)
        return place  # type: ignore[no-any-return]

    @op(infer=rule.pool_take, reference=numpy_rule.pool_take, nest=_pool_take_nest, exact=True,
        vjp=lambda F, g, y, x, index, *how: (
            F.pool_put(g, index, size=_size(x, how[-1]), **_geometry(how)), None),
        jvp=lambda F, t, y, x, index, *how: F.pool_take(t[0], index, **_geometry(how)))
    def pool_take(self, x: V, index: V, *, window: Sizes, strides: Sizes, padding: Padding, dilation: Sizes,
                  layout: str) -> V:
        """The element of each window that `index` names."""
        ...

    @op(infer=rule.pool_put, reference=numpy_rule.pool_put, nest=_pool_put_nest,
        vjp=lambda F, h, y, g, index, size, *how: (F.pool_take(h, index, **_geometry(how)), None),
        jvp=lambda F, t, y, g, index, size, *how: F.pool_put(t[0], index, size=size, **_geometry(how)))
    def pool_put(self, g: V, index: V, *, size: Dims, window: Sizes, strides: Sizes, padding: Padding,
                 dilation: Sizes, layout: str) -> V:
        """The transpose of `pool_take`: each value of g added where its index names; `size` is the input's."""
        ...

    @op(infer=rule.pool, reference=numpy_rule.sum_pool, nest=lambda c: _pool_nest(c, "sum"), linear="jointly",
        vjp=lambda F, g, y, x, *how: (F.sum_pool_gradient(g, size=_size(x, how[-1]), **_geometry(how)),))
    def sum_pool(self, x: V, *, window: Sizes, strides: Sizes, padding: Padding, dilation: Sizes, layout: str) -> V:
        """The sum of each window."""
        ...

    @op(infer=rule.sum_pool_gradient, reference=numpy_rule.sum_pool_gradient, nest=_sum_pool_gradient_nest,
        linear="jointly", vjp=lambda F, h, y, g, size, *how: (F.sum_pool(h, **_geometry(how)),))
    def sum_pool_gradient(self, g: V, *, size: Dims, window: Sizes, strides: Sizes, padding: Padding,
                          dilation: Sizes, layout: str) -> V:
        """The transpose of `sum_pool`, whose input has the spatial dimensions `size`."""
        ...

    @op(composite=True, infer=rule.avg_pool)
    def avg_pool(self, x: V, *, window: Sizes, strides: Sizes, padding: Padding, dilation: Sizes, count_padding: bool,
                 layout: str) -> V:
        """The mean of each window, over its elements inside the image or over all of it."""
        F: Any = self
        how = _geometry((window, strides, padding, dilation, layout))
        total = F.sum_pool(x, **how)
        if count_padding or not any(map(any, padding)):
            return F.divide(total, prod(window))  # type: ignore[no-any-return]
        ones = F.full(shape=Image(1, _size(x, layout), 1).shape(layout), value=1, dtype=x.dtype)
        return F.divide(total, F.sum_pool(ones, **how))  # type: ignore[no-any-return]

    @op(infer=rule.unfold, reference=numpy_rule.unfold, nest=_unfold_nest, exact=True, linear="jointly",
        vjp=lambda F, g, y, x, *how: (F.fold(g, size=_size(x, how[-1]), **_geometry(how)),))
    def unfold(self, x: V, *, window: Sizes, strides: Sizes, padding: Padding, dilation: Sizes, layout: str) -> V:
        """The elements of each window as the channels of one pixel (im2col): in the order of a kernel HWIO where
        channels are last, of a kernel OIHW where they are first."""
        ...

    @op(infer=rule.fold, reference=numpy_rule.fold, nest=_fold_nest, linear="jointly",
        vjp=lambda F, h, y, g, size, *how: (F.unfold(h, **_geometry(how)),))
    def fold(self, y: V, *, size: Dims, window: Sizes, strides: Sizes, padding: Padding, dilation: Sizes,
             layout: str) -> V:
        """The transpose of `unfold` (col2im): windows added where they came from, in an image of `size`."""
        ...
