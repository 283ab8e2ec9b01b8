"""Convolutions and pooling: channels lie first in ONNX, and stay there until somebody wants them elsewhere."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from nnc_core.base.dtype import float64, int8, int16, int32, int64, is_float, uint8, uint16, uint32
from nnc_core.base.errors import NotSupportedError
from nnc_core.io.onnx.writing.held import Held, Order, inverse
from nnc_core.io.onnx.writing.pointwise import held
from nnc_core.io.onnx.writing.table import says, writes
from nnc_core.shape.window import Filter, Image, has_channels_last, window_counts
from nnc_core.symbol import Node
from nnc_core.type import Dims, is_static

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter

_EXACT = (int16, int32, uint16, uint32)
"""Integers that float64 holds, for operators that ONNX has of floats."""


def channels_first(layout: str) -> Order:
    """The order of axes that brings images to NC..., as `permute` takes it."""
    count = len(layout)
    return (0, count - 1, *range(1, count - 1)) if has_channels_last(layout) else tuple(range(count))


def filter_order(layout: str) -> Order:
    """The same for kernels, which become OI...."""
    count = len(layout)
    return (count - 1, count - 2, *range(count - 2)) if has_channels_last(layout) else tuple(range(count))


def _result(name: str, layout: str) -> Held:
    return held(name, inverse(channels_first(layout)))


def _pads(padding: Any) -> list[int]:
    return [before for before, _ in padding] + [after for _, after in padding]


def _slide(strides: Any, padding: Any, dilation: Any) -> dict[str, Any]:
    return {"strides": list(strides), "pads": _pads(padding), "dilations": list(dilation)}


def _kernel_shape(kernel: Node, layout: str) -> list[int]:
    size = Filter.of(kernel.spec, layout).size
    if not is_static(size):
        raise NotSupportedError(f"the kernel {kernel.spec} has windows of no known size")
    return [int(n) for n in size]


@writes("conv", "conv_integer")
def _conv(w: NodeWriter, node: Node) -> Held:
    x, kernel = node.inputs
    strides, padding, dilation, groups, layout = node.attributes
    operator = "Conv" if node.op.name == "conv" else "ConvInteger"
    name = w.b.op(operator, w.arranged(x, channels_first(layout)), w.arranged(kernel, filter_order(layout)),
                  kernel_shape=_kernel_shape(kernel, layout), group=groups, **_slide(strides, padding, dilation))
    return _result(name, layout)


def _unused(node: Node) -> Dims:
    """The pixels at the end of a convolution's input that no window reads."""
    size, strides, padding, dilation, _, layout = node.attributes
    counts, window = Image.of(node.inputs[0].spec, layout).size, Filter.of(node.inputs[1].spec, layout).size
    axes = zip(size, counts, window, strides, padding, dilation, strict=True)
    return tuple([n - ((count - 1) * stride + (k - 1) * step + 1 - sum(around))
                  for n, count, k, stride, around, step in axes])


@writes("conv_input_gradient", fits=lambda node: is_static(_unused(node)))
def _conv_transpose(w: NodeWriter, node: Node) -> Held:
    g, kernel = node.inputs
    _, strides, padding, dilation, groups, layout = node.attributes
    name = w.b.op("ConvTranspose", w.arranged(g, channels_first(layout)), w.arranged(kernel, filter_order(layout)),
                  kernel_shape=_kernel_shape(kernel, layout), group=groups,
                  output_padding=[int(n) for n in _unused(node)], **_slide(strides, padding, dilation))
    return _result(name, layout)


@says("conv_kernel_gradient")
def _conv_kernel_gradient(F: Any, x: Any, g: Any, size: Dims, strides: Any, padding: Any, dilation: Any, groups: int,
                          layout: str) -> Any:
    """A convolution with the cotangent as its kernel: images' numbers and channels change places."""
    if groups != 1 or not is_static(size):
        return None
    last = has_channels_last(layout)
    count = len(layout)
    spatial = range(1, count - 1) if last else range(2, count)
    swapped = (count - 1, *spatial, 0) if last else (1, 0, *spatial)
    kernel = F.permute(g, axes=(*spatial, 0, count - 1) if last else (1, 0, *spatial))
    whole = F.conv(F.permute(x, axes=swapped), kernel, strides=dilation, padding=padding, dilation=strides, groups=1,
                   layout=layout)
    image = Image.of(whole.spec, layout)
    cut = F.slice(whole, start=(0,) * count, stop=Image(image.n, size, image.c).shape(layout), step=(1,) * count)
    return F.permute(cut, axes=(*spatial, 0, count - 1) if last else (1, 0, *spatial))


