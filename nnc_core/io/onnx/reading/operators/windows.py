"""Common parts of convolutions and pools: layouts with channels first, padding by name."""

from __future__ import annotations

from typing import Any

from nnc_core.base.errors import AttributeValueError, NotSupportedError

LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def layout_of(dims: int) -> str:
    """The layout of images with this many spatial dimensions."""
    if dims not in LAYOUTS:
        raise NotSupportedError(f"windows over {dims} spatial dimensions", hint="1, 2 or 3")
    return LAYOUTS[dims]


def padding_of(auto_pad: str, pads: tuple[int, ...], sizes: tuple[Any, ...], window: tuple[int, ...],
               strides: tuple[int, ...], dilations: tuple[int, ...]) -> list[tuple[int, int]]:
    """Padding before and after each spatial dimension."""
    count = len(window)
    if auto_pad == "NOTSET":
        return list(zip(pads[:count], pads[count:], strict=True)) if pads else [(0, 0)] * count
    if auto_pad == "VALID":
        return [(0, 0)] * count
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        raise AttributeValueError(f"auto_pad {auto_pad!r} is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER")
    found = []
    for size, k, stride, dilation in zip(sizes, window, strides, dilations, strict=True):
        whole = max((-(-size // stride) - 1) * stride + (k - 1) * dilation + 1 - size, 0)
        small, large = whole // 2, whole - whole // 2
        found.append((small, large) if auto_pad == "SAME_UPPER" else (large, small))
    return found
