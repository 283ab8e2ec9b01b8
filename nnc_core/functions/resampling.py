"""Images of another size: resized by a rule, or with blocks of pixels and channels exchanged."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, inf, prod
from typing import Any

from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.functions.resample_tables import Rule, checked
from nnc_core.functions.spatial import resampled, resampled_axes
from nnc_core.functions.window_options import (
    Int,
    arranged,
    is_real,
    items,
    per_axis,
    restored,
    size_of,
    sizes_of,
    spatial_axes,
)
from nnc_core.shape.axes import normalise_axis
from nnc_core.shape.window import Image, has_channels_last
from nnc_core.type import Dim, DimLike, Dims
from nnc_core.values.arguments import ArrayLike, as_value, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["depth_to_space", "resize", "space_to_depth", "upsample"]


@names_itself
def resize(x: ArrayLike, /, size: Any = None, *, method: str = "linear", align_corners: bool = False,
           antialias: bool = False, coefficient: float | None = None, scale: Any = None,
           coordinates: str | None = None, rounding: str | None = None, exclude_outside: bool | None = None,
           region: Any = None, fill: float = 0.0, axes: Sequence[int] | None = None,
           layout: str | None = None) -> Tensor:
    """Images with `size` elements along each spatial dimension (one to three of them; channels are last by default), or
    arrays of any rank along `axes`.

    method "nearest" takes the element nearest to the centre of each new one (halves go up), "nearest_floor" the one at
    floor(i * old / new), "linear" and "cubic" interpolate along each axis (Keys' cubic with `coefficient`, by default
    -0.75, with antialias -0.5), "area" averages as `adaptive_avg_pool` does.  `align_corners` makes the centres of the
    first and of the last elements correspond, otherwise their outer edges do.  `antialias` widens the filter where the
    result is smaller.  Beyond the border the border is repeated; `exclude_outside`, by default where `antialias` is,
    leaves out what lies there.  All but the two nearest need floats.

    The rest is as ONNX has it.  With a `scale`, a number or one for each axis, elements are 1 / scale apart, and sizes
    are floor(length * scale) unless given.  `coordinates` says where they lie: "half_pixel", "align_corners",
    "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric", or "tf_crop_and_resize" for a `region`, a pair for each
    axis in parts of the image from its first (0) to its last centre (1), with `fill` outside of the image.  `rounding`
    is that of "nearest": "round_prefer_ceil", "round_prefer_floor", "floor" or "ceil".
    """
    v = as_value(x)
    v, order = (v, "") if axes is not None else arranged(v, layout)
    along = spatial_axes(order) if axes is None else _distinct(axes, v.ndim)
    scales, regions = _numbers(scale, along, "scale"), _regions(region, along)
    keys = coefficient if coefficient is not None else -0.5 if antialias else -0.75
    if align_corners and coordinates not in (None, "align_corners"):
        raise AttributeValueError(f"align_corners=True and coordinates={coordinates!r} say different things",
                                  hint="one of them")
    placed = coordinates or ("align_corners" if align_corners else "half_pixel")
    leaves_out = antialias if exclude_outside is None else exclude_outside
    rules = [checked(Rule(method, placed, antialias, float(keys), rounding or "round_prefer_ceil", leaves_out, s, r))
             for s, r in zip(scales, regions, strict=True)]
    y = resampled_axes(v, along, _wanted(v, along, size, scales), rules, fill)
    return Tensor(restored(y, layout) if axes is None else y)


def _distinct(axes: Sequence[int], ndim: int) -> tuple[int, ...]:
    """In the order in which sizes and scales are given."""
    found = tuple([normalise_axis(a, ndim) for a in axes])
    if len(set(found)) != len(found):
        raise AttributeValueError(f"axes {tuple(axes)} name an axis twice")
    return found


def _numbers(value: Any, axes: Sequence[int], what: str) -> list[float | None]:
    given = (value,) * len(axes) if value is None or is_real(value) else items(value)
    if len(given) != len(axes) or not all(n is None or is_real(n) for n in given):
        raise AttributeValueError(f"{what} {value!r} is neither a number nor {len(axes)} of them")
    return [None if n is None else float(n) for n in given]


def _regions(region: Any, axes: Sequence[int]) -> list[tuple[float, float]]:
    if region is None:
        return [(0.0, 1.0)] * len(axes)
    pairs = [_numbers(pair, (0, 1), "a pair of the region") for pair in items(region)]
    if len(pairs) != len(axes):
        raise AttributeValueError(f"region {region!r} has {len(pairs)} pairs for {len(axes)} axes")
    return [(float(begin or 0), float(end or 0)) for begin, end in pairs]


def _wanted(v: Value, axes: Sequence[int], size: Any, scales: Sequence[float | None]) -> Dims:
    if size is not None or None in scales:
        return size_of(size, len(axes))
    return tuple([_scaled_length(v.shape[a], s) for a, s in zip(axes, scales, strict=True)])


_EXACT = 2**10
"""Denominators up to which a length times a scale is counted in whole numbers where it has no number: 1.5, 0.125."""


@names_itself
def upsample(x: ArrayLike, /, scale: Any, *, method: str = "nearest", align_corners: bool = False,
             layout: str | None = None) -> Tensor:
    """Images with floor(length * scale) elements along each spatial dimension, as `resize` makes them.

    `scale` is a number, or one for each dimension; whole ones repeat each element under the method "nearest".
    """
    v, order = arranged(as_value(x), layout)
    rule = checked(Rule(method, "align_corners" if align_corners else "half_pixel"))
    return Tensor(restored(resampled(v, order, _scaled(scale, sizes_of(v, order)), rule), layout))


def _scaled(scale: Any, sizes: Dims) -> Dims:
    scales = _numbers(scale, range(len(sizes)), "scale")
    if None in scales:
        raise AttributeValueError(f"scale {scale!r} is neither a number nor {len(sizes)} of them")
    return tuple([_scaled_length(n, s) for n, s in zip(sizes, scales, strict=True)])


def _scaled_length(length: DimLike, scale: Any) -> DimLike:
    if not 0 < scale < inf:
        raise AttributeValueError(f"scale {scale!r} should be greater than 0, and finite")
    numerator, denominator = float(scale).as_integer_ratio()
    if denominator == 1 or (isinstance(length, Dim) and denominator <= _EXACT):
        scaled: DimLike = length * numerator // denominator
        return scaled
    return floor(int(length) * float(scale))


@names_itself
def depth_to_space(x: ArrayLike, /, block: Int, *, mode: str = "DCR", layout: str | None = None) -> Tensor:
    """Channels as blocks of pixels: every pixel of C * prod(block) channels becomes a block of pixels of C channels.

    Channels are (block, C) with mode "DCR", and (C, block) with "CRD", which is PyTorch's pixel shuffle.  Works in one
    to three spatial dimensions; ShapeError where the channels do not divide.
    """
    v, order = arranged(as_value(x), layout)
    image = Image.of(v.spec, order)
    sizes = _block(block, len(image.size), mode)
    area = prod(sizes)
    if isinstance(image.c, int) and image.c % area:
        raise ShapeError(f"{image.c} channels of {v.spec} are no multiple of the {area} elements of a block {sizes}")
    rest, rank = image.c // area, len(sizes)
    channels = (*sizes, rest) if mode == "DCR" else (rest, *sizes)
    within = tuple(range(rank)) if mode == "DCR" else tuple(range(1, rank + 1))
    kept = rank if mode == "DCR" else 0
    last = has_channels_last(order)
    first_channel, first_pixel = (rank + 1, 1) if last else (1, rank + 2)
    apart = F.reshape(v, shape=(image.n, *image.size, *channels) if last else (image.n, *channels, *image.size))
    pixels = [axis for a in range(rank) for axis in (first_pixel + a, first_channel + within[a])]
    axes = (0, *pixels, first_channel + kept) if last else (0, first_channel + kept, *pixels)
    larger = tuple([n * b for n, b in zip(image.size, sizes, strict=True)])
    moved = F.reshape(F.permute(apart, axes=axes), shape=Image(image.n, larger, rest).shape(order))
    return Tensor(restored(moved, layout))


@names_itself
def space_to_depth(x: ArrayLike, /, block: Int, *, mode: str = "DCR", layout: str | None = None) -> Tensor:
    """Blocks of pixels as channels: the inverse of `depth_to_space`.  ShapeError where sizes do not divide."""
    v, order = arranged(as_value(x), layout)
    image = Image.of(v.spec, order)
    sizes = _block(block, len(image.size), mode)
    if any(isinstance(n, int) and n % b for n, b in zip(image.size, sizes, strict=True)):
        raise ShapeError(f"the spatial dimensions of {v.spec} are no multiples of a block {sizes}")
    rank, last = len(sizes), has_channels_last(order)
    smaller = tuple([n // b for n, b in zip(image.size, sizes, strict=True)])
    pairs = [d for pair in zip(smaller, sizes, strict=True) for d in pair]
    apart = F.reshape(v, shape=(image.n, *pairs, image.c) if last else (image.n, image.c, *pairs))
    first, channel = (1, 2 * rank + 1) if last else (2, 1)
    pixels, within = [first + 2 * a for a in range(rank)], [first + 2 * a + 1 for a in range(rank)]
    channels = [*within, channel] if mode == "DCR" else [channel, *within]
    axes = (0, *pixels, *channels) if last else (0, *channels, *pixels)
    shape = Image(image.n, smaller, image.c * prod(sizes)).shape(order)
    return Tensor(restored(F.reshape(F.permute(apart, axes=axes), shape=shape), layout))


def _block(block: Any, rank: int, mode: str) -> tuple[int, ...]:
    sizes = per_axis(block, rank, "block")
    if min(sizes) < 1:
        raise AttributeValueError(f"block {block!r} should be at least 1")
    if mode not in ("DCR", "CRD"):
        raise AttributeValueError(f"mode {mode!r} is neither 'DCR' nor 'CRD'")
    return sizes
