"""Functions of windows: convolution and pooling."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.dynamic.dispatch import F
from nnc_core.dynamic.functions.face import ArrayLike, as_value, as_values, located
from nnc_core.dynamic.tensor import Tensor
from nnc_core.dynamic.value import Value
from nnc_core.type import DimLike

__all__ = ["avg_pool2d", "conv2d", "max_pool2d"]


def _pair(value: int | Sequence[int], what: str) -> tuple[int, int]:
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) != 2 or not builtins.all(isinstance(v, int) for v in pair):
        raise AttributeValueError(f"{what} {value!r} is neither an integer nor a pair of them")
    return pair


def _padding(padding: Any, sizes: Sequence[DimLike], window: Sequence[DimLike], strides: tuple[int, int],
             dilation: tuple[int, int]) -> Any:
    """((top, bottom), (left, right)) from "SAME", "VALID", a number, a pair or two pairs."""
    if padding == "VALID":
        return ((0, 0), (0, 0))
    if padding == "SAME":
        return tuple(_same(*args) for args in zip(sizes, window, strides, dilation, strict=True))
    if isinstance(padding, str):
        raise AttributeValueError(f"padding {padding!r} is neither 'SAME' nor 'VALID'")
    if isinstance(padding, int):
        return ((padding, padding), (padding, padding))
    pairs = tuple((p, p) if isinstance(p, int) else tuple(p) for p in padding)
    if len(pairs) != 2 or not builtins.all(len(p) == 2 for p in pairs):
        raise AttributeValueError(f"padding {padding!r} is no pair of pairs")
    return pairs


def _same(size: Any, window: Any, stride: int, dilation: int) -> tuple[int, int]:
    """As many windows as there are strides; an odd element of padding goes after."""
    covered = (-(-size // stride) - 1) * stride + (window - 1) * dilation + 1
    total = builtins.max(covered - size, 0)
    return total // 2, total - total // 2


@located
def conv2d(x: ArrayLike, kernel: ArrayLike, /, *, strides: int | Sequence[int] = 1, padding: Any = "VALID",
           dilation: int | Sequence[int] = 1, groups: int = 1, layout: str = "NHWC") -> Tensor:
    """Cross-correlation of images x (NHWC or NCHW) with a kernel (HWIO or OIHW).

    `padding` is "SAME", "VALID", a number, or ((top, bottom), (left, right)).
    """
    v, k = as_values(x, kernel)
    how = _window(v, _spatial(k, layout, True), strides, padding, dilation, layout)
    return Tensor(F.conv2d(v, k, groups=groups, layout=layout, **how))


def _spatial(v: Value, layout: str, kernel: bool = False) -> Sequence[DimLike]:
    if layout not in ("NHWC", "NCHW"):
        raise AttributeValueError(f"layout {layout!r} is neither 'NHWC' nor 'NCHW'")
    if v.ndim != 4:
        raise ShapeError(f"{v.spec} should have four dimensions")
    if layout == "NCHW":
        return v.shape[2:]
    return v.shape[:2] if kernel else v.shape[1:3]


def _window(v: Value, window: Sequence[DimLike], strides: Any, padding: Any, dilation: Any,
            layout: str) -> dict[str, Any]:
    steps, spread = _pair(strides, "strides"), _pair(dilation, "dilation")
    return {"strides": steps, "dilation": spread,
            "padding": _padding(padding, _spatial(v, layout), window, steps, spread)}


@located
def max_pool2d(x: ArrayLike, /, window: int | Sequence[int], *, strides: int | Sequence[int] | None = None,
               padding: Any = "VALID", dilation: int | Sequence[int] = 1, layout: str = "NHWC") -> Tensor:
    """The maximum of each window; strides default to the window."""
    v, size = as_value(x), _pair(window, "window")
    how = _window(v, size, size if strides is None else strides, padding, dilation, layout)
    return Tensor(F.max_pool2d(v, window=size, layout=layout, **how))


@located
def avg_pool2d(x: ArrayLike, /, window: int | Sequence[int], *, strides: int | Sequence[int] | None = None,
               padding: Any = "VALID", dilation: int | Sequence[int] = 1, count_padding: bool = False,
               layout: str = "NHWC") -> Tensor:
    """The mean of each window; strides default to the window, padding does not count unless asked."""
    v, size = as_value(x), _pair(window, "window")
    how = _window(v, size, size if strides is None else strides, padding, dilation, layout)
    return Tensor(F.avg_pool2d(v, window=size, count_padding=count_padding, layout=layout, **how))
