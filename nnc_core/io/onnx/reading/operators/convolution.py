"""Convolutions."""

from __future__ import annotations

from typing import Any

from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.operators.windows import layout_of, padding_of
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.values.tensor import Tensor

CONV = {1: nnc.conv1d, 2: nnc.conv2d, 3: nnc.conv3d}
TRANSPOSE = {1: nnc.conv_transpose1d, 2: nnc.conv_transpose2d, 3: nnc.conv_transpose3d}


def with_bias(y: Tensor, bias: Tensor | None) -> Tensor:
    """A bias added to the channels, which are the second axis."""
    return y if bias is None else nnc.add(y, nnc.reshape(bias, (-1, *[1] * (y.ndim - 2))))


def geometry(x: Any, window: tuple[Any, ...], auto_pad: str, pads: Any, strides: Any, dilations: Any) -> dict[str, Any]:
    """Strides, padding and dilation as keyword arguments of our functions."""
    ones = (1,) * len(window)
    strides, dilations = strides or ones, dilations or ones
    return {"strides": strides, "dilation": dilations,
            "padding": padding_of(auto_pad, pads or (), x.shape[2:], window, strides, dilations)}


@operator("Conv")
def conv(x: Tensor, w: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET", dilations: Any = None,
         group: int = 1, kernel_shape: Any = None, pads: Any = None, strides: Any = None) -> Tensor:
    dims = x.ndim - 2
    settings = geometry(x, w.shape[2:], auto_pad, pads, strides, dilations)
    return with_bias(CONV[dims](x, w, groups=group, layout=layout_of(dims), **settings), b)


@operator("ConvTranspose")
def conv_transpose(x: Tensor, w: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET", dilations: Any = None,
                   group: int = 1, kernel_shape: Any = None, output_padding: Any = None, output_shape: Any = None,
                   pads: Any = None, strides: Any = None) -> Tensor:
    """The whole result without padding, then cut: what is cut away may differ on both sides, or be added."""
    dims = x.ndim - 2
    ones = (1,) * dims
    strides, dilations = strides or ones, dilations or ones
    extra = output_padding or (0,) * dims
    whole = [(n - 1) * s + (k - 1) * d + 1 + e
             for n, s, k, d, e in zip(x.shape[2:], strides, w.shape[2:], dilations, extra, strict=True)]
    cut = _cut(auto_pad, pads, output_shape, whole, [n * s for n, s in zip(x.shape[2:], strides, strict=True)])
    y = TRANSPOSE[dims](x, w, strides=strides, dilation=dilations, groups=group, layout=layout_of(dims))
    added = [(0, e + max(-high, 0)) for e, (_, high) in zip(extra, cut, strict=True)]
    y = nnc.pad(y, [(0, 0), (0, 0), *added]) if any(high for _, high in added) else y
    parts = tuple(slice(low, n - high) for n, (low, high) in zip(whole, cut, strict=True))
    return with_bias(y[(slice(None), slice(None), *parts)] if any(low or high for low, high in cut) else y, b)


def _cut(auto_pad: str, pads: Any, wanted: Any, whole: list[Any], same: list[Any]) -> list[tuple[Any, Any]]:
    """Elements of the whole result that go, before and after."""
    count = len(whole)
    if wanted is None and auto_pad in ("NOTSET", "VALID"):
        return list(zip(pads[:count], pads[count:], strict=True)) if pads else [(0, 0)] * count
    found = []
    for n, size in zip(whole, (wanted or same)[-count:], strict=True):
        total = n - size
        if total < 0:  # more is asked for than there is: zeros behind
            found.append((0, total))
            continue
        less, more = total // 2, total - total // 2
        found.append((less, more) if auto_pad == "SAME_UPPER" else (more, less))
    return found


@operator("CausalConvWithState")
def causal_conv(x: Tensor, w: Tensor, b: Tensor | None = None, past: Tensor | None = None, *,
                activation: str = "none") -> tuple[Tensor, Tensor]:
    """A depthwise convolution of each channel with what came before it, which the next call is given as `past`."""
    channels, before = int(x.shape[1]), w.shape[-1] - 1
    if past is None:
        past = nnc.zeros((x.shape[0], channels, before), dtype=x.dtype, device=x.device)
    whole = nnc.concat([past, x], axis=-1)
    y = with_bias(nnc.conv1d(whole, w, groups=channels, layout="NCW"), b)
    y = nnc.silu(y) if activation in ("silu", "swish") else y
    return y, whole[..., whole.shape[-1] - before:]


@operator("ConvInteger")
def conv_integer(x: Tensor, w: Tensor, x_zero: Tensor | None = None, w_zero: Tensor | None = None, *,
                 auto_pad: str = "NOTSET", dilations: Any = None, group: int = 1, kernel_shape: Any = None,
                 pads: Any = None, strides: Any = None) -> Tensor:
    settings = geometry(x, w.shape[2:], auto_pad, pads, strides, dilations)
    return nnc.conv_integer(x, w, x_zero, w_zero, groups=group, layout=layout_of(x.ndim - 2), **settings)


@operator("DeformConv", since=19)
def deform_conv(x: Tensor, w: Tensor, offset: Tensor, b: Tensor | None = None, mask: Tensor | None = None, *,
                dilations: Any = None, group: int = 1, kernel_shape: Any = None, offset_group: int = 1,
                pads: Any = None, strides: Any = None) -> Tensor:
    settings = geometry(x, w.shape[2:], "NOTSET", pads, strides, dilations)
    return with_bias(nnc.deform_conv2d(x, offset, w, mask, groups=group, layout="NCHW", **settings), b)
