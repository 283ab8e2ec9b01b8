"""Images read at any places: a grid of coordinates, and the grid that an affine map makes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import accumulator
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.functions.constants import beside, constant_beside
from nnc_core.functions.resample_tables import BY_RANK
from nnc_core.functions.window_options import LAYOUTS, arranged, operator_layout, restored, size_of
from nnc_core.shape.window import Image
from nnc_core.type import DimLike, Dims
from nnc_core.values.arguments import ArrayLike, as_value, as_values, count_of, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["affine_grid", "grid_sample"]

PADDINGS = ("zeros", "border", "reflection")
CUBIC = -0.75


class Tap(NamedTuple):
    """An element that is read along one axis: a whole number as a float, and what it weighs (None: 1)."""

    place: Value
    weight: Value | None


@names_itself
def grid_sample(x: ArrayLike, grid: ArrayLike, /, *, method: str = "linear", padding_mode: str = "zeros",
                align_corners: bool = False, layout: str | None = None) -> Tensor:
    """Images x read at the coordinates of a grid (batch, *sizes, d), for d = 1, 2 or 3 spatial dimensions.

    Coordinates run from -1 to 1, over pixel edges or with `align_corners` over pixel centres; the last axis of the grid
    has the innermost dimension first: (x, y) for images.  method is "nearest" (halves to even), "linear" or "cubic";
    `padding_mode` says what lies outside: "zeros", the "border" repeated, or the image in "reflection" (about its
    edges, or about its outer centres with `align_corners`).  Gradients go to x and, where it is smooth, to the grid.
    """
    values, where = as_values(x, grid)
    v, _ = arranged(values, layout)
    v, method = channels_last(v, layout), BY_RANK.get(method, method)
    _check(v, where, method, padding_mode)
    image, wide = Image.of(v.spec, LAYOUTS[v.ndim - 2][0]), accumulator(v.dtype)
    places = _places(F.cast(where, dtype=wide), image, align_corners)
    axes = [_taps(p, n, method, padding_mode, align_corners) for p, n in zip(places, image.size, strict=True)]
    y = F.cast(_read(F.cast(v, dtype=wide), image, axes), dtype=v.dtype)
    return Tensor(back_in_layout(y, layout))


def channels_last(v: Value, layout: str | None) -> Value:
    """Images of which `arranged` has seen the layout, channels last."""
    return F.permute(v, axes=(0, *range(2, v.ndim), 1)) if _first(v, layout) else v


def _first(v: Value, layout: str | None) -> bool:
    return operator_layout(layout, v.ndim - 2).startswith("NC")


def back_in_layout(y: Value, layout: str | None) -> Value:
    """Images with channels last in the user's layout."""
    if _first(y, layout):
        return F.permute(y, axes=(0, y.ndim - 1, *range(1, y.ndim - 1)))
    return restored(y, layout)


def _check(v: Value, grid: Value, method: str, padding: str) -> None:
    rank = v.ndim - 2
    if grid.ndim != v.ndim or grid.shape[-1] != rank or grid.shape[0] != v.shape[0]:
        raise ShapeError(f"the grid {grid.spec} should have shape ({v.shape[0]}, {'size, ' * rank}{rank})")
    if not dt.is_float(v.dtype) or not dt.is_float(grid.dtype):
        raise DTypeError(f"needs floating-point numbers, not {v.dtype} and {grid.dtype}", hint="cast with astype")
    if method not in _METHODS:
        raise AttributeValueError(f"method {method!r} is none of {', '.join(map(repr, _METHODS))}")
    if padding not in PADDINGS:
        raise AttributeValueError(f"padding_mode {padding!r} is none of {', '.join(map(repr, PADDINGS))}")


def _places(grid: Value, image: Image, align_corners: bool) -> list[Value]:
    """For each spatial dimension, outermost first, where the grid is in elements."""
    rank, found = len(image.size), []
    for axis, length in enumerate(image.size):
        k = rank - 1 - axis
        start, stop = (0,) * (rank + 1) + (k,), (*grid.shape[:-1], k + 1)
        one = F.reshape(F.slice(grid, start=start, stop=stop, step=(1,) * grid.ndim), shape=grid.shape[:-1])
        if align_corners:
            found.append(F.multiply(F.add(one, 1.0), (int(length) - 1) / 2))
        else:
            found.append(F.subtract(F.multiply(F.add(one, 1.0), int(length) / 2), 0.5))
    return found


def _floor(x: Value) -> Value:
    return F.floor_divide(x, 1.0)


def _outside(place: Value, length: DimLike, padding: str, align_corners: bool) -> Value:
    """Brought inside, but for "zeros"."""
    if padding == "zeros":
        return place
    last = float(int(length) - 1)
    if padding == "reflection":
        place = _reflected(place, 0.0, last) if align_corners else _reflected(place, -0.5, last + 0.5)
    return F.clip(place, 0.0, last)


def _reflected(place: Value, low: float, high: float) -> Value:
    """Mirrored at both ends, again and again."""
    span = high - low
    if span <= 0:
        return F.multiply(place, 0.0)
    away = F.abs(F.subtract(place, low))
    rest = F.remainder(away, span)
    odd = F.equal(F.remainder(F.floor_divide(away, span), 2.0), 1.0)
    return F.add(F.where(odd, F.subtract(span, rest), rest), low)


