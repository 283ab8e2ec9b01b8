"""Convolution and its gradients: windows gathered into columns, some images at a time, and matrix products.

All arrays are packed and of float32 or float64 here.  Matrices carry a leading axis of groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import is_float
from nnc_core.base.layout import Layout
from nnc_core.device import Launch
from nnc_core.shape.window import has_channels_last
from nnc_cpu.memory import Array
from nnc_cpu.routine import Make, Routine, attributes_of, converting, in_order, prepared, scratch
from nnc_cpu.windows import Geometry

_AT_ONCE = 4 << 20  # bytes of columns
_SHORT_RUN = 16
"""Fewer neighbours than this make copying window by window slower than position by position."""
_FEW_CHANNELS = 4


def _images_at_once(batch: int, nbytes: int) -> int:
    """The number of images to treat in one step, when one takes `nbytes` of scratch."""
    return max(1, min(batch, _AT_ONCE // max(nbytes, 1)))


def _parts(batch: int, step: int) -> Iterator[slice]:
    return (slice(begin, min(begin + step, batch)) for begin in range(0, batch, step))


class _Convolution:
    """Sizes of one convolution, whichever of its three arrays is the unknown."""

    def __init__(self, image: Layout, kernel: Layout, result: Layout, geometry: tuple[Any, ...]) -> None:
        strides, padding, dilation, groups, order = geometry
        self.channels_last = has_channels_last(order)
        window = kernel.shape[:-2] if self.channels_last else kernel.shape[2:]
        self.at = Geometry.of(image, result, window, strides, padding, dilation, order)
        self.dtype, self.groups = image.dtype, groups
        self.batch, self.pixels = self.at.batch, prod(self.at.count)
        self.i = self.at.channels // groups
        self.o = kernel.shape[-1 if self.channels_last else 0] // groups
        self.k = prod(window) * self.i
        self.pointwise = prod(self.at.window) == 1 and prod(self.at.strides) == 1 and not self.at.padded
        """The image itself is its columns."""
        run = self.i * (window[-1] if dilation[-1] == 1 else 1)
        self.position_major = run < _SHORT_RUN
        self.step = _images_at_once(self.batch, groups * self.k * self.pixels * self.dtype.itemsize)

    def grouped_windows(self, image: Array) -> Array:
        """View (n, spatial, window, g, i) of a padded image."""
        return _split(self, self.at.windows(self.at.last(image)))

    def axes(self, order: str) -> list[int]:
        """Numbers of the axes of `grouped_windows`: n, s (all spatial ones), k (all of the window), g, i."""
        rank = len(self.at.window)
        numbers = {"n": [0], "s": range(1, rank + 1), "k": range(rank + 1, 2 * rank + 1), "g": [-2], "i": [-1]}
        return [number for name in order for number in numbers[name]]

    def image_scratch(self) -> tuple[Layout, ...]:
        """A padded image and the columns of one part; neither for a pointwise convolution."""
        if self.pointwise:
            return ()
        columns = scratch((self.step * self.groups * self.k * self.pixels,), self.dtype)
        return (*self.at.padded_scratch(self.dtype), columns)

    def padded(self, x: Array, room: tuple[Array, ...]) -> tuple[Array, list[Launch]]:
        """The image that windows are taken from, and how it comes about."""
        if not self.at.padded:
            return x, []
        return room[0], self.at.padding_steps(x, room[0], 0)

    def columns(self, image: Array, part: slice, room: tuple[Array, ...], axes: str) -> tuple[Array, list[Launch]]:
        """The windows of some images with their axes in an order of `self.axes`, not merged yet."""
        seen = self.grouped_windows(image)[part].transpose(*self.axes(axes))
        if self.pointwise:
            return seen, []
        gathered = room[-1][: seen.size].reshape(seen.shape)
        return gathered, [converting(seen, gathered)]

    def matrices(self, x: Array) -> Array:
        """Images with channels last, as a view (groups, pixels, channels of a group)."""
        return x.reshape(-1, self.groups, x.shape[-1] // self.groups).transpose(1, 0, 2)

    def weights(self, kernel: Array) -> Array:
        """View (groups, k, o) of a kernel (window, i, o)."""
        return kernel.reshape(self.k, self.groups, self.o).transpose(1, 0, 2)

    def pixel_columns(self, image: Array, part: slice, room: tuple[Array, ...]) -> tuple[Array, list[Launch]]:
        """(groups, pixels, k) of images with channels last, gathered in the quicker of two orders."""
        pixels = (part.stop - part.start) * self.pixels
        if self.position_major and not self.pointwise:
            columns, steps = self.columns(image, part, room, "gkins")
            return columns.reshape(self.groups, self.k, pixels).swapaxes(1, 2), steps
        columns, steps = self.columns(image, part, room, "gnski")
        if self.pointwise:
            return self.matrices(image[part]), steps
        return columns.reshape(self.groups, pixels, self.k), steps


def _conv(command: Command) -> Routine:
    x, kernel = command.inputs
    c = _Convolution(x, kernel, command.output, attributes_of(command))
    forward = _forward_last if c.channels_last else _forward_first

    def bind(x: Array, kernel: Array, out: Array, *room: Array) -> Launch:
        image, steps = c.padded(x, room)
        for part in _parts(c.batch, c.step):
            steps += forward(c, image, kernel, out, part, room)
        return in_order(steps)

    return Routine(bind, c.image_scratch())


def _forward_last(c: _Convolution, image: Array, kernel: Array, out: Array, part: slice,
                  room: tuple[Array, ...]) -> list[Launch]:
    columns, steps = c.pixel_columns(image, part, room)
    return [*steps, partial(np.matmul, columns, c.weights(kernel), c.matrices(out[part]))]


def _forward_first(c: _Convolution, image: Array, kernel: Array, out: Array, part: slice,
                   room: tuple[Array, ...]) -> list[Launch]:
    columns, steps = c.columns(image, part, room, "ngiks")
    count = len(columns)
    weights, target = kernel.reshape(c.groups, c.o, c.k), out[part].reshape(count, c.groups, c.o, c.pixels)
    return [*steps, partial(np.matmul, weights, columns.reshape(count, c.groups, c.k, c.pixels), target)]


def _kernel_gradient(command: Command) -> Routine:
    x, g = command.inputs
    c = _Convolution(x, command.output, g, attributes_of(command)[1:])
    product_of = _kernel_product_last if c.channels_last else _kernel_product_first
    c.pointwise = c.pointwise and c.channels_last
    shape = (c.groups, c.k, c.o) if c.channels_last else (c.groups, c.o, c.k)
    turned = () if c.channels_last else (scratch((c.step * c.groups * c.o * c.pixels,), c.dtype),)

    def bind(x: Array, g: Array, out: Array, product: Array, *room: Array) -> Launch:
        total = c.weights(out) if c.channels_last else out.reshape(shape)
        image, steps = c.padded(x, room[len(turned) :])
        for part in _parts(c.batch, c.step):
            steps += product_of(c, image, g, total if part.start == 0 else product, part, room)
            if part.start:
                steps.append(partial(np.add, total, product, total))
        return in_order(steps if c.batch else [partial(out.fill, 0)])

    return Routine(bind, (scratch(shape, c.dtype), *turned, *c.image_scratch()))


def _kernel_product_last(c: _Convolution, image: Array, g: Array, out: Array, part: slice,
                         room: tuple[Array, ...]) -> list[Launch]:
    columns, steps = c.pixel_columns(image, part, room)
    return [*steps, partial(np.matmul, columns.swapaxes(1, 2), c.matrices(g[part]), out)]


def _kernel_product_first(c: _Convolution, image: Array, g: Array, out: Array, part: slice,
                          room: tuple[Array, ...]) -> list[Launch]:
    turned, *rest = room
    columns, steps = c.columns(image, part, tuple(rest), "gikns")
    count = part.stop - part.start
    given = g[part].reshape(count, c.groups, c.o, c.pixels).transpose(1, 2, 0, 3)
    cotangent = turned[: given.size].reshape(given.shape)
    matrix = columns.reshape(c.groups, c.k, count * c.pixels)
    product = partial(np.matmul, cotangent.reshape(c.groups, c.o, -1), matrix.swapaxes(1, 2), out)
    return [*steps, converting(given, cotangent), product]


def _input_gradient(command: Command) -> Routine:
    g, kernel = command.inputs
    c = _Convolution(command.output, kernel, g, attributes_of(command)[1:])
    add, taps = _input_plan(c)
    step = _images_at_once(c.batch, taps * c.at.channels * c.pixels * c.dtype.itemsize)
    packed = () if c.channels_last else (scratch(_tap_major(c), c.dtype),)

    def bind(g: Array, kernel: Array, out: Array, product: Array, *room: Array) -> Launch:
        target = room[-1] if c.at.padded else out
        steps: list[Launch] = [partial(target.fill, 0)]
        if packed:
            taken = kernel.reshape(c.groups, c.o, c.i, *c.at.window)
            steps.append(converting(taken.transpose(*range(3, taken.ndim), 0, 2, 1), room[0]))
        for part in _parts(c.batch, step):
            steps += add(c, g, room[0] if packed else kernel, c.at.last(target), part, product)
        if c.at.padded:
            steps.append(converting(c.at.middle(c.at.last(target)), c.at.last(out)))
        return in_order(steps)

    product = scratch((step * taps * c.at.channels * c.pixels,), c.dtype)
    return Routine(bind, (product, *packed, *c.at.padded_scratch(c.dtype)))


_AddPart = Callable[[_Convolution, Array, Array, Array, slice, Array], list[Launch]]


def _input_plan(c: _Convolution) -> tuple[_AddPart, int]:
    """A function that adds the gradient of some images, and the number of taps that one product covers."""
    if not c.channels_last:
        return _add_taps_first, 1
    return (_add_columns, prod(c.at.window)) if c.i <= _FEW_CHANNELS else (_add_taps_last, 1)


def _tap_major(c: _Convolution) -> tuple[int, ...]:
    return (*c.at.window, c.groups, c.i, c.o)


def _split(c: _Convolution, x: Array) -> Array:
    """Channels (last) as (groups, channels of a group), still a view."""
    *strides, step = x.strides
    return np.lib.stride_tricks.as_strided(x, (*x.shape[:-1], c.groups, c.i), (*strides, step * c.i, step),
                                           writeable=x.flags.writeable)


def _add_taps_last(c: _Convolution, g: Array, kernel: Array, target: Array, part: slice, room: Array) -> list[Launch]:
    """One product for each position in the window, added where it belongs."""
    steps: list[Launch] = []
    cotangent = c.matrices(g[part])
    shape = (c.groups, part.stop - part.start, *c.at.count, c.i)
    product = room[: prod(shape)].reshape(shape)
    images, rank = target[part], len(c.at.window)
    axes = (rank + 1, *range(rank + 1), rank + 2)
    for k in c.at.positions():
        weights = kernel[k].reshape(c.i, c.groups, c.o).transpose(1, 2, 0)
        tap = _split(c, c.at.tap(images, k)).transpose(axes)
        steps += [partial(np.matmul, cotangent, weights, product.reshape(c.groups, -1, c.i)),
                  partial(np.add, tap, product, tap)]
    return steps


def _add_taps_first(c: _Convolution, g: Array, kernel: Array, target: Array, part: slice, room: Array) -> list[Launch]:
    """The same with channels first; `kernel` is (window, groups, i, o)."""
    steps: list[Launch] = []
    count = part.stop - part.start
    cotangent = g[part].reshape(count, c.groups, c.o, c.pixels)
    shape = (count, c.groups, c.i, *c.at.count)
    product = room[: prod(shape)].reshape(shape)
    images, rank = target[part], len(c.at.window)
    axes = (0, rank + 1, rank + 2, *range(1, rank + 1))
    for k in c.at.positions():
        tap = _split(c, c.at.tap(images, k)).transpose(axes)
        steps += [partial(np.matmul, kernel[k], cotangent, product.reshape(count, c.groups, c.i, c.pixels)),
                  partial(np.add, tap, product, tap)]
    return steps


def _add_columns(c: _Convolution, g: Array, kernel: Array, target: Array, part: slice, room: Array) -> list[Launch]:
    """One product for all positions: for so few channels that a product for each would be of vectors."""
    shape = (c.groups, *c.at.window, c.i, part.stop - part.start, *c.at.count)
    columns = room[: prod(shape)].reshape(shape)
    steps: list[Launch] = [partial(np.matmul, c.weights(kernel), c.matrices(g[part]).swapaxes(1, 2),
                                   columns.reshape(c.groups, c.k, -1))]
    images, rank = target[part], len(c.at.window)
    axes = (rank + 1, rank + 2, *range(rank + 1))
    for k in c.at.positions():
        tap = _split(c, c.at.tap(images, k)).transpose(axes)
        at: Any = (slice(None), *k)
        steps.append(partial(np.add, tap, columns[at], tap))
    return steps


def is_depthwise(command: Command) -> bool:
    """True for a convolution of floats, or one of its gradients, with as many groups as channels."""
    groups, order = command.attributes[-2:]
    last = has_channels_last(order)
    image = command.output if command.name == "conv_input_gradient" else command.inputs[0]
    channels: int = image.shape[-1 if last else 1]
    return last and groups > 1 and channels == groups and is_float(image.dtype)


MAKERS: dict[str, Make] = {
    "conv": prepared(_conv, wide=True),
    "conv_input_gradient": prepared(_input_gradient, wide=True),
    "conv_kernel_gradient": prepared(_kernel_gradient, wide=True),
}  # fmt: skip
