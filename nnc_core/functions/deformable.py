"""Convolutions whose windows read anywhere: each element of a window has an offset of its own, and a weight."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType, accumulator
from nnc_core.base.errors import DTypeError, ShapeError
from nnc_core.functions.constants import beside, constant_beside
from nnc_core.functions.floats import one_dtype
from nnc_core.functions.pieces import cut
from nnc_core.functions.sampling import Tap, back_in_layout, channels_last, linear_taps, tap_term
from nnc_core.functions.window_options import Int, arranged, arranged_kernel, sliding
from nnc_core.shape.window import Image
from nnc_core.type import DimLike
from nnc_core.values.arguments import ArrayLike, as_value, names_itself, stack_of
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["deform_conv2d"]


class _Windows(NamedTuple):
    """Windows that slide over images (n, height, width, c): results of `size`, `elements` read for each, and as many
    groups of channels with offsets of their own."""

    size: tuple[int, int]
    window: tuple[int, int]
    elements: int
    offset_groups: int
    how: dict[str, Any]


@names_itself
def deform_conv2d(x: ArrayLike, offset: ArrayLike, kernel: ArrayLike, mask: ArrayLike | None = None, /, *,
                  strides: Int = 1, padding: Any = "VALID", dilation: Int = 1, groups: int = 1,
                  layout: str = "NHWC") -> Tensor:
    """`conv2d` whose windows read x beside their places (Dai et al. 2017), linearly; outside x is zero.

    The channels of `offset`, an image of the result's size, are (offset groups, window, 2): how far down and to the
    right of its place each element of the window is read, for each group of x's channels.  Those of a `mask` are
    (offset groups, window): what each is multiplied by (Zhu et al. 2019).  Gradients go to all four.
    """
    stack = stack_of((x, offset, kernel, mask))
    given = [as_value(a, stack) for a in (x, offset, kernel)]
    given += [] if mask is None else [as_value(mask, stack)]
    if not all(dt.is_float(v.dtype) for v in given):
        raise DTypeError(f"needs floating-point numbers, not {', '.join(str(v.dtype) for v in given)}",
                         hint="cast with astype")
    v, o, k, *m = one_dtype(given)
    dtype: DType = v.dtype
    wide = [F.cast(channels_last(arranged(a, layout, 2)[0], layout), dtype=accumulator(dtype)) for a in (v, o, *m)]
    kernel_last = _kernel_last(F.cast(arranged_kernel(k, layout), dtype=accumulator(dtype)), layout)
    how = _windows(wide[0], wide[1], wide[2:], kernel_last, strides, padding, dilation, groups)
    read = _read(wide[0], wide[1], wide[2:], how)
    return Tensor(back_in_layout(F.cast(_weighted(read, kernel_last, groups), dtype=dtype), layout))


def _kernel_last(kernel: Value, layout: str) -> Value:
    """(height, width, in, out)"""
    if kernel.ndim != 4:
        raise ShapeError(f"the kernel {kernel.spec} should have four dimensions")
    return F.permute(kernel, axes=(2, 3, 1, 0)) if layout.startswith("NC") else kernel


def _windows(v: Value, offset: Value, mask: list[Value], kernel: Value, strides: Any, padding: Any, dilation: Any,
             groups: int) -> _Windows:
    image = Image.of(v.spec, "NHWC")
    channels_in: Any = image.c
    made: Any = kernel.shape[3]
    window = (int(kernel.shape[0]), int(kernel.shape[1]))
    how = sliding(image.size, window, strides, padding, dilation)
    size = tuple([(int(n) + sum(pads) - (w - 1) * d - 1) // s + 1 for n, w, s, d, pads in zip(
        image.size, window, how["strides"], how["dilation"], how["padding"], strict=True)])
    count, channels = window[0] * window[1], offset.shape[3]
    parts = int(channels) // max(2 * count, 1)
    if offset.shape[:3] != (v.shape[0], *size) or channels != 2 * count * parts or not parts or channels_in % parts:
        raise ShapeError(f"offsets {offset.spec} do not go with images {v.spec}: expected {size} of them, with twice "
                         f"{count} channels, or as many for each group of channels")
    for m in mask:
        if m.shape != (*offset.shape[:3], parts * count):
            raise ShapeError(f"a mask {m.spec} does not go with the offsets {offset.spec}")
    if image.c != kernel.shape[2] * groups or made % groups:
        raise ShapeError(f"the kernel {kernel.spec} does not go with {image.c} channels in {groups} groups")
    return _Windows((size[0], size[1]), window, count, parts, how)


def _read(v: Value, offset: Value, mask: list[Value], how: _Windows) -> Value:
    """(n, *size, window, channels): what each window reads."""
    n, height, width, c = v.shape
    parts = how.offset_groups
    lead = (n, *how.size, parts, how.elements)
    offsets = F.reshape(offset, shape=(*lead, 2))
    taps = [linear_taps(F.add(F.reshape(cut(offsets, 5, k, k + 1), shape=lead), constant_beside(v, place)), length)
            for k, (place, length) in enumerate(zip(_places(how, v.dtype), (height, width), strict=True))]
    pixels = F.reshape(v, shape=(n * height * width * parts, c // parts))
    part = Tap(constant_beside(v, np.arange(parts, dtype=v.dtype)[:, None]), None)
    with beside(v):
        first = F.reshape(F.arange(size=n, dtype=dt.int64), shape=(n, 1, 1, 1, 1))
    sizes: tuple[DimLike, ...] = (height, width, parts)
    terms = [tap_term(pixels, first, sizes, (*pair, part)) for pair in product(*taps)]
    total = terms[0]
    for term in terms[1:]:
        total = F.add(total, term)
    for m in mask:
        total = F.multiply(total, F.reshape(m, shape=(*lead, 1)))
    ordered = F.permute(total, axes=(0, 1, 2, 4, 3, 5))
    return F.reshape(ordered, shape=(n, *how.size, how.elements, c))


def _places(how: _Windows, dtype: DType) -> list[Any]:
    """Rows and columns of the elements of each window where offsets are zero, with axes for groups and elements."""
    out = []
    for axis in (0, 1):
        begins = np.arange(how.size[axis]) * how.how["strides"][axis] - how.how["padding"][axis][0]
        steps = np.indices(how.window)[axis].reshape(-1) * how.how["dilation"][axis]
        places = begins[:, None] + steps
        out.append((places[:, None, None, :] if axis == 0 else places[:, None, :]).astype(dtype))
    return out


def _weighted(read: Value, kernel: Value, groups: int) -> Value:
    """Products with the kernel, for each group of channels."""
    n, rows, columns, count, _ = read.shape
    inner, out = kernel.shape[2], kernel.shape[3]
    each: Any = out // groups
    a = F.permute(F.reshape(read, shape=(n * rows * columns, count, groups, inner)), axes=(2, 0, 1, 3))
    b = F.permute(F.reshape(kernel, shape=(count, inner, groups, each)), axes=(2, 0, 1, 3))
    y = F.matmul(F.reshape(a, shape=(groups, n * rows * columns, count * inner)),
                 F.reshape(b, shape=(groups, count * inner, each)))
    return F.reshape(F.permute(y, axes=(1, 0, 2)), shape=(n, rows, columns, out))
