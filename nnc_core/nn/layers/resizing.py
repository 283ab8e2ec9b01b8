"""Layers that pad sequences, images and volumes, and give them other sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnc_core.base.errors import AttributeValueError
from nnc_core.functions.padding import MODES, pad
from nnc_core.functions.resampling import depth_to_space, resize, space_to_depth, upsample
from nnc_core.functions.window_options import padding_for
from nnc_core.nn.layers.checks import Int, one_of
from nnc_core.nn.layers.settings import settings
from nnc_core.nn.layers.windowed import LAYOUTS, Windowed
from nnc_core.nn.module import Module
from nnc_core.values.tensor import Tensor

__all__ = [
    "DepthToSpace", "Pad", "Padding1d", "Padding2d", "Padding3d", "SpaceToDepth", "UpSampling1d", "UpSampling2d",
    "UpSampling3d",
]  # fmt: skip

METHODS = ("nearest", "nearest_floor", "linear", "cubic", "area")


# ---- padding
class Pad(Module):
    """More elements around any axes: widths and modes as `nnc.pad` has them, one number, (before, after) or one pair
    for each axis, the batch's included, or {axis: (before, after)}."""

    def __init__(self, widths: Any, mode: str = "constant", value: float = 0.0) -> None:
        _check_mode("Pad", mode, value)
        self.widths, self.mode, self.value = widths, mode, value

    def forward(self, x: Tensor) -> Tensor:
        """x with longer axes."""
        return _padded(x, self.widths, self.mode, self.value)

    def describe(self) -> str:
        return settings(self, "widths", "mode", "value")


def _check_mode(module: str, mode: str, value: float) -> None:
    one_of(module, "mode", mode, MODES)
    if mode != "constant" and value != 0:
        raise AttributeValueError(f"value {value} goes with the mode 'constant', not {mode!r}", operator=module)


def _padded(x: Tensor, widths: Any, mode: str, value: float) -> Tensor:
    return pad(x, widths, mode, value=value) if mode == "constant" else pad(x, widths, mode)


class _Padding(Windowed):
    def __init__(self, width: Int | Sequence[tuple[int, int]], mode: str = "constant", value: float = 0.0,
                 layout: str | None = None) -> None:
        self._set_layout(layout)
        _check_mode(type(self).__name__, mode, value)
        self.width, self.mode, self.value = self._pairs(width), mode, value

    def _pairs(self, width: Any) -> tuple[tuple[int, int], ...]:
        ones = (1,) * self.rank
        pairs = padding_for(self._checked_padding(width), ones, ones, ones, ones)
        if isinstance(width, str) or any(n < 0 for pair in pairs for n in pair):
            raise AttributeValueError(f"width is {width!r}, expected numbers of at least 0",
                                      operator=type(self).__name__)
        return tuple(pairs)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, *sizes, channels) -> (batch, *larger sizes, channels), or with channels before sizes."""
        self._check(x)
        first = 1 if self.channels_last else 2
        return _padded(x, {first + i: pair for i, pair in enumerate(self.width)}, self.mode, self.value)

    def describe(self) -> str:
        return settings(self, "width", "mode", "value", "layout", usual={"layout": LAYOUTS[self.rank][0]})


class Padding1d(_Padding):
    """More elements around sequences (NWC or NCW); see `Padding2d`."""

    rank = 1


class Padding2d(_Padding):
    """More elements around images (NHWC or NCHW).

    `width` is a number, or for each spatial dimension a number or (before, after).  Modes are those of `nnc.pad`:
    "constant" puts in `value`, "edge", "reflect", "symmetric" and "wrap" repeat elements of x.
    """

    rank = 2


class Padding3d(_Padding):
    """More elements around volumes (NDHWC or NCDHW); see `Padding2d`."""

    rank = 3


# ---- resizing
class _UpSampling(Windowed):
    def __init__(self, scale: float | Sequence[float] = 2, method: str = "nearest", align_corners: bool = False,
                 layout: str | None = None, *, size: Int | None = None) -> None:
        self._set_layout(layout)
        kind = type(self).__name__
        one_of(kind, "method", method, METHODS)
        scales = (scale,) * self.rank if isinstance(scale, (int, float)) else tuple(scale)
        if len(scales) != self.rank or any(not s > 0 for s in scales):
            raise AttributeValueError(f"scale is {scale!r}, expected a positive number, or {self.rank} of them",
                                      operator=kind)
        self.scale, self.method, self.align_corners = scales, method, align_corners
        self.size = None if size is None else self._per_axis("size", size)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, *sizes, channels) -> (batch, *other sizes, channels), or with channels before sizes."""
        self._check(x)
        if self.size is not None:
            return resize(x, self.size, method=self.method, align_corners=self.align_corners, layout=self.layout)
        return upsample(x, self.scale, method=self.method, align_corners=self.align_corners, layout=self.layout)

    def describe(self) -> str:
        return settings(self, "scale", "method", "align_corners", "layout", "size",
                        usual={"layout": LAYOUTS[self.rank][0]})


class UpSampling1d(_UpSampling):
    """Sequences (NWC or NCW) of another length; see `UpSampling2d`."""

    rank = 1


class UpSampling2d(_UpSampling):
    """Images (NHWC or NCHW) with floor(length * scale) elements along each spatial dimension, or of a given `size`.

    Methods are those of `nnc.resize`: "nearest" repeats elements where scales are whole, "linear" (of both dimensions:
    bilinear) and "cubic" interpolate, with `align_corners` from the centre of the first to that of the last element.
    """

    rank = 2


class UpSampling3d(_UpSampling):
    """Volumes (NDHWC or NCDHW) of another size; see `UpSampling2d`."""

    rank = 3


# ---- channels and pixels
class _Blocks(Module):
    def __init__(self, block: Int, mode: str = "DCR", layout: str | None = None) -> None:
        kind = type(self).__name__
        one_of(kind, "mode", mode, ("DCR", "CRD"))
        if layout is not None:
            one_of(kind, "layout", layout, [name for names in LAYOUTS.values() for name in names])
        self.block, self.mode, self.layout = block, mode, layout

    def describe(self) -> str:
        return settings(self, "block", "mode", "layout")


class DepthToSpace(_Blocks):
    """Channels as blocks of pixels: (batch, *sizes, C * prod(block)) -> (batch, *sizes * block, C), in one to three
    spatial dimensions.

    Channels are (block, C) with mode "DCR", and (C, block) with "CRD", which is PyTorch's PixelShuffle.  They are last
    unless `layout` says otherwise.
    """

    def forward(self, x: Tensor) -> Tensor:
        """(batch, *sizes, C * prod(block)) -> (batch, *sizes * block, C)"""
        return depth_to_space(x, self.block, mode=self.mode, layout=self.layout)


class SpaceToDepth(_Blocks):
    """Blocks of pixels as channels: the inverse of `DepthToSpace`, with "CRD" PyTorch's PixelUnshuffle."""

    def forward(self, x: Tensor) -> Tensor:
        """(batch, *sizes * block, C) -> (batch, *sizes, C * prod(block))"""
        return space_to_depth(x, self.block, mode=self.mode, layout=self.layout)
