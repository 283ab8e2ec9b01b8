"""Convolutions as matrix products: the elements that windows see are found while they are multiplied.

Channels are the last axis of images, and output channels that of kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.base.tiling import Tiling
from nnc_core.operator.products.joined import Factor, JoinedProduct, plain, width_of
from nnc_core.operator.products.pooled import pooled
from nnc_core.operator.products.problem import ImageWindows, MatrixProduct, Strided, WindowAxis, in_panels
from nnc_core.operator.products.residues import Slide, in_residues
from nnc_core.shape.window import has_channels_last

FEW_CHANNELS = 16
"""Fewer make a short sum, or a low tile, of what one element of windows sees."""


class Sliding(NamedTuple):
    """The attributes that all three operators have."""

    strides: Sequence[int]
    padding: Sequence[tuple[int, int]]
    dilation: Sequence[int]
    groups: int
    order: str


def conv_problem(joined: JoinedProduct) -> MatrixProduct:
    """Rows are the windows of all images, columns output channels, steps the elements of a window."""
    slide = _sliding(joined.attributes)
    (x, kernel), groups = _layouts(joined), slide.groups
    channels, outputs = kernel.shape[-2], kernel.shape[-1] // groups
    shape = joined.shape
    axes = tuple([
        WindowAxis(count, image, stride, -before, dilation, window, pixel)
        for count, image, stride, (before, _), dilation, window, pixel in zip(
            shape[1:-1], x.shape[1:-1], slide.strides, slide.padding, slide.dilation, kernel.shape[:-2],
            _steps(x)[1:-1], strict=True)])
    taps, by_tap = prod(kernel.shape[:-2]), _merged(kernel.shape[:-2], _steps(kernel)[:-2])
    *_, by_channel, by_output = _steps(kernel)
    windows = ImageWindows(axes, _steps(x)[0])
    if _is_depthwise(channels, outputs, groups):
        if joined.pool is not None:
            raise NotSupportedError("no depthwise convolution is pooled as it is computed")
        return _depthwise(joined, windows, taps, by_tap)
    a = Strided(_first(x), (channels * _steps(x)[-1],), 0, _steps(x)[-1])
    b = Strided(_first(kernel), (outputs * by_output,), by_channel, by_output)
    run = _run(windows, channels, groups) if by_tap == channels * by_channel else 1
    problem = MatrixProduct(
        x.dtype, (groups,), prod(shape[:-1]), outputs, taps * channels, a, b, _by_window(joined, outputs),
        joined.ending, _order(joined), taps // run, by_tap * run, _with_runs(windows, run))
    problem = _pointwise(problem, x) if joined.pool is None else pooled(problem, joined.pool)
    return _packed(problem, joined.factors[1])


def _run(windows: ImageWindows, channels: int, groups: int) -> int:
    """The elements along the last axis of windows that are gone through as one, with their channels: all of them where
    they are neighbours, and none lies outside of the image; worth the while where channels are few."""
    axis = windows.axes[-1]
    last = (axis.places - 1) * axis.stride + axis.offset + (axis.window - 1) * axis.step
    whole = groups == 1 and axis.step == 1 and axis.pixel == channels and axis.offset >= 0 and last < axis.image
    return axis.window if whole and channels < FEW_CHANNELS else 1


def _with_runs(windows: ImageWindows, run: int) -> ImageWindows:
    *outer, last = windows.axes
    return windows._replace(axes=(*outer, last._replace(window=last.window // run)))


def kernel_tiling(rank: int, width: int, word: int = 1) -> Tiling:
    """Panels of so many output channels of a kernel with so many axes; the elements of `word` input channels lie side
    by side."""
    within = (2 * rank - 1,) if word == 1 else (2 * rank - 1, 2 * rank - 2)
    return Tiling((*(1,) * (rank - 2), word, width), (rank - 1, *range(rank - 1), *within))


def _packed(problem: MatrixProduct, kernel: Factor) -> MatrixProduct:
    """The problem with its kernel as it is packed."""
    if kernel.tiling is None:
        return problem
    width, word, channels = width_of(kernel.tiling), kernel.tiling.blocks[-2], kernel.shape[-2]
    if kernel.tiling != kernel_tiling(len(kernel.shape), width, word) or problem.batch != (1,):
        raise NotSupportedError("the kernel is not packed as it should be")
    if channels % word and problem.length != channels:
        raise NotSupportedError("words of the kernel are not full where its elements are one run")
    return in_panels(problem, width, word)


def input_gradient_problem(joined: JoinedProduct) -> MatrixProduct:
    """Rows are the pixels of all images, columns input channels; steps are the windows that see a pixel."""
    slide = _sliding(joined.attributes[1:])
    (g, kernel), groups = _layouts(joined), slide.groups
    channels, outputs = kernel.shape[-2], kernel.shape[-1] // groups
    shape = joined.others[-1].shape
    axes = tuple([
        WindowAxis(pixels, count, 1, before, -dilation, window, pixel)
        for pixels, count, (before, _), dilation, window, pixel in zip(
            shape[1:-1], g.shape[1:-1], slide.padding, slide.dilation, kernel.shape[:-2], _steps(g)[1:-1],
            strict=True)])
    taps, by_tap = prod(kernel.shape[:-2]), _merged(kernel.shape[:-2], _steps(kernel)[:-2])
    *_, by_channel, by_output = _steps(kernel)
    windows = ImageWindows(axes, _steps(g)[0])
    if _is_depthwise(channels, outputs, groups):
        problem = _depthwise(joined, windows, taps, by_tap)
        return _in_residues(problem, slide, kernel) if prod(slide.strides) > 1 else problem
    a = Strided(_first(g), (outputs * _steps(g)[-1],), 0, _steps(g)[-1])
    b = Strided(_first(kernel), (outputs * by_output,), by_output, by_channel)
    problem = MatrixProduct(
        g.dtype, (groups,), prod(shape[:-1]), channels, taps * outputs, a, b, _by_window(joined, channels),
        joined.ending, _order(joined), taps, by_tap, windows)
    return _in_residues(problem, slide, kernel) if prod(slide.strides) > 1 else _pointwise(problem, g)


def _in_residues(problem: MatrixProduct, slide: Sliding, kernel: Layout) -> MatrixProduct:
    """The gradient in parts, where windows lie apart."""
    axes = zip(slide.strides, slide.padding, slide.dilation, _steps(kernel)[:-2], strict=True)
    return in_residues(problem, [Slide(stride, before, dilation, tap) for stride, (before, _), dilation, tap in axes])


def kernel_gradient_problem(joined: JoinedProduct) -> MatrixProduct:
    """Rows are input channels, for each element of the window apart, columns output channels, steps all windows."""
    slide = _sliding(joined.attributes[1:])
    (x, g), groups = _layouts(joined), slide.groups
    shape = joined.others[-1].shape
    channels, outputs = shape[-2], shape[-1] // groups
    axes = tuple([
        WindowAxis(count, image, stride, -before, dilation, window, pixel)
        for count, image, stride, (before, _), dilation, window, pixel in zip(
            g.shape[1:-1], x.shape[1:-1], slide.strides, slide.padding, slide.dilation, shape[:-2],
            _steps(x)[1:-1], strict=True)])
    windows = ImageWindows(axes, _steps(x)[0])
    by_taps = [_merged(shape[:-2], _steps(y)[:-2]) for y in joined.others]
    even = all(step == channels * _steps(y)[-2] for step, y in zip(by_taps, joined.others, strict=True))
    run = _run(windows, channels, groups) if even else 1
    others = [Strided(_first(y), (outputs * _steps(y)[-1], step * run), _steps(y)[-2], _steps(y)[-1])
              for step, y in zip(by_taps, joined.others, strict=True)]
    a = Strided(_first(x), (channels * _steps(x)[-1], 0), _steps(x)[-1], 0)
    b = Strided(_first(g), (outputs * _steps(g)[-1], 0), _merged(g.shape[:-1], _steps(g)[:-1]), _steps(g)[-1])
    return MatrixProduct(
        x.dtype, (groups, prod(shape[:-2]) // run), run * channels, outputs, prod(g.shape[:-1]), a, b, tuple(others),
        joined.ending, _order(joined), windows=_with_runs(windows, run))


def _is_depthwise(channels: int, outputs: int, groups: int) -> bool:
    return channels == outputs == 1 and groups > 1


def _depthwise(joined: JoinedProduct, windows: ImageWindows, taps: int, by_tap: int) -> MatrixProduct:
    """Columns are the channels, each with its own kernel, steps the elements of windows."""
    image, kernel = _layouts(joined)
    shape = joined.others[-1].shape
    a, b = Strided(_first(image), (0,), 0, _steps(image)[-1]), Strided(_first(kernel), (0,), by_tap, _steps(kernel)[-1])
    return MatrixProduct(
        image.dtype, (1,), prod(shape[:-1]), shape[-1], taps, a, b, _by_window(joined, 0), joined.ending,
        _order(joined), taps, by_tap, windows, each=True)


def _sliding(attributes: Sequence[Any]) -> Sliding:
    slide = Sliding(*attributes)
    if not has_channels_last(slide.order):
        raise NotSupportedError("channels are not the last axis")
    return slide


def _layouts(joined: JoinedProduct) -> tuple[Layout, Layout]:
    a, b = joined.factors
    return plain(a), plain(b)


def _order(joined: JoinedProduct) -> tuple[int, ...]:
    a, b = joined.factors
    return (a.place, b.place, *joined.places)


def _first(x: Layout) -> int:
    return x.offset // x.dtype.itemsize


def _steps(x: Layout) -> list[int]:
    """Strides in elements."""
    return [step // x.dtype.itemsize for step in x.strides]


def _merged(lengths: Sequence[int], steps: Sequence[int]) -> int:
    """The step along several axes that can be gone through as one; NotSupportedError where they cannot."""
    kept = [(n, step) for n, step in zip(lengths, steps, strict=True) if n != 1]
    for (_, outer), (n, inner) in pairwise(kept):
        if outer != inner * n:
            raise NotSupportedError("pixels, or elements of windows, lie apart")
    return kept[-1][1] if kept else 0


def _by_window(joined: JoinedProduct, columns: int) -> tuple[Strided, ...]:
    """Operands of the ending and outputs, images of which each pixel is a row."""
    return tuple([Strided(_first(x), (columns * _steps(x)[-1],), _merged(x.shape[:-1], _steps(x)[:-1]), _steps(x)[-1])
                  for x in joined.others])


def _pointwise(problem: MatrixProduct, image: Layout) -> MatrixProduct:
    """The problem without windows, where these see one pixel each, in order."""
    windows = problem.windows
    assert windows is not None
    plain = WindowAxis(stride=1)._asdict()
    same = all({**axis._asdict(), "places": 1, "image": 1, "pixel": 0, "step": 0} == plain and axis.places == axis.image
               for axis in windows.axes)
    if not same:
        return problem
    try:
        row = _merged(image.shape[:-1], _steps(image)[:-1])
    except NotSupportedError:
        return problem
    return problem._replace(windows=None, a=problem.a._replace(row=row))

