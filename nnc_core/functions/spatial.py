"""Parts shared by several functions of images: resampling, and elements by their place in the flattened image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import accumulator
from nnc_core.base.errors import DTypeError, SymbolicDimensionError
from nnc_core.functions.constants import beside, constant_beside
from nnc_core.functions.resample_named import outside_by_name, resampled_by_name
from nnc_core.functions.resample_tables import Rule, nearest, outside, table_for
from nnc_core.functions.window_options import along, fits_other_sizes, sizes_of, spatial_axes
from nnc_core.shape.window import Image, has_channels_last
from nnc_core.type import DimLike, Dims
from nnc_core.values.arguments import count_of
from nnc_core.values.dispatch import F
from nnc_core.values.value import Value

Array = np.ndarray[Any, Any]


def resampled(v: Value, order: str, size: Dims, rule: Rule) -> Value:
    """Every spatial axis resized by a rule."""
    axes = spatial_axes(order)
    return resampled_axes(v, axes, size, [rule] * len(axes))


def resampled_axes(v: Value, axes: Sequence[int], size: Sequence[DimLike], rules: Sequence[Rule],
                   fill: float = 0.0) -> Value:
    """Each axis resized by its rule; `fill` stands for what lies outside where a rule leaves that empty."""
    for axis, wanted, rule in zip(axes, size, rules, strict=True):
        length = v.shape[axis]
        if length != wanted or not rule.keeps:
            v = _filled_outside(_resampled_axis(v, axis, length, wanted, rule), axis, length, wanted, rule, fill)
    return v


def _filled_outside(v: Value, axis: int, length: DimLike, size: DimLike, rule: Rule, fill: float) -> Value:
    if rule.coordinates != "tf_crop_and_resize":
        return v
    if not (_has_number(length) and _has_number(size)):
        marks = F.reshape(outside_by_name(v, length, size, rule), shape=(size, *(1,) * (v.ndim - axis - 1)))
        return F.where(marks, fill, v)
    beyond = outside(int(length), int(size), rule)
    if beyond is None or not beyond.any():
        return v
    return F.where(constant_beside(v, beyond.reshape(-1, *(1,) * (v.ndim - axis - 1))), fill, v)


def _resampled_axis(v: Value, axis: int, length: DimLike, size: DimLike, rule: Rule) -> Value:
    factor = _whole(size, length)
    if factor and rule.repeats and rule.scale in (None, factor) and not _prefers_table(v, length):
        return _repeated(v, axis, factor)
    if not dt.is_float(v.dtype) and rule.method != "nearest":
        raise DTypeError(f"method {rule.method!r} needs floating-point numbers, not {v.dtype}",
                         hint="cast with astype, or take the nearest")
    if not (_has_number(length) and _has_number(size)):
        return resampled_by_name(v, axis, length, size, rule)
    if not dt.is_float(v.dtype):
        return F.take(v, constant_beside(v, nearest(int(length), int(size), rule)), axis=axis)
    table = table_for(int(length), int(size), rule)
    weights = table.weights.astype(accumulator(v.dtype))
    return F.resample(v, constant_beside(v, table.indices), constant_beside(v, weights), axis=axis, reach=table.reach)


def _has_number(size: DimLike) -> bool:
    """Tell whether a size is a number, or one that holds for this call: tables are made on the host."""
    try:
        return int(size) >= 0
    except SymbolicDimensionError:
        return False


def _prefers_table(v: Value, length: DimLike) -> bool:
    """Tables are bound to the length of their axis alone, reshaping to all sizes that are numbers."""
    return fits_other_sizes(v) and isinstance(length, int) and dt.is_float(v.dtype)


def _whole(size: DimLike, length: DimLike) -> int:
    """size / length where that is an integer, else 0."""
    factor = size // length if length != 0 else 0
    return factor if isinstance(factor, int) and factor * length == size else 0


def _repeated(v: Value, axis: int, factor: int) -> Value:
    """Each element `factor` times: without a table, so that the length may be a name."""
    before, after = v.shape[: axis + 1], v.shape[axis + 1 :]
    beside = F.broadcast_to(F.reshape(v, shape=(*before, 1, *after)), shape=(*before, factor, *after))
    return F.reshape(beside, shape=(*before[:-1], before[-1] * factor, *after))


# ---- elements by place
def _numbers(places: Value, order: str, whole: Dims) -> Value:
    """The number of each element among all, from its place in the flattened spatial dimensions `whole` of its image."""
    image, ones = Image.of(places.spec, order), (1,) * len(whole)
    pixels: Any = count_of(whole)
    channels: Any = image.c
    with beside(places):
        n = F.reshape(F.arange(size=image.n, dtype=dt.int64), shape=along(order, image.n, ones, 1))
        c = F.reshape(F.arange(size=image.c, dtype=dt.int64), shape=along(order, 1, ones, image.c))
        places = F.cast(places, dtype=dt.int64)
        if has_channels_last(order):
            return F.add(F.multiply(F.add(F.multiply(n, pixels), places), channels), c)
        return F.add(F.multiply(F.add(F.multiply(n, channels), c), pixels), places)


def gathered_at(v: Value, places: Value, order: str) -> Value:
    """For each image and channel the elements at places in the flattened spatial dimensions."""
    return F.take(F.reshape(v, shape=(count_of(v.shape),)), _numbers(places, order, sizes_of(v, order)), axis=0)


def scattered_at(v: Value, places: Value, size: Dims, order: str) -> Value:
    """Zeros of the spatial dimensions `size` with the elements of v at their places; the last of equal places stays."""
    image = Image.of(v.spec, order)
    shape = along(order, image.n, size, image.c)
    where = F.reshape(_numbers(places, order, size), shape=(count_of(places.shape),))
    with beside(v):
        nothing = F.full(shape=(count_of(shape),), value=0, dtype=v.dtype)
    filled = F.scatter(nothing, where, F.reshape(v, shape=(count_of(v.shape),)), axis=0, mode="set")
    return F.reshape(filled, shape=shape)


def largest_in(v: Value, windows: Array, counts: Dims, order: str) -> Value:
    """The place of the first maximum in each window, given as the places of its elements: (windows, elements)."""
    image, last = Image.of(v.spec, order), has_channels_last(order)
    flat = F.reshape(v, shape=along("NWC" if last else "NCW", image.n, (count_of(image.size),), image.c))
    axis = 1 if last else 2
    element = F.argmax(F.take(flat, constant_beside(v, windows), axis=axis), axis=axis + 1)
    begins = np.arange(windows.shape[0], dtype=np.int64) * windows.shape[1]
    number = F.add(element, constant_beside(v, begins[:, None] if last else begins))
    places = F.take(constant_beside(v, windows.reshape(-1)), number, axis=0)
    return F.reshape(places, shape=along(order, image.n, counts, image.c))