def _nearest(place: Value, length: DimLike, padding: str, align_corners: bool) -> list[Tap]:
    place = _outside(place, length, padding, align_corners)
    below = _floor(place)
    share = F.subtract(place, below)
    odd = F.equal(F.remainder(below, 2.0), 1.0)
    up = F.logical_or(F.greater(share, 0.5), F.logical_and(F.equal(share, 0.5), odd))
    return [Tap(F.where(up, F.add(below, 1.0), below), None)]


def linear_taps(place: Value, length: DimLike, padding: str = "zeros", align_corners: bool = False) -> list[Tap]:
    """The two elements around a place."""
    place = _outside(place, length, padding, align_corners)
    below = _floor(place)
    share = F.subtract(place, below)
    return [Tap(below, F.subtract(1.0, share)), Tap(F.add(below, 1.0), share)]


def _cubic(place: Value, length: DimLike, padding: str, align_corners: bool) -> list[Tap]:
    """Each of the four elements is brought inside on its own."""
    below = _floor(place)
    share = F.subtract(place, below)
    taps = []
    for k in range(-1, 3):
        there = _outside(F.add(below, float(k)), length, padding, align_corners)
        taps.append(Tap(there, _keys(F.abs(F.subtract(share, float(k))), far=k in (-1, 2))))
    return taps


def _keys(d: Value, far: bool) -> Value:
    if far:
        inner = F.add(F.multiply(F.subtract(d, 5.0), d), 8.0)
        return F.subtract(F.multiply(F.multiply(inner, d), CUBIC), 4 * CUBIC)
    inner = F.subtract(F.multiply(d, CUBIC + 2), CUBIC + 3)
    return F.add(F.multiply(F.multiply(inner, d), d), 1.0)


_METHODS: dict[str, Callable[[Value, DimLike, str, bool], list[Tap]]] = {
    "nearest": _nearest, "linear": linear_taps, "cubic": _cubic,
}  # fmt: skip


def _taps(place: Value, length: DimLike, method: str, padding: str, align_corners: bool) -> list[Tap]:
    return _METHODS[method](place, length, padding, align_corners)


def _read(v: Value, image: Image, axes: list[list[Tap]]) -> Value:
    """The weighted sum over all combinations of taps; what is outside counts as zero."""
    n, size, c = image
    pixels = F.reshape(v, shape=(n * count_of(size), c))
    with beside(v):
        first = F.reshape(F.arange(size=n, dtype=dt.int64), shape=(n, *(1,) * len(size)))
        terms = [tap_term(pixels, first, size, taps) for taps in product(*axes)]
    total = terms[0]
    for term in terms[1:]:
        total = F.add(total, term)
    return total


def tap_term(pixels: Value, first: Value, size: Dims, taps: tuple[Tap, ...]) -> Value:
    """One element for each place of the grid, times its weight."""
    number, inside, weight = first, None, None
    for tap, length in zip(taps, size, strict=True):
        there = F.logical_and(F.greater_equal(tap.place, 0.0), F.less_equal(tap.place, float(int(length) - 1)))
        inside = there if inside is None else F.logical_and(inside, there)
        place = F.cast(F.where(there, tap.place, 0.0), dtype=dt.int64)
        number = F.add(F.multiply(number, int(length)), place)
        if tap.weight is not None:
            weight = tap.weight if weight is None else F.multiply(weight, tap.weight)
    value = F.where(_column(inside), F.take(pixels, number, axis=0), 0.0)
    return value if weight is None else F.multiply(value, _column(weight))


def _column(x: Any) -> Value:
    """With an axis for channels."""
    return F.reshape(x, shape=(*x.shape, 1))


@names_itself
def affine_grid(theta: ArrayLike, /, size: Any, *, align_corners: bool = False) -> Tensor:
    """The grid (batch, *size, d) for `grid_sample` of affine maps theta (batch, d, d + 1) of the target's coordinates,
    for d = 1, 2 or 3; a row of theta gives one coordinate of the source, the innermost dimension first."""
    v = as_value(theta)
    d = v.shape[1] if v.ndim == 3 else 0
    if d not in LAYOUTS or v.shape[2] != d + 1:
        raise ShapeError(f"theta {v.spec} should have shape (batch, d, d + 1) for d = 1, 2 or 3")
    if not dt.is_float(v.dtype):
        raise DTypeError(f"needs floating-point numbers, not {v.dtype}", hint="cast with astype")
    sizes = tuple([int(n) for n in size_of(size, int(d))])
    base = constant_beside(v, _base(sizes, align_corners).astype(v.dtype))
    return Tensor(F.reshape(F.matmul(base, v, transpose_b=True), shape=(v.shape[0], *sizes, d)))


def _base(sizes: tuple[int, ...], align_corners: bool) -> Any:
    """Homogeneous coordinates (elements, d + 1) of the target."""
    axes = []
    for n in sizes:
        i = np.arange(n, dtype=np.float64)
        centred = i * (2 / (n - 1)) - 1 if n > 1 else i
        axes.append(centred if align_corners else (2 * i + 1) / max(n, 1) - 1)
    grids = [g.reshape(-1) for g in np.meshgrid(*axes, indexing="ij")]
    return np.stack([*reversed(grids), np.ones_like(grids[0])], 1)
