"""Convolutions of commands as problems of the library, and what is copied before and behind it.

The library wants packed arrays, channels either last or first in images and kernels alike.  Kernels of images with
channels last have their output channels last here and first there: they are transposed on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple, cast

from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, bfloat16, float16, float32, float64
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.base.tiling import Tiling
from nnc_core.operator.products.arrange import joined_of, operator_of
from nnc_core.operator.products.convolution import Sliding
from nnc_core.operator.products.joined import Factor, JoinedProduct
from nnc_core.shape.window import has_channels_last
from nnc_cuda.dnn.interface import Convolution, TensorPlace, Way
from nnc_cuda.dnn.places import ALIGNED, aligned, alignment_of
from nnc_cuda.kernel import NestStep
from nnc_cuda.matrices.nests import copied
from nnc_cuda.products.endings import SimpleEnding, simple_ending
from nnc_cuda.products.library import PlacedArray

DTYPES = (float16, bfloat16, float32, float64)
WORTH = 1 << 18
"""Multiply-adds from which on a call of the library pays."""
MOST = 1 << 31
"""Elements of an array: engines count with 32 bits."""
SLIDES_OVER = {"conv": (0, 1, 2), "conv_input_gradient": (2, 1, 0), "conv_kernel_gradient": (0, 2, 1)}
"""Which of two factors and the result are images that windows see, the kernel, and the images of results."""


class PlacedConvolution(NamedTuple):
    """A convolution for the library."""

    problem: Convolution
    spots: tuple[PlacedArray, ...]
    """Of the problem's arrays."""
    before: tuple[NestStep, ...]
    """The kernel, transposed into the workspace."""
    behind: tuple[NestStep, ...]
    """The kernel's gradient, transposed out of it."""
    packed: int
    """Bytes of the workspace that are the transposed kernel's."""


def kernel_tiling(rank: int) -> Tiling:
    """The order of a kernel's axes (..., inputs, outputs) that the library wants: outputs, ..., inputs."""
    return Tiling((1,) * rank, (rank - 1, *range(rank - 1)))


@lru_cache(maxsize=1024)
def placed_convolution(command: Command) -> PlacedConvolution:
    """The convolution of a command; NotSupportedError where the library takes none like it."""
    joined, way = joined_of(command), cast(Way, operator_of(command))
    slide = Sliding(*joined.attributes[-5:])
    _refuse_others(joined, slide)
    ending = simple_ending(joined.ending, joined.factors[0].layout.dtype)
    if way != "conv" and (ending.operands or ending.relu):
        raise NotSupportedError("the library has nothing that follows gradients")
    return ConvolutionPlacer(command, joined, way, slide).placed(ending)


def _refuse_others(joined: JoinedProduct, slide: Sliding) -> None:
    a, b = joined.factors
    dtype, out = a.layout.dtype, joined.others[-1]
    if dtype not in DTYPES or b.layout.dtype != dtype or joined.ending.outputs != (dtype,):
        raise NotSupportedError(f"the library convolves no {dtype}, {b.layout.dtype} to {joined.ending.outputs}")
    if 0 in (*a.layout.shape, *b.layout.shape, *out.shape):
        raise NotSupportedError("there is nothing to convolve")
    if max(a.layout.size, b.layout.size, out.size) >= MOST:
        raise NotSupportedError("the library counts with 32 bits")
    if not has_channels_last(slide.order) and slide.order[:2] != "NC":
        raise NotSupportedError("channels are neither first nor last")
    if not 1 <= len(slide.strides) <= 3:
        raise NotSupportedError("the library has windows of up to three axes")
    if min([side for sides in slide.padding for side in sides], default=0) < 0:
        raise NotSupportedError("images lose pixels at a side")


