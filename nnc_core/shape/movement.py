"""Rules of operators that move elements and compute nothing."""

from __future__ import annotations

from math import prod

from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.shape.axes import check_axes
from nnc_core.shape.elementwise import broadcast, same_dtype, show
from nnc_core.type import DimLike, Dims, TensorSpec, is_static


def reshape(x: TensorSpec, shape: Dims) -> TensorSpec:
    """Named dimensions are checked when they have numbers."""
    check_shape(shape)
    if is_static(x.shape) and is_static(shape) and prod(x.static_shape) != prod(int(d) for d in shape):
        raise ShapeError(f"{x} has {prod(x.static_shape)} elements and cannot be reshaped to {show(shape)}")
    return TensorSpec(shape, x.dtype)


def check_shape(shape: Dims) -> Dims:
    """ShapeError for negative dimensions."""
    if any(isinstance(d, int) and d < 0 for d in shape):
        raise ShapeError(f"shape {show(shape)} has a negative dimension")
    return shape


def permute(x: TensorSpec, axes: tuple[int, ...]) -> TensorSpec:
    if sorted(axes) != list(range(x.ndim)):
        raise AttributeValueError(f"{axes} is no permutation of the {x.ndim} axes")
    return TensorSpec(tuple(x.shape[a] for a in axes), x.dtype)


def broadcast_to(x: TensorSpec, shape: Dims) -> TensorSpec:
    if broadcast(x.shape, shape) != shape:
        raise ShapeError(f"{x} cannot be broadcast to {show(shape)}")
    return TensorSpec(shape, x.dtype)


def slice_(x: TensorSpec, start: Dims, stop: Dims, step: tuple[int, ...]) -> TensorSpec:
    """0 <= start <= stop <= length and step > 0, for each axis."""
    if not len(start) == len(stop) == len(step) == x.ndim:
        raise AttributeValueError(f"start, stop and step need one entry for each of {x.ndim} axes")
    shape = []
    for low, high, by, length in zip(start, stop, step, x.shape, strict=True):
        if by < 1 or _above(low, high) or _above(high, length) or _above(0, low):
            raise AttributeValueError(f"slice {low}:{high}:{by} does not lie within length {length}")
        shape.append((high - low + by - 1) // by if by > 1 else high - low)
    return TensorSpec(tuple(shape), x.dtype)


def _above(a: DimLike, b: DimLike) -> bool:
    """Known to be greater."""
    difference = a - b
    return isinstance(difference, int) and difference > 0


def pad(x: TensorSpec, low: Dims, high: Dims, interior: tuple[int, ...], value: float) -> TensorSpec:
    """`interior` elements between neighbours, `low` before and `high` after; all are filled with `value`."""
    if not len(low) == len(high) == len(interior) == x.ndim:
        raise AttributeValueError(f"low, high and interior need one entry for each of {x.ndim} axes")
    if any(isinstance(n, int) and n < 0 for n in (*low, *high, *interior)):
        raise AttributeValueError(f"negative padding: low {low}, high {high}, interior {interior}")
    shape = []
    for before, after, between, length in zip(low, high, interior, x.shape, strict=True):
        spread = length + (length - 1) * between if between and length != 0 else length
        shape.append(spread + before + after)
    return TensorSpec(tuple(shape), x.dtype)


def flip(x: TensorSpec, axes: tuple[int, ...]) -> TensorSpec:
    check_axes(axes, x.ndim)
    return x


def concat(*arguments: TensorSpec | int) -> TensorSpec:
    xs = [x for x in arguments if isinstance(x, TensorSpec)]
    (axis,) = [a for a in arguments if isinstance(a, int)]
    if not xs:
        raise ShapeError("nothing to concatenate", hint="give one array or more")
    check_axes((axis,), xs[0].ndim)
    total: DimLike = 0
    for x in xs:
        if x.ndim != xs[0].ndim or any(
            i != axis and a != b for i, (a, b) in enumerate(zip(x.shape, xs[0].shape, strict=True))
        ):
            raise ShapeError(f"{xs[0]} and {x} differ in more than axis {axis}")
        total = x.shape[axis] + total
    return TensorSpec((*xs[0].shape[:axis], total, *xs[0].shape[axis + 1 :]), same_dtype(*xs))


def update_slice(x: TensorSpec, value: TensorSpec, start: Dims, step: tuple[int, ...]) -> TensorSpec:
    """x with a regular part of it replaced by `value`."""
    if not len(start) == len(step) == x.ndim == value.ndim:
        raise AttributeValueError(f"start and step need one entry for each of {x.ndim} axes, and so does {value}")
    same_dtype(x, value)
    if min(step, default=1) < 1:
        raise AttributeValueError(f"step {step} should be at least 1")
    for low, by, count, length in zip(start, step, value.shape, x.shape, strict=True):
        if _above(0, low) or (count != 0 and _above(low + (count - 1) * by + 1, length)):
            raise ShapeError(f"{count} elements from {low} by {by} do not lie within length {length}")
    return x


def identity(x: TensorSpec) -> TensorSpec:
    return x
