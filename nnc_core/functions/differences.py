"""Differences of neighbours, and what they are good for: gradients of sampled functions, integrals of samples."""

from __future__ import annotations

from typing import Any

from nnc_core.base.dtype import boolean, is_complex, is_inexact
from nnc_core.base.errors import AttributeValueError, OperandError, ShapeError
from nnc_core.functions.pieces import cut, flat, with_length
from nnc_core.functions.reduction import as_dtype, as_inexact, as_precise, float_of, for_differences
from nnc_core.shape.axes import normalise_axis
from nnc_core.values.arguments import ArrayLike, Axis, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["diff", "ediff1d", "gradient", "trapezoid"]


def _neighbours(v: Value, axis: int) -> tuple[Value, Value]:
    """All but the last, all but the first."""
    n = v.shape[axis]
    if n == 0:
        return v, v
    return cut(v, axis, 0, n - 1), cut(v, axis, 1, n)


def _difference(v: Value, axis: int) -> Value:
    before, after = _neighbours(v, axis)
    return F.not_equal(after, before) if v.dtype == boolean else F.subtract(after, before)


@by_shapes
@names_itself
def diff(x: ArrayLike, /, *, axis: int = -1, n: int = 1, prepend: ArrayLike | None = None,
         append: ArrayLike | None = None) -> Tensor:
    """x[i + 1] - x[i] along an axis, n times; of booleans whether they differ.

    `prepend` and `append` are put in front and behind first; scalars are repeated.
    """
    given = [x, *[y for y in (prepend, append) if y is not None]]
    v, *others = as_values(*given)
    if n < 0:
        raise AttributeValueError(f"n {n} is negative")
    if v.ndim == 0:
        raise ShapeError(f"{v.spec} has no axis to take differences along")
    a = normalise_axis(axis, v.ndim)
    ends = [F.broadcast_to(y, shape=with_length(v.shape, a, 1)) if y.ndim == 0 else y for y in others]
    parts = ([ends.pop(0)] if prepend is not None else []) + [v] + ends
    if n and len(parts) > 1:
        v = F.concat(*parts, axis=a)
    for _ in range(n):
        v = _difference(v, a)
    return Tensor(v)


