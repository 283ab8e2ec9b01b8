"""Padding in all of NumPy's modes: one axis after the other, so that corners are paddings of paddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, boolean, float64, is_inexact, is_integer, uint64
from nnc_core.base.errors import AttributeValueError, DTypeError, OperandError, ShapeError
from nnc_core.functions.constants import constant_beside
from nnc_core.functions.pieces import cut, taken, with_length
from nnc_core.shape.axes import normalise_axis
from nnc_core.type import Dim, DimLike
from nnc_core.values.arguments import ArrayLike, as_value, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.operands import value_of
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["pad"]

Widths = tuple[DimLike, DimLike]
"""Before and after an axis."""


@by_shapes
@names_itself
def pad(x: ArrayLike, /, pad_width: Any, mode: str = "constant", **options: Any) -> Tensor:
    """x with more elements around it.

    Widths as NumPy has them: one number, (before, after), one pair for each axis, or {axis: width}.  Modes:
    "constant" (`constant_values`, in the forms of widths; `value` for one number, which may be a tensor), "empty"
    (zeros), "edge", "reflect" and "symmetric" (`reflect_type` "even" or "odd"), "wrap", "linear_ramp" (`end_values`),
    "maximum", "minimum", "mean", "median" (`stat_length`).
    """
    v = as_value(x)
    if mode not in MODES:
        raise AttributeValueError(f"mode {mode!r} is none of {', '.join(MODES)}")
    one_axis, allowed = MODES[mode]
    if unknown := options.keys() - allowed:
        raise OperandError(f"mode {mode!r} has no option {', '.join(sorted(unknown))}",
                           hint=", ".join(allowed) or "it has none")
    widths = _widths(pad_width, v.ndim)
    if mode in ("constant", "empty"):
        return Tensor(_constant(v, widths, options))
    given = {name: _pairs(option, v.ndim) for name, option in options.items() if name != "reflect_type"}
    if options.get("reflect_type") not in (None, "even", "odd"):
        raise AttributeValueError(f"reflect_type {options['reflect_type']!r} is neither 'even' nor 'odd'")
    odd = options.get("reflect_type") == "odd"
    if v.dtype == boolean and (odd or mode == "linear_ramp"):
        raise DTypeError(f"mode {mode!r}{' of the odd kind' if odd else ''} computes with numbers, not booleans",
                         hint="cast with astype")
    if odd:
        one_axis = _odd_edges if mode == "symmetric" else _odd
    for axis, width in enumerate(widths):
        if width != (0, 0):
            if v.shape[axis] == 0:
                raise ShapeError(f"axis {axis} of {v.spec} is empty: mode {mode!r} has nothing to go by",
                                 hint='mode "constant"')
            v = one_axis(v, axis, width, **{name: pairs[axis] for name, pairs in given.items()})
    return Tensor(v)


def _widths(given: Any, ndim: int) -> list[Widths]:
    if isinstance(given, dict):
        pairs: list[Widths] = [(0, 0)] * ndim
        for axis, width in given.items():
            (pairs[normalise_axis(axis, ndim)],) = _pairs(width, 1)
        given = pairs
    widths = _pairs(given, ndim)
    for n in [n for pair in widths for n in pair]:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer, Dim)) or (not isinstance(n, Dim) and n < 0):
            raise AttributeValueError(f"pad_width {given} has {n}, which is no width")
    return [(_plain(before), _plain(after)) for before, after in widths]


def _plain(n: Any) -> DimLike:
    return int(n) if isinstance(n, np.integer) else n


def _pairs(given: Any, ndim: int) -> list[Any]:
    """(before, after) for each axis: from one number, one for both sides, a pair, or pairs."""
    rows = np.empty((ndim, 2), object)
    try:
        rows[...] = np.array(given, object) if not isinstance(given, np.ndarray) else given
    except ValueError:
        raise AttributeValueError(f"{given} does not give a pair for each of {ndim} axes",
                                  hint="one number, (before, after), or one pair for each axis") from None
    return [tuple(row) for row in rows.tolist()]


# ---- constants
def _constant(v: Value, widths: Sequence[Widths], options: dict[str, Any]) -> Value:
    if len(options) > 1:
        raise OperandError("both value and constant_values are given", hint="one of them")
    given = next(iter(options.values()), 0)
    if isinstance(given, Tensor) and given.shape == ():
        inside = _filled(F.full_like(F.cast(v, dtype=boolean), True), dict(enumerate(widths)), False)
        return F.where(inside, _filled(v, dict(enumerate(widths)), 0), F.cast(value_of(given), dtype=v.dtype))
    numbers = _pairs(given, v.ndim)
    used = {_number(n, v.dtype) for pair, width in zip(numbers, widths, strict=True)
            for n, w in zip(pair, width, strict=True) if w != 0}
    if len(used) <= 1:
        return _filled(v, dict(enumerate(widths)), used.pop() if used else 0)
    for axis, ((low, high), (before, after)) in enumerate(zip(widths, numbers, strict=True)):
        v = _filled(v, {axis: (low, 0)}, _number(before, v.dtype))
        v = _filled(v, {axis: (0, high)}, _number(after, v.dtype))
    return v


def _number(n: Any, dtype: DType) -> Any:
    """A Python number as that dtype has it."""
    with np.errstate(all="ignore"):
        cast = np.asarray(n).astype(dtype)
    return cast.item() if dtype.kind != "V" else float(cast)


def _filled(v: Value, widths: dict[int, Widths], number: Any) -> Value:
    low, high = zip(*[widths.get(axis, (0, 0)) for axis in range(v.ndim)], strict=True) if v.ndim else ((), ())
    if not any(n != 0 for n in (*low, *high)):
        return v
    return F.pad(v, low=low, high=high, interior=(0,) * v.ndim, value=number)


# ---- elements of x again
def _repeated(v: Value, axis: int, width: DimLike) -> Value:
    """A slice of length one, so often."""
    return F.broadcast_to(v, shape=with_length(v.shape, axis, width))


def _edge(v: Value, axis: int, width: Widths) -> Value:
    n = v.shape[axis]
    return _around(v, axis, width, _repeated(cut(v, axis, 0, 1), axis, width[0]),
                   _repeated(cut(v, axis, n - 1, n), axis, width[1]))


def _around(v: Value, axis: int, width: Widths, before: Value, after: Value) -> Value:
    """Joined, without what is empty."""
    low, high = width
    return F.concat(*[before] * (low != 0), v, *[after] * (high != 0), axis=axis)


def _again(mode: str, shared_edge: int, flipped: bool) -> Callable[..., Value]:
    """Elements of x in reverse order, or in their own; `shared_edge` elements at each end are not repeated."""

    def one_axis(v: Value, axis: int, width: Widths) -> Value:
        n, (low, high) = v.shape[axis], width
        if n == 1:
            return _edge(v, axis, width)
        room = n - shared_edge
        if all(isinstance(k, int) for k in (n, low, high)) and max(low, high) > room:
            return taken(v, np.pad(np.arange(int(n)), width, mode), axis)  # type: ignore[call-overload]
        if not flipped:
            return _around(v, axis, width, cut(v, axis, n - low, n), cut(v, axis, 0, high))
        before = F.flip(cut(v, axis, shared_edge, low + shared_edge), axes=(axis,))
        after = F.flip(cut(v, axis, room - high, room), axes=(axis,))
        return _around(v, axis, width, before, after)

    return one_axis


def _odd(v: Value, axis: int, width: Widths) -> Value:
    """Turned by half around the outermost elements, again and again."""
    if v.shape[axis] == 1:
        return _edge(v, axis, width)
    low, high = map(int, width)
    backwards = F.flip(_turned(F.flip(v, axes=(axis,)), axis, low), axes=(axis,))
    return _around(v, axis, width, backwards, _turned(v, axis, high))


def _turned(v: Value, axis: int, width: int) -> Value:
    """The elements that follow v at its end."""
    n, pieces, left = int(v.shape[axis]), [], width
    while left > 0:
        edge = cut(v, axis, n - 1, n)
        piece = F.subtract(F.multiply(edge, 2), F.flip(cut(v, axis, 0, n - 1), axes=(axis,)))
        v = F.concat(edge, piece, axis=axis)
        pieces.append(cut(piece, axis, 0, min(n - 1, left)))
        left -= n - 1
    return F.concat(*pieces, axis=axis) if pieces else cut(v, axis, 0, 0)


def _odd_edges(v: Value, axis: int, width: Widths) -> Value:
    """The same around places just beyond the outermost elements, which are repeated."""
    if v.shape[axis] == 1:
        return _edge(v, axis, width)
    low, high = map(int, width)
    backwards = F.flip(_turned_with_edge(F.flip(v, axes=(axis,)), axis, low), axes=(axis,))
    return _around(v, axis, width, backwards, _turned_with_edge(v, axis, high))


def _turned_with_edge(v: Value, axis: int, width: int) -> Value:
    n, pieces, left = int(v.shape[axis]), [], width
    while left > 0:
        v = F.subtract(F.multiply(cut(v, axis, n - 1, n), 2), F.flip(v, axes=(axis,)))
        pieces.append(cut(v, axis, 0, min(n, left)))
        left -= n
    return F.concat(*pieces, axis=axis) if pieces else cut(v, axis, 0, 0)


# ---- numbers made of x
def _ramps(v: Value, axis: int, width: Widths, end_values: Sequence[Any] = (0, 0)) -> Value:
    """From the edges to the end values, at equal distances; integers are rounded down."""
    n, (low, high) = v.shape[axis], (int(width[0]), int(width[1]))
    before = _ramp(cut(v, axis, 0, 1), axis, low, end_values[0])
    after = F.flip(_ramp(cut(v, axis, n - 1, n), axis, high, end_values[1]), axes=(axis,))
    return _around(v, axis, width, before, after)


def _ramp(edge: Value, axis: int, width: int, end: Any) -> Value:
    shape = with_length((1,) * edge.ndim, axis, width)
    if is_integer(edge.dtype):
        steps = constant_beside(edge, np.arange(width, dtype=np.uint64).reshape(shape))
        return _whole_ramp(edge, F.number(_number(end, edge.dtype), edge.dtype, edge), steps, width)
    parts = (np.arange(width) / max(width, 1)).reshape(shape)
    weights = constant_beside(edge, parts, edge.dtype)
    return F.add(F.multiply(F.subtract(edge, end), weights), end)


def _whole_ramp(edge: Value, end: Value, steps: Value, width: int) -> Value:
    """end + floor((edge - end) * k / width) without overflow: with the distance as an unsigned number."""
    rising = F.greater_equal(edge, end)
    lowest, highest = (F.cast(f(edge, end), dtype=uint64) for f in (F.minimum, F.maximum))
    distance = F.subtract(highest, lowest)
    whole = F.floor_divide(distance, width)
    rest = F.multiply(F.subtract(distance, F.multiply(whole, width)), steps)
    up = F.where(rising, 0, width - 1)
    part = F.add(F.multiply(whole, steps), F.floor_divide(F.add(rest, F.cast(up, dtype=uint64)), width))
    start = F.cast(end, dtype=uint64)
    return F.cast(F.where(rising, F.add(start, part), F.subtract(start, part)), dtype=edge.dtype)


def _statistic(name: str) -> Callable[..., Value]:
    def one_axis(v: Value, axis: int, width: Widths, stat_length: Sequence[Any] = (None, None)) -> Value:
        n = v.shape[axis]
        before, after = (n if k is None or (isinstance(n, int) and k > n) else k for k in stat_length)
        if any(isinstance(k, int) and k < 1 for k in (before, after)):
            raise AttributeValueError(f"stat_length {tuple(stat_length)}: nothing has no {name}")
        edges = cut(v, axis, 0, before), cut(v, axis, n - after, n)
        low, high = (_repeated(STATISTICS[name](e, axis), axis, w) for e, w in zip(edges, width, strict=True))
        return _around(v, axis, width, low, high)

    return one_axis


def _rounded(statistic: Callable[[Value, int], Value]) -> Callable[[Value, int], Value]:
    """The mean of integers rounded to the nearest, halves to even; of booleans True unless it is 0."""

    def wrapped(v: Value, axis: int) -> Value:
        if is_inexact(v.dtype):
            return statistic(v, axis)
        wide = F.cast(v, dtype=float64) if float64 in v.stack.type.dtypes else F.divide(v, 1)
        found = statistic(wide, axis)
        return F.cast(found if v.dtype == boolean else F.round(found), dtype=v.dtype)

    return wrapped


def _median(v: Value, axis: int) -> Value:
    """NaN if there is one."""
    n = int(v.shape[axis])
    ordered = F.sort(v, axis=axis)
    last = cut(ordered, axis, n - 1, n)
    middle = F.mean(cut(ordered, axis, (n - 1) // 2, n // 2 + 1), axis=(axis,), keepdims=True)
    return F.where(F.not_equal(last, last), last, middle)


STATISTICS: dict[str, Callable[[Value, int], Value]] = {
    "maximum": lambda v, axis: F.max(v, axis=(axis,), keepdims=True),
    "minimum": lambda v, axis: F.min(v, axis=(axis,), keepdims=True),
    "mean": _rounded(lambda v, axis: F.mean(v, axis=(axis,), keepdims=True)), "median": _rounded(_median),
}  # fmt: skip
MODES: dict[str, tuple[Callable[..., Value], tuple[str, ...]]] = {
    "constant": (_edge, ("constant_values", "value")), "empty": (_edge, ()), "edge": (_edge, ()),
    "reflect": (_again("reflect", 1, flipped=True), ("reflect_type",)),
    "symmetric": (_again("symmetric", 0, flipped=True), ("reflect_type",)),
    "wrap": (_again("wrap", 0, flipped=False), ()), "linear_ramp": (_ramps, ("end_values",)),
    **{name: (_statistic(name), ("stat_length",)) for name in STATISTICS},
}  # fmt: skip
"""How one axis is padded, and the options."""
