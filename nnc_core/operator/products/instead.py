"""Convolutions as other ones that these products go through more quickly."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from nnc_core.base.command import Command
from nnc_core.base.dtype import is_complex
from nnc_core.base.tiling import Tiling
from nnc_core.operator.declare import OPERATORS
from nnc_core.operator.packing import PACK
from nnc_core.operator.products.convolution import FEW_CHANNELS, Sliding
from nnc_core.shape.window import has_channels_last

FEW_COLUMNS = 32
"""Channels that do not fill the vectors of a tile."""
OF_IMAGES = ("conv", "conv_integer", "conv_kernel_gradient")
"""Operators whose first input are the images that windows see."""


def suited(F: Any, inputs: Sequence[Any], command: Command) -> Any:
    """The result of a convolution, or of one of its gradients, by another one; None where it suits as it is."""
    if is_with_channels_first(command):
        return with_channels_last(F, inputs, command)
    size, slide = command.attributes[:-5], Sliding(*command.attributes[-5:])
    if command.name == "conv_input_gradient" and _is_apart(command, slide):
        return _side_by_side(F, inputs, command)
    if command.name in OF_IMAGES and has_channels_last(slide.order) and not is_complex(command.inputs[0].dtype):
        return _inside(F, inputs, command, size, slide)
    return None


def is_with_channels_first(command: Command) -> bool:
    """Tell whether an operator on images with their channels first is run with channels last instead: transposing pays,
    as most of it sinks into what is around."""
    return not has_channels_last(command.attributes[-1]) and not is_complex(command.inputs[0].dtype)


def with_channels_last(F: Any, inputs: Sequence[Any], command: Command) -> Any:
    """The operator on transposed images and kernels, transposed back."""
    *attributes, order = command.attributes
    last = len(order) - 1
    images, kernel = (0, *range(2, last + 1), 1), (*range(2, last + 1), 1, 0)
    axes = (images, images if command.name == "conv_kernel_gradient" else kernel)
    turned = tuple([F.apply(PACK, (x,), (Tiling((1,) * (last + 1), a),)) for x, a in zip(inputs, axes, strict=True)])
    found = F.apply(OPERATORS[command.name], turned, (*attributes, order[0] + order[2:] + order[1]))
    back = (last, last - 1, *range(last - 1)) if command.name == "conv_kernel_gradient" else (0, last, *range(1, last))
    return F.permute(found, axes=back)


def _is_apart(command: Command, slide: Sliding) -> bool:
    """Tell whether the windows of a gradient by images lie side by side and fill the image, which has few channels: the
    product for each element of a window would have few columns."""
    windows, kernel = command.inputs
    *window, channels, _ = kernel.shape
    if channels >= FEW_COLUMNS or prod(window) == 1 or slide.groups > 1 or is_complex(windows.dtype):
        return False
    sizes = tuple([n * k for n, k in zip(windows.shape[1:-1], window, strict=True)])
    touching = tuple(slide.strides) == tuple(window) and set(slide.dilation) == {1}
    return touching and not any(map(any, slide.padding)) and sizes == command.output.shape[1:-1]


def _side_by_side(F: Any, inputs: Sequence[Any], command: Command) -> Any:
    """One product for all elements of windows, which are moved to their places then.  Its rows of weights lie in memory
    as they are added, so that no library that adds in another order is quicker."""
    windows, kernel = inputs
    images, *places, outputs = command.inputs[0].shape
    *window, channels, _ = command.inputs[1].shape
    rank = len(window)
    flat = F.reshape(windows, shape=(images * prod(places), outputs))
    turned = F.apply(PACK, (kernel,), (Tiling((1,) * (rank + 2), (rank + 1, *range(rank + 1))),))
    weights = F.reshape(turned, shape=(outputs, prod(window) * channels))
    found = F.matmul(flat, weights, transpose_a=False, transpose_b=False)
    apart = F.reshape(found, shape=(images, *places, *window, channels))
    placed = F.permute(apart, axes=(0, *[a for n in range(rank) for a in (1 + n, 1 + rank + n)], 2 * rank + 1))
    return F.reshape(placed, shape=command.output.shape)


def _inside(F: Any, inputs: Sequence[Any], command: Command, size: Sequence[Any], slide: Sliding) -> Any:
    """The operator on images of few channels with zeros around their last axis, so that all elements of a window along
    it are neighbours: then they are one run of a sum, or the rows of one tile."""
    images, other = inputs
    kernel, windows = (command.output, command.inputs[1]) if size else (command.inputs[1], command.output)
    *_, pixels, channels = command.inputs[0].shape
    if channels >= FEW_CHANNELS or slide.groups > 1 or slide.dilation[-1] > 1 or kernel.shape[-3] == 1:
        return None
    before, after = slide.padding[-1]
    if before == 0 and (windows.shape[-2] - 1) * slide.strides[-1] + kernel.shape[-3] <= pixels:
        return None
    around = (0,) * len(slide.strides)
    wide = F.pad(images, low=(*around, before, 0), high=(*around, after, 0), interior=(*around, 0, 0))
    within = slide._replace(padding=(*slide.padding[:-1], (0, 0)))
    return F.apply(OPERATORS[command.name], (wide, other), (*size, *within))