# ---- pooling
def _exactly(node: Node) -> Any:
    return float64 if node.inputs[0].dtype in _EXACT else node.inputs[0].dtype


def _pool(w: NodeWriter, node: Node, operator: str, count: int, layout: str, **more: Any) -> tuple[str, ...]:
    (x,), (window, *slide) = node.inputs, node.attributes
    name = w.cast(w.arranged(x, channels_first(layout)), x.dtype, _exactly(node))
    return w.b.ops(operator, name, count=count, kernel_shape=list(window), **_slide(*slide[:3]), **more)


@writes("max_pool", fits=lambda node: is_float(node.dtype) or node.dtype in (*_EXACT, int8, uint8))
def _max_pool(w: NodeWriter, node: Node) -> Held:
    layout = node.attributes[-1]
    (name,) = _pool(w, node, "MaxPool", 1, layout)
    return _result(w.cast(name, _exactly(node), node.dtype), layout)


@writes("max_pool_place", fits=lambda node: is_float(node.inputs[0].dtype) or node.inputs[0].dtype in (int8, uint8))
def _max_pool_place(w: NodeWriter, node: Node) -> Held:
    """ONNX counts places through the whole array, channels first."""
    layout = node.attributes[-1]
    _, place = _pool(w, node, "MaxPool", 2, layout)
    pixels: Any = 1
    for n in Image.of(node.inputs[0].spec, layout).size:
        pixels = n * pixels
    return _result(w.b.op("Mod", place, w.scalar(pixels, int64)), layout)


@writes("avg_pool")
def _avg_pool(w: NodeWriter, node: Node) -> Held:
    *_, count_padding, layout = node.attributes
    (name,) = _pool(w, node, "AveragePool", 1, layout, count_include_pad=int(count_padding))
    return _result(name, layout)


@writes("sum_pool", fits=lambda node: is_float(node.dtype) or node.dtype in _EXACT)
def _sum_pool(w: NodeWriter, node: Node) -> Held:
    """Means over whole windows, padding counted, times the count."""
    window, layout = node.attributes[0], node.attributes[-1]
    (mean,) = _pool(w, node, "AveragePool", 1, layout, count_include_pad=1)
    wide = _exactly(node)
    total = w.b.op("Mul", mean, w.b.constant(prod(window), wide))
    return _result(w.cast(total if wide == node.dtype else w.b.op("Round", total), wide, node.dtype), layout)


# ---- windows unfolded
@says("unfold")
def _unfold(F: Any, x: Any, window: Any, strides: Any, padding: Any, dilation: Any, layout: str) -> Any:
    """A slice for each element of a window, one beside the other as channels."""
    image = Image.of(x.spec, layout)
    last, count = has_channels_last(layout), len(layout)
    beside = Image(0, tuple([before for before, _ in padding]), 0), Image(0, tuple([after for _, after in padding]), 0)
    padded = F.pad(x, low=beside[0].shape(layout), high=beside[1].shape(layout), interior=(0,) * count)
    counts = window_counts(image.size, window, strides, padding, dilation)
    parts = []
    for k in product(*map(range, window)):
        start = tuple([i * step for i, step in zip(k, dilation, strict=True)])
        stop = tuple([s + (n - 1) * by + 1 for s, n, by in zip(start, counts, strides, strict=True)])
        step = Image(1, tuple(strides), 1).shape(layout)
        part = F.slice(padded, start=Image(0, start, 0).shape(layout), stop=Image(image.n, stop, image.c).shape(layout),
                       step=step)
        parts.append(part if last else F.reshape(part, shape=(image.n, image.c, 1, *counts)))
    whole = F.concat(*parts, axis=count - 1 if last else 2)
    return whole if last else F.reshape(whole, shape=(image.n, image.c * prod(window), *counts))