@by_shapes
@names_itself
def ediff1d(x: ArrayLike, /, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Tensor:
    """Differences of neighbours in the flattened x, between what is to stand before and behind them."""
    first, last = ([] if y is None else [y] for y in (to_begin, to_end))
    values = [flat(v) for v in as_values(x, *first, *last)]
    d = _difference(values[0], 0)
    parts = [*values[1 : 1 + len(first)], d, *values[1 + len(first) :]]
    return Tensor(F.concat(*[as_dtype(p, d.dtype) for p in parts], axis=0))


# ---- gradients
@by_shapes
@names_itself
def gradient(f: ArrayLike, /, *spacing: ArrayLike, axis: Axis = None, edge_order: int = 1) -> Any:
    """Second-order central differences inside, one-sided ones of first or second order at the ends.

    `spacing` is nothing (1), one distance for all axes, or for each axis a distance or the coordinates of its points.
    One tensor for one axis, else a tuple.
    """
    values = as_values(f, *spacing)
    wanted = values[0].dtype if is_inexact(values[0].dtype) else float_of(values)
    v, *given = map(for_differences, values)
    axes = _axes(axis, v.ndim)
    if edge_order not in (1, 2):
        raise AttributeValueError(f"edge_order {edge_order} is neither 1 nor 2")
    if len(given) not in (0, 1, len(axes)) or (len(given) == 1 < len(axes) and given[0].ndim):
        raise OperandError(f"{len(given)} spacings for {len(axes)} axes", hint="one distance, or one for each axis")
    steps: list[Value | None] = list(given) or [None]
    steps = steps * (len(axes) // len(steps))
    results = [_gradient(v, s, a, edge_order) for s, a in zip(steps, axes, strict=True)]
    made = [Tensor(as_dtype(y, wanted)) for y in results]
    return made[0] if len(made) == 1 else tuple(made)


def _axes(axis: Axis, ndim: int) -> list[int]:
    """In the order given."""
    if axis is None:
        return list(range(ndim))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [normalise_axis(a, ndim) for a in given]
    if len(set(axes)) != len(axes):
        raise AttributeValueError(f"axis {axis} names an axis twice")
    return axes


def _gradient(v: Value, step: Value | None, axis: int, edge_order: int) -> Value:
    n = v.shape[axis]
    if isinstance(n, int) and n < edge_order + 1:
        raise ShapeError(f"{v.spec} has {n} points along axis {axis}, at least {edge_order + 1} are needed")
    if step is not None and step.ndim:
        return _uneven(v, _distances(v, step, axis), axis, edge_order)
    inner = _apart(cut(v, axis, 2, n), cut(v, axis, 0, n - 2))
    parts = [_edge(v, axis, edge_order, False), F.multiply(inner, 0.5), _edge(v, axis, edge_order, True)]
    y = F.concat(*parts, axis=axis)
    return y if step is None else F.divide(y, as_dtype(step, y.dtype))


def _apart(a: Value, b: Value) -> Value:
    """a - b as floats, rounded once."""
    return as_inexact(F.subtract(a, b))


def _edge(v: Value, axis: int, order: int, last: bool) -> Value:
    """For points at distance 1; at the last one looking back."""
    n = v.shape[axis]

    def point(k: int) -> Value:
        return cut(v, axis, n - 1 - k, n - k) if last else cut(v, axis, k, k + 1)

    d = _apart(point(1), point(0))
    if order == 2:
        d = F.subtract(F.multiply(2.0, d), F.multiply(0.5, _apart(point(2), point(0))))
    return F.negative(d) if last else d


def _distances(v: Value, points: Value, axis: int) -> Value:
    """Between neighbours, in a shape that broadcasts with v."""
    if points.ndim != 1 or points.shape[0] != v.shape[axis]:
        raise ShapeError(f"coordinates {points.spec} are no vector of as many points as {v.spec} has along axis {axis}")
    d = as_inexact(_difference(points, 0))
    d = as_dtype(d, v.dtype) if is_inexact(v.dtype) else d
    return F.reshape(d, shape=tuple(d.shape[0] if i == axis else 1 for i in range(v.ndim)))


def _uneven(v: Value, d: Value, axis: int, edge_order: int) -> Value:
    """Weighted so that parabolas are differentiated exactly."""
    m = d.shape[axis]
    slopes = F.divide(as_inexact(_difference(v, axis)), d)
    before, after = _neighbours(d, axis)
    left, right = _neighbours(slopes, axis)
    inner = F.divide(F.add(F.multiply(left, after), F.multiply(right, before)), F.add(before, after))
    ends = []
    for near, far in (((0, 1), (1, 2)), ((m - 1, m), (m - 2, m - 1))):
        slope = cut(slopes, axis, *near)
        if edge_order == 2:
            h, k = cut(d, axis, *near), cut(d, axis, *far)
            bend = F.divide(F.subtract(slope, cut(slopes, axis, *far)), F.add(h, k))
            slope = F.add(slope, F.multiply(bend, h))
        ends.append(slope)
    return F.concat(ends[0], inner, ends[1], axis=axis)


# ---- integrals
@by_shapes
@names_itself
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Tensor:
    """The integral of samples along an axis by trapezia: at coordinates x (a vector, or one each), or `dx` apart."""
    values = as_values(y, dx if x is None else x)
    v, d = map(as_precise, values)
    a = normalise_axis(axis, v.ndim)
    before, after = _neighbours(v, a)
    heights = F.multiply(F.add(before, after), 0.5)
    if x is None:
        widths: Value = d
    elif d.ndim == 1:
        widths = F.reshape(_difference(d, 0), shape=tuple(heights.shape[a] if i == a else 1 for i in range(v.ndim)))
    else:
        widths = _difference(d, normalise_axis(axis, d.ndim))
    area = F.sum(F.multiply(widths, heights), axis=(a,))
    return Tensor(area if is_complex(area.dtype) else as_dtype(area, float_of(values)))
