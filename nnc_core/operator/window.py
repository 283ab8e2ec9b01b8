"""Convolution and pooling over two spatial dimensions, in either layout.

The three convolutions are one trilinear form seen from its three sides, so each one's derivatives are the other two.
Max pooling's derivatives go through the position of each window's maximum: `pool2d_take` and `pool2d_put` are linear
and transposes of each other, which gives every order.
"""

from __future__ import annotations

from typing import Any, Generic

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import accumulator, is_float
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.operator import window_reference as numpy_rule
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.loops import Index, IndexLike, NestBuilder, Scalar
from nnc_core.shape import window as rule
from nnc_core.shape.window import Filter, Image, Padding, Pair
from nnc_core.type import TensorSpec


def _image(layout: Layout, order: str) -> Any:
    return Image.of(TensorSpec(layout.shape, layout.dtype), order)


def _filter(layout: Layout, order: str) -> Any:
    return Filter.of(TensorSpec(layout.shape, layout.dtype), order)


def _at(order: str, n: IndexLike, h: IndexLike, w: IndexLike, c: IndexLike) -> tuple[IndexLike, ...]:
    return (n, h, w, c) if order == "NHWC" else (n, c, h, w)


def _kernel_at(order: str, h: IndexLike, w: IndexLike, i: IndexLike, o: IndexLike) -> tuple[IndexLike, ...]:
    return (h, w, i, o) if order == "NHWC" else (o, i, h, w)


def _into(out: Index, k: IndexLike, stride: int, padding: Pair, dilation: int) -> Index:
    """The input position that element k of window `out` sees; may lie in the padding."""
    return (out * stride + k * dilation - padding[0]).guarded()


def _from(position: Index, k: IndexLike, stride: int, padding: Pair, dilation: int) -> Index:
    """The window whose element k sees this input position, if there is one."""
    return (position + padding[0] - k * dilation).over(stride).guarded()


