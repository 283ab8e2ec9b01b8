"""Elements added or taken away at the ends of axes."""

from __future__ import annotations

from typing import Any

from nnc_core.base.errors import AttributeValueError
from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.lanes import Host, Numbers
from nnc_core.io.onnx.reading.operators.counts import counted_pad
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.io.onnx.reading.run import NodeCall
from nnc_core.values.tensor import Tensor


@operator("Pad")
def pad_first(x: Tensor, *, paddings: tuple[int, ...] = (), pads: tuple[int, ...] = (), mode: str = "constant",
              value: float = 0.0) -> Tensor:
    return padded(x, tuple(pads or paddings), mode, value, None)


@operator("Pad", since=11)
def pad(x: Tensor, pads: Numbers, value: Host | None = None, axes: Host | None = None, *, mode: str = "constant",
        call: NodeCall) -> Tensor:
    number = 0 if value is None or not value.size else value.reshape(())[()]
    at = range(len(pads) // 2) if axes is None else axes.tolist()
    widths = list(zip(pads[:len(pads) // 2], pads[len(pads) // 2:], strict=True))
    for k, (axis, (low, high)) in enumerate(zip(at, widths, strict=True)):
        if isinstance(low, Tensor) or isinstance(high, Tensor):
            x, widths[k] = counted_pad(x, axis, low, high, mode, number, call), (0, 0)
    lows, highs = zip(*widths, strict=True) if widths else ((), ())
    return padded(x, (*lows, *highs), mode, number, tuple(at))


MODES = ("constant", "edge", "reflect", "wrap")


def padded(x: Tensor, pads: tuple[Any, ...], mode: str, value: Any, axes: tuple[int, ...] | None) -> Tensor:
    """Elements added at both ends of axes, or taken away where their number is negative."""
    if mode not in MODES:
        raise AttributeValueError(f"mode {mode!r} is none of {', '.join(MODES)}")
    count = len(pads) // 2
    widths: list[tuple[Any, Any]] = [(0, 0)] * x.ndim
    for i, axis in enumerate(axes if axes is not None else range(count)):
        widths[axis] = (pads[i], pads[i + count])
    x = x[tuple(_without(low, high, size) for (low, high), size in zip(widths, x.shape, strict=True))]
    added = [(max(low, 0), max(high, 0)) for low, high in widths]
    options = {"constant_values": value} if mode == "constant" else {}
    return nnc.pad(x, added, mode, **options)


def _without(low: Any, high: Any, size: Any) -> slice:
    """The elements that stay where widths are negative."""
    return slice(max(-low, 0) or None, size + high if high < 0 else None)


@operator("CenterCropPad")
def center_crop_pad(x: Tensor, shape: Host, *, axes: tuple[int, ...] | None = None) -> Tensor:
    """Cut or padded with zeros on both sides; an odd element goes to the end."""
    for axis, size in zip(axes or range(x.ndim), shape.tolist(), strict=True):
        x = _cropped(x, axis, int(size), int(x.shape[axis]))
    return x


def _cropped(x: Tensor, axis: int, size: int, old: int) -> Tensor:
    if size <= old:
        first = (old - size) // 2
        return x[(*[slice(None)] * (axis % x.ndim), slice(first, first + size))]
    low = (size - old) // 2
    widths = [(0, 0)] * x.ndim
    widths[axis] = (low, size - old - low)
    return nnc.pad(x, widths)