class ConvolutionPlacer:
    """Places the arrays of one command."""

    def __init__(self, command: Command, joined: JoinedProduct, way: Way, slide: Sliding) -> None:
        self.command, self.joined, self.way, self.slide = command, joined, way, slide
        self.last = has_channels_last(slide.order)
        self.workspace = len(command.inputs) + len(command.outputs)
        self.packed = 0

    def placed(self, ending: SimpleEnding) -> PlacedConvolution:
        joined, slide = self.joined, self.slide
        arrays = [*joined.factors, Factor(joined.others[-1], joined.places[-1])]
        x, kernel, y = (arrays[n] for n in SLIDES_OVER[self.way])
        at_x, at_y = self._image(x.layout), self._image(y.layout)
        at_kernel, kernel_spot, copy = self._kernel(kernel)
        spots = [PlacedArray(x.place, x.layout.offset), kernel_spot, PlacedArray(y.place, y.layout.offset)]
        work = prod(y.layout.shape) * prod(at_kernel.shape[1:])
        if work < WORTH:
            raise NotSupportedError("it is too small to pay")
        operands = self._operands(ending)
        spots += [PlacedArray(joined.places[n], joined.others[n].offset) for n in operands.values()]
        added, bias = operands.get("image"), operands.get("row")
        problem = Convolution(
            self.way, at_x, at_kernel, at_y, self._wide(slide.strides, 1), self._wide([a for a, _ in slide.padding], 0),
            self._wide([b for _, b in slide.padding], 0), self._wide(slide.dilation, 1), ending.scale,
            None if added is None else self._image(joined.others[added]),
            None if bias is None else self._bias(joined.others[bias], y.layout), ending.relu)
        to_result = self.way == "conv_kernel_gradient"
        copies = () if copy is None else (copy,)
        return PlacedConvolution(problem, tuple(spots), () if to_result else copies, copies if to_result else (),
                                 self.packed)

    def _wide(self, numbers: Sequence[int], one: int) -> tuple[int, ...]:
        """The numbers of axes, those of one axis with those of a second one, which has length 1."""
        return (one, *numbers) if len(numbers) == 1 else tuple(numbers)

    def _image(self, x: Layout) -> TensorPlace:
        """Images, which lie packed."""
        if not x.contiguous:
            raise NotSupportedError("images lie apart")
        n, *rest = x.shape
        *pixels, channels = rest if self.last else [*rest[1:], rest[0]]
        return _tensor(x.dtype, n, channels, self._wide(pixels, 1), self.last, alignment_of(x.offset))

    def _bias(self, x: Layout, image: Layout) -> TensorPlace:
        channels = image.shape[-1] if self.last else image.shape[1]
        ones = (1,) * max(len(image.shape) - 2, 2)
        return TensorPlace(x.dtype, (1, channels, *ones), (channels, 1, *(channels,) * len(ones)),
                           alignment_of(x.offset))

    def _kernel(self, kernel: Factor) -> tuple[TensorPlace, PlacedArray, NestStep | None]:
        """A kernel or its gradient where the library reads or writes it, and the copy from or to where it is."""
        x, shape = kernel.layout, kernel.shape if kernel.tiling is not None else kernel.layout.shape
        *window, inputs, outputs = shape if self.last else [*shape[2:], shape[1], shape[0]]

        def there(alignment: int) -> TensorPlace:
            return _tensor(x.dtype, outputs, inputs, self._wide(window, 1), self.last, alignment)

        packed = kernel.tiling is not None
        if packed and (kernel.tiling != kernel_tiling(len(shape)) or not self.last):
            raise NotSupportedError("the kernel is not packed as it should be")
        if packed or not self.last:
            if not x.contiguous:
                raise NotSupportedError("the kernel lies apart")
            return there(alignment_of(x.offset)), PlacedArray(kernel.place, x.offset), None
        rank = len(shape)
        order = (rank - 1, *range(rank - 1))
        turned = Layout(tuple([shape[n] for n in order]), x.dtype, x.offset, tuple([x.strides[n] for n in order]))
        own = Layout.packed(turned.shape, x.dtype)
        self.packed = aligned(own.nbytes)
        spot = PlacedArray(self.workspace, 0)
        if self.way == "conv_kernel_gradient":
            back = (*range(1, rank), 0)
            seen = Layout(shape, x.dtype, 0, tuple([own.strides[n] for n in back]))
            return there(ALIGNED), spot, NestStep(copied(seen, x), (self.workspace, kernel.place))
        return there(ALIGNED), spot, NestStep(copied(turned, own), (kernel.place, self.workspace))

    def _operands(self, ending: SimpleEnding) -> dict[str, int]:
        """The number of the operand that is an image like the result, and of the one that is a number for each of its
        channels, in the order in which the library adds them."""
        found, dtype = dict[str, int](), self.joined.ending.outputs[0]
        image = self.joined.others[-1]
        channel = len(image.shape) - 1 if self.last else 1
        for number in ending.operands:
            x = self.joined.others[number]
            if self.joined.ending.operands[number].dtype != dtype:
                raise NotSupportedError("what is added has another dtype than the result")
            apart = [axis for axis, (n, step) in enumerate(zip(x.shape, x.strides, strict=True)) if n > 1 and step]
            row = apart in ([channel], []) and image.size > image.shape[channel]
            kind = "row" if row and (not apart or x.strides[channel] == dtype.itemsize) else "image"
            if kind in found or (kind == "row" and not apart and image.shape[channel] > 1):
                raise NotSupportedError("the library adds one image and one number for each channel")
            found[kind] = number
        return {kind: found[kind] for kind in ("image", "row") if kind in found}


def _tensor(dtype: DType, first: int, channels: int, pixels: tuple[int, ...], last: bool,
            alignment: int) -> TensorPlace:
    """A packed array (first, channels, pixels), its channels last in memory or as they stand."""
    shape = (first, channels, *pixels)
    order = (0, *range(2, len(shape)), 1) if last else tuple(range(len(shape)))
    steps, step = [0] * len(shape), 1
    for axis in reversed(order):
        steps[axis], step = step, step * shape[axis]
    return TensorPlace(dtype, shape, tuple(steps), alignment)