def _conv2d_nest(command: Command) -> LoopNest:
    strides, padding, dilation, groups, order = command.attributes
    kernel = command.inputs[1]
    image, filter = _image(command.output, order), _filter(kernel, order)
    nest = NestBuilder(command)
    n, h, w, group, o = nest.outer(image.n, image.h, image.w, groups, filter.o // groups)
    with nest.stage(filter.h, filter.w, filter.i) as (kh, kw, i):
        rows = _into(h, kh, strides[0], padding[0], dilation[0])
        columns = _into(w, kw, strides[1], padding[1], dilation[1])
        seen = nest.load(0, *_at(order, n, rows, columns, group * filter.i + i))
        weight = nest.load(1, *_kernel_at(order, kh, kw, i, group * (filter.o // groups) + o))
        total = _dot(nest, seen, weight)
    nest.store(0, total, *_at(order, n, h, w, group * (filter.o // groups) + o))
    return nest.build()


def _dot(nest: NestBuilder, a: Scalar, b: Scalar) -> Scalar:
    wide = accumulator(a.dtype)
    return nest.fold("sum", a.cast(wide) * b.cast(wide))


def _conv2d_input_gradient_nest(command: Command) -> LoopNest:
    _, strides, padding, dilation, groups, order = command.attributes
    _, kernel = command.inputs
    image, filter = _image(command.output, order), _filter(kernel, order)
    nest = NestBuilder(command)
    n, h, w, group, i = nest.outer(image.n, image.h, image.w, groups, filter.i)
    with nest.stage(filter.h, filter.w, filter.o // groups) as (kh, kw, o):
        rows = _from(h, kh, strides[0], padding[0], dilation[0])
        columns = _from(w, kw, strides[1], padding[1], dilation[1])
        channel = group * (filter.o // groups) + o
        total = _dot(nest, nest.load(0, *_at(order, n, rows, columns, channel)),
                     nest.load(1, *_kernel_at(order, kh, kw, i, channel)))
    nest.store(0, total, *_at(order, n, h, w, group * filter.i + i))
    return nest.build()


def _conv2d_kernel_gradient_nest(command: Command) -> LoopNest:
    _, strides, padding, dilation, groups, order = command.attributes
    image, filter = _image(command.inputs[1], order), _filter(command.output, order)
    nest = NestBuilder(command)
    kh, kw, i, group, o = nest.outer(filter.h, filter.w, filter.i, groups, filter.o // groups)
    channel = group * (filter.o // groups) + o
    with nest.stage(image.n, image.h, image.w) as (n, h, w):
        rows = _into(h, kh, strides[0], padding[0], dilation[0])
        columns = _into(w, kw, strides[1], padding[1], dilation[1])
        total = _dot(nest, nest.load(0, *_at(order, n, rows, columns, group * filter.i + i)),
                     nest.load(1, *_at(order, n, h, w, channel)))
    nest.store(0, total, *_kernel_at(order, kh, kw, i, channel))
    return nest.build()


def _pool_nest(command: Command, kind: str) -> LoopNest:
    window, strides, padding, dilation, order = command.attributes
    x, image = command.inputs[0], _image(command.output, order)
    nest = NestBuilder(command)
    n, h, w, c = nest.outer(*image)
    fill: float = 0 if kind == "sum" else -np.inf if is_float(x.dtype) else int(np.iinfo(x.dtype).min)
    with nest.stage(*window) as (kh, kw):
        rows = _into(h, kh, strides[0], padding[0], dilation[0])
        columns = _into(w, kw, strides[1], padding[1], dilation[1])
        value = nest.load(0, *_at(order, n, rows, columns, c), fill=fill)
        result = nest.fold(kind, value.cast(accumulator(x.dtype)) if kind == "sum" else value)
    nest.store(0, result, *_at(order, n, h, w, c))
    return nest.build()


def _sum_pool2d_gradient_nest(command: Command) -> LoopNest:
    return _windows_over(command, lambda nest, at, k: nest.load(0, *at))


def _pool2d_put_nest(command: Command) -> LoopNest:
    width = command.attributes[1][1]

    def share(nest: NestBuilder, at: Any, k: tuple[Index, Index]) -> Scalar:
        """The window's cotangent, if this element is the one that its index names."""
        value = nest.load(0, *at)
        named = nest.load(1, *at, fill=-1).cast(np.dtype(np.int64))
        return named.compare("equal", nest.position(k[0] * width + k[1])).select(value, value.constant(0))

    return _windows_over(command, share)


def _windows_over(command: Command, share: Any) -> LoopNest:
    """For each input position the sum of `share` over all windows that see it."""
    _, window, strides, padding, dilation, order = command.attributes
    image = _image(command.output, order)
    nest = NestBuilder(command)
    n, h, w, c = nest.outer(*image)
    with nest.stage(*window) as (kh, kw):
        rows = _from(h, kh, strides[0], padding[0], dilation[0])
        columns = _from(w, kw, strides[1], padding[1], dilation[1])
        value = share(nest, _at(order, n, rows, columns, c), (kh, kw))
        total = nest.fold("sum", value.cast(accumulator(value.dtype)))
    nest.store(0, total, *_at(order, n, h, w, c))
    return nest.build()


def _pool2d_take_nest(command: Command) -> LoopNest:
    window, strides, padding, dilation, order = command.attributes
    nest = NestBuilder(command)
    n, h, w, c = nest.outer(*_image(command.output, order))
    index = nest.load(1, *_at(order, n, h, w, c)).cast(np.dtype(np.int64))
    row = index.apply("floor_divide", window[1]) * dilation[0]
    column = index.apply("remainder", window[1]) * dilation[1]
    rows = h * strides[0] - padding[0][0] + Index(gather=row)
    columns = w * strides[1] - padding[1][0] + Index(gather=column)
    value = nest.load(0, *_at(order, n, rows.guarded(), columns.guarded(), c))
    nest.store(0, value, *_at(order, n, h, w, c))
    return nest.build()


def _size(x: Any, layout: str) -> tuple[Any, Any]:
    image = Image.of(x.spec, layout)
    return image.h, image.w


def _kernel_size(kernel: Any, layout: str) -> tuple[Any, Any]:
    filter = Filter.of(kernel.spec, layout)
    return filter.h, filter.w


def _geometry(names: tuple[str, ...], values: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(names, values, strict=True))


_CONV = ("strides", "padding", "dilation", "groups", "layout")
_POOL = ("window", "strides", "padding", "dilation", "layout")


def _conv_by_x(F: Any, g: Any, y: Any, x: Any, kernel: Any, *geometry: Any) -> Any:
    how = _geometry(_CONV, geometry)
    return F.conv2d_input_gradient(g, kernel, size=_size(x, how["layout"]), **how)


def _conv_by_kernel(F: Any, g: Any, y: Any, x: Any, kernel: Any, *geometry: Any) -> Any:
    how = _geometry(_CONV, geometry)
    return F.conv2d_kernel_gradient(x, g, size=_kernel_size(kernel, how["layout"]), **how)


def _input_by_g(F: Any, h: Any, y: Any, g: Any, kernel: Any, size: Any, *geometry: Any) -> Any:
    return F.conv2d(h, kernel, **_geometry(_CONV, geometry))


def _input_by_kernel(F: Any, h: Any, y: Any, g: Any, kernel: Any, size: Any, *geometry: Any) -> Any:
    how = _geometry(_CONV, geometry)
    return F.conv2d_kernel_gradient(h, g, size=_kernel_size(kernel, how["layout"]), **how)


def _kernel_by_x(F: Any, h: Any, y: Any, x: Any, g: Any, size: Any, *geometry: Any) -> Any:
    how = _geometry(_CONV, geometry)
    return F.conv2d_input_gradient(g, h, size=_size(x, how["layout"]), **how)


def _kernel_by_g(F: Any, h: Any, y: Any, x: Any, g: Any, size: Any, *geometry: Any) -> Any:
    return F.conv2d(x, h, **_geometry(_CONV, geometry))


def _max_pool_vjp(F: Any, g: Any, y: Any, x: Any, *geometry: Any) -> tuple[Any]:
    how = _geometry(_POOL, geometry)
    return (F.pool2d_put(g, F.max_pool2d_index(x, **how), size=_size(x, how["layout"]), **how),)


def _max_pool_jvp(F: Any, t: Any, y: Any, x: Any, *geometry: Any) -> Any:
    how = _geometry(_POOL, geometry)
    return F.pool2d_take(t[0], F.max_pool2d_index(x, **how), **how)


class Windows(Base[V], Generic[V]):
    """`strides`, `dilation`, `window` are (vertical, horizontal), `padding` is ((top, bottom), (left, right)).

    Images are NHWC with kernels HWIO, or NCHW with kernels OIHW.
    """

    @op(infer=rule.conv2d, reference=numpy_rule.conv2d, nest=_conv2d_nest, promote=ALL_INPUTS, linear="each",
        vjp=(_conv_by_x, _conv_by_kernel))
    def conv2d(self, x: V, kernel: V, *, strides: Pair, padding: Padding, dilation: Pair, groups: int,
               layout: str) -> V:
        """Cross-correlation, as every neural library has it."""
        ...

    @op(infer=rule.conv2d_input_gradient, reference=numpy_rule.conv2d_input_gradient, promote=ALL_INPUTS,
        nest=_conv2d_input_gradient_nest, linear="each", vjp=(_input_by_g, _input_by_kernel))
    def conv2d_input_gradient(self, g: V, kernel: V, *, size: Pair, strides: Pair, padding: Padding, dilation: Pair,
                              groups: int, layout: str) -> V:
        """The transpose of conv2d in its input, whose height and width are `size`: transposed convolution."""
        ...

    @op(infer=rule.conv2d_kernel_gradient, reference=numpy_rule.conv2d_kernel_gradient, promote=ALL_INPUTS,
        nest=_conv2d_kernel_gradient_nest, linear="each", vjp=(_kernel_by_x, _kernel_by_g))
    def conv2d_kernel_gradient(self, x: V, g: V, *, size: Pair, strides: Pair, padding: Padding, dilation: Pair,
                               groups: int, layout: str) -> V:
        """The transpose of conv2d in its kernel, whose height and width are `size`."""
        ...

    @op(infer=rule.pool2d, reference=numpy_rule.max_pool2d, nest=lambda c: _pool_nest(c, "maximum"), exact=True,
        vjp=_max_pool_vjp, jvp=_max_pool_jvp)
    def max_pool2d(self, x: V, *, window: Pair, strides: Pair, padding: Padding, dilation: Pair, layout: str) -> V:
        """The maximum of each window; NaN wins.  The first maximum has the gradient."""
        ...

    @op(infer=rule.pool2d_index, reference=numpy_rule.max_pool2d_index, nest=lambda c: _pool_nest(c, "argmax"),
        exact=True, differentiable=False)
    def max_pool2d_index(self, x: V, *, window: Pair, strides: Pair, padding: Padding, dilation: Pair,
                         layout: str) -> V:
        """int32 position of the first maximum within its window, counted row by row."""
        ...

    @op(infer=rule.pool2d_take, reference=numpy_rule.pool2d_take, nest=_pool2d_take_nest, exact=True,
        vjp=lambda F, g, y, x, index, *how: (
            F.pool2d_put(g, index, size=_size(x, how[-1]), **_geometry(_POOL, how)), None),
        jvp=lambda F, t, y, x, index, *how: F.pool2d_take(t[0], index, **_geometry(_POOL, how)))
    def pool2d_take(self, x: V, index: V, *, window: Pair, strides: Pair, padding: Padding, dilation: Pair,
                    layout: str) -> V:
        """The element of each window that `index` names."""
        ...

    @op(infer=rule.pool2d_put, reference=numpy_rule.pool2d_put, nest=_pool2d_put_nest,
        vjp=lambda F, h, y, g, index, size, *how: (F.pool2d_take(h, index, **_geometry(_POOL, how)), None),
        jvp=lambda F, t, y, g, index, size, *how: F.pool2d_put(t[0], index, size=size, **_geometry(_POOL, how)))
    def pool2d_put(self, g: V, index: V, *, size: Pair, window: Pair, strides: Pair, padding: Padding,
                   dilation: Pair, layout: str) -> V:
        """The transpose of `pool2d_take`: each value of g added where its index names; `size` is the input's."""
        ...

    @op(infer=rule.pool2d, reference=numpy_rule.sum_pool2d, nest=lambda c: _pool_nest(c, "sum"), linear="jointly",
        vjp=lambda F, g, y, x, *how: (F.sum_pool2d_gradient(g, size=_size(x, how[-1]), **_geometry(_POOL, how)),))
    def sum_pool2d(self, x: V, *, window: Pair, strides: Pair, padding: Padding, dilation: Pair, layout: str) -> V:
        """The sum of each window."""
        ...

    @op(infer=rule.sum_pool2d_gradient, reference=numpy_rule.sum_pool2d_gradient, nest=_sum_pool2d_gradient_nest,
        linear="jointly", vjp=lambda F, h, y, g, size, *how: (F.sum_pool2d(h, **_geometry(_POOL, how)),))
    def sum_pool2d_gradient(self, g: V, *, size: Pair, window: Pair, strides: Pair, padding: Padding, dilation: Pair,
                            layout: str) -> V:
        """The transpose of `sum_pool2d`; `size` is its input's height and width."""
        ...

    @op(composite=True, infer=rule.avg_pool2d)
    def avg_pool2d(self, x: V, *, window: Pair, strides: Pair, padding: Padding, dilation: Pair, count_padding: bool,
                   layout: str) -> V:
        """The mean of each window, over its elements inside the image or over all of it."""
        F: Any = self
        how = _geometry(_POOL, (window, strides, padding, dilation, layout))
        total = F.sum_pool2d(x, **how)
        if count_padding or padding == ((0, 0), (0, 0)):
            return F.divide(total, window[0] * window[1])  # type: ignore[no-any-return]
        h, w = _size(x, layout)
        ones = F.full(shape=(1, h, w, 1) if layout == "NHWC" else (1, 1, h, w), value=1, dtype=x.dtype)
        return F.divide(total, F.sum_pool2d(ones, **how))  # type: ignore[no-any-return]
