"""Convolution over one, two or three spatial dimensions, and its two transposes.

The three are one trilinear form seen from its three sides, so each one's derivatives are the other two.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Generic

from nnc_core.base.command import Command
from nnc_core.base.loopnest import LoopNest
from nnc_core.operator import window_reference as numpy_rule
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.loops import open_nest
from nnc_core.operator.window_nest import at, dot, filter_of, image_of, kernel_at, seeing, seen
from nnc_core.shape import window as rule
from nnc_core.shape.window import Filter, Image, Padding, Sizes
from nnc_core.type import Dims

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def conv_nest(command: Command) -> LoopNest:
    strides, padding, dilation, groups, order = command.attributes
    slide: Any = strides, padding, dilation
    image, filter = image_of(command.output, order), filter_of(command.inputs[1], order)
    outputs = filter.o // groups
    nest = open_nest(command)
    n, *place, group, o = nest.outer(image.n, *image.size, groups, outputs)
    with nest.stage(*filter.size, filter.i) as (*k, i):
        x = nest.load(0, *at(order, n, seen(place, k, *slide), group * filter.i + i))
        weight = nest.load(1, *kernel_at(order, k, i, group * outputs + o))
        total = dot(nest, x, weight, command.output.dtype)
    nest.store(0, total, *at(order, n, place, group * outputs + o))
    return nest.build()


def _conv_input_gradient_nest(command: Command) -> LoopNest:
    _, strides, padding, dilation, groups, order = command.attributes
    slide: Any = strides, padding, dilation
    image, filter = image_of(command.output, order), filter_of(command.inputs[1], order)
    outputs = filter.o // groups
    nest = open_nest(command)
    n, *place, group, i = nest.outer(image.n, *image.size, groups, filter.i)
    with nest.stage(*filter.size, outputs) as (*k, o):
        channel = group * outputs + o
        g = nest.load(0, *at(order, n, seeing(place, k, *slide), channel))
        total = dot(nest, g, nest.load(1, *kernel_at(order, k, i, channel)), g.dtype)
    nest.store(0, total, *at(order, n, place, group * filter.i + i))
    return nest.build()


def _conv_kernel_gradient_nest(command: Command) -> LoopNest:
    _, strides, padding, dilation, groups, order = command.attributes
    slide: Any = strides, padding, dilation
    image, filter = image_of(command.inputs[1], order), filter_of(command.output, order)
    outputs = filter.o // groups
    nest = open_nest(command)
    *k, i, group, o = nest.outer(*filter.size, filter.i, groups, outputs)
    channel = group * outputs + o
    with nest.stage(image.n, *image.size) as (n, *place):
        x = nest.load(0, *at(order, n, seen(place, k, *slide), group * filter.i + i))
        total = dot(nest, x, nest.load(1, *at(order, n, place, channel)), x.dtype)
    nest.store(0, total, *kernel_at(order, k, i, channel))
    return nest.build()


def _geometry(values: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(("strides", "padding", "dilation", "groups", "layout"), values, strict=True))


def _size(x: Any, layout: str) -> Any:
    return Image.of(x.spec, layout).size


def _kernel_size(kernel: Any, layout: str) -> Any:
    return Filter.of(kernel.spec, layout).size


def _conv_by_x(F: Namespace[V], g: V, y: V, x: V, kernel: V, *how: Any) -> V:
    return F.conv_input_gradient(g, kernel, size=_size(x, how[-1]), **_geometry(how))


def _conv_by_kernel(F: Namespace[V], g: V, y: V, x: V, kernel: V, *how: Any) -> V:
    return F.conv_kernel_gradient(x, g, size=_kernel_size(kernel, how[-1]), **_geometry(how))


def _input_by_g(F: Namespace[V], h: V, y: V, g: V, kernel: V, size: Any, *how: Any) -> V:
    return F.conv(h, kernel, **_geometry(how))


def _input_by_kernel(F: Namespace[V], h: V, y: V, g: V, kernel: V, size: Any, *how: Any) -> V:
    return F.conv_kernel_gradient(h, g, size=_kernel_size(kernel, how[-1]), **_geometry(how))


def _kernel_by_x(F: Namespace[V], h: V, y: V, x: V, g: V, size: Any, *how: Any) -> V:
    return F.conv_input_gradient(g, h, size=_size(x, how[-1]), **_geometry(how))


def _kernel_by_g(F: Namespace[V], h: V, y: V, x: V, g: V, size: Any, *how: Any) -> V:
    return F.conv(x, h, **_geometry(how))


def _input_gradient_flops(command: Command) -> float:
    """Each element of g goes through one filter; with strides most windows that the nest tries see none."""
    g, kernel = command.inputs
    filters: int = filter_of(kernel, command.attributes[-1]).o
    return 2 * prod(g.shape) * prod(kernel.shape) / max(filters, 1)


class Convolution(Base[V], Generic[V]):
    """`strides` and `dilation` have a number for each spatial dimension, `padding` a pair (before, after)."""

    @op(infer=rule.conv, reference=numpy_rule.conv, nest=conv_nest, promote=ALL_INPUTS, linear="each",
        vjp=(_conv_by_x, _conv_by_kernel))
    def conv(self, x: V, kernel: V, *, strides: Sizes, padding: Padding, dilation: Sizes, groups: int,
             layout: str) -> V:
        """Cross-correlation, as every neural library has it."""
        ...

    @op(infer=rule.conv_input_gradient, reference=numpy_rule.conv_input_gradient, promote=ALL_INPUTS,
        nest=_conv_input_gradient_nest, linear="each", vjp=(_input_by_g, _input_by_kernel), flops=_input_gradient_flops)
    def conv_input_gradient(self, g: V, kernel: V, *, size: Dims, strides: Sizes, padding: Padding, dilation: Sizes,
                            groups: int, layout: str) -> V:
        """The transpose of `conv` in its input, whose spatial dimensions are `size`: transposed convolution."""
        ...

    @op(infer=rule.conv_kernel_gradient, reference=numpy_rule.conv_kernel_gradient, promote=ALL_INPUTS,
        nest=_conv_kernel_gradient_nest, linear="each", vjp=(_kernel_by_x, _kernel_by_g))
    def conv_kernel_gradient(self, x: V, g: V, *, size: Dims, strides: Sizes, padding: Padding, dilation: Sizes,
                             groups: int, layout: str) -> V:
        """The transpose of `conv` in its kernel, whose spatial dimensions are `size`."""
        ...
