"""Scans: sums, products and extremes of what lies up to each element."""

from __future__ import annotations

from typing import Any, NamedTuple

from nnc_core.base.dtype import boolean
from nnc_core.base.errors import AttributeValueError
from nnc_core.functions.pieces import flat
from nnc_core.functions.reduction import as_inexact, as_summed
from nnc_core.shape.axes import normalise_axis
from nnc_core.shape.elementwise import broadcast
from nnc_core.values.arguments import ArrayLike, as_value, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = [
    "cummax", "cummin", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum",
    "linear_recurrence", "logcumsumexp",
]  # fmt: skip


class CumulativeExtremum(NamedTuple):
    """The extremes so far, and where each lies along the axis: of equal elements the first."""

    values: Tensor
    indices: Tensor


def _axis(v: Value, axis: int | None) -> int:
    """None will do where there is but one."""
    if axis is None and v.ndim != 1:
        raise AttributeValueError(f"{v.spec} has {v.ndim} axes: along which?", hint="axis=0, or flatten it first")
    return normalise_axis(0 if axis is None else axis, v.ndim)


def _with_initial(v: Value, axis: int, number: int) -> Value:
    low = tuple(int(a == axis) for a in range(v.ndim))
    none = (0,) * v.ndim
    return F.pad(v, low=low, high=none, interior=none, value=number)


@by_shapes
@names_itself
def cumulative_sum(x: ArrayLike, /, *, axis: int | None = None, dtype: Any = None,
                   include_initial: bool = False) -> Tensor:
    """Sums of what lies up to each element, that one included; with a zero in front if `include_initial`.

    Small integers and booleans are summed as int64 (uint64 for unsigned); one axis needs not be named.
    """
    v = as_summed(as_value(x), dtype)
    a = _axis(v, axis)
    y = F.cumulative_sum(v, axis=a)
    return Tensor(_with_initial(y, a, 0) if include_initial else y)


@by_shapes
@names_itself
def cumulative_prod(x: ArrayLike, /, *, axis: int | None = None, dtype: Any = None,
                    include_initial: bool = False) -> Tensor:
    """Products of what lies up to each element, that one included; with a one in front if `include_initial`."""
    v = as_summed(as_value(x), dtype)
    a = _axis(v, axis)
    y = F.cumulative_prod(v, axis=a)
    return Tensor(_with_initial(y, a, 1) if include_initial else y)


def along(v: Value, axis: int | None) -> tuple[Value, int]:
    """NumPy's way: of the flattened array without an axis."""
    return (flat(v), 0) if axis is None else (v, normalise_axis(axis, v.ndim))


@by_shapes
@names_itself
def cumsum(x: ArrayLike, /, axis: int | None = None, dtype: Any = None) -> Tensor:
    """`cumulative_sum` as NumPy has it: of the flattened array without an axis."""
    v, a = along(as_summed(as_value(x), dtype), axis)
    return Tensor(F.cumulative_sum(v, axis=a))


@by_shapes
@names_itself
def cumprod(x: ArrayLike, /, axis: int | None = None, dtype: Any = None) -> Tensor:
    """`cumulative_prod` as NumPy has it: of the flattened array without an axis."""
    v, a = along(as_summed(as_value(x), dtype), axis)
    return Tensor(F.cumulative_prod(v, axis=a))


def _extremum(name: str, x: ArrayLike, axis: int | None, return_indices: bool) -> Any:
    v = as_value(x)
    a = _axis(v, axis)
    values = Tensor(getattr(F, name)(v, axis=a))
    return CumulativeExtremum(values, Tensor(getattr(F, f"arg{name}")(v, axis=a))) if return_indices else values


@by_shapes
@names_itself
def cummax(x: ArrayLike, /, *, axis: int | None = None, return_indices: bool = False) -> Any:
    """The largest of what lies up to each element; NaN wins.

    With `return_indices` (values, indices), the int64 positions along the axis: of equal elements the first.
    """
    return _extremum("cummax", x, axis, return_indices)


@by_shapes
@names_itself
def cummin(x: ArrayLike, /, *, axis: int | None = None, return_indices: bool = False) -> Any:
    """The smallest of what lies up to each element; NaN wins.

    With `return_indices` (values, indices), the int64 positions along the axis: of equal elements the first.
    """
    return _extremum("cummin", x, axis, return_indices)


@by_shapes
@names_itself
def logcumsumexp(x: ArrayLike, /, *, axis: int | None = None) -> Tensor:
    """log(cumulative_sum(exp(x))), without overflow."""
    v = as_inexact(as_value(x))
    return Tensor(F.logcumsumexp(v, axis=_axis(v, axis)))


@names_itself
def linear_recurrence(factor: ArrayLike, value: ArrayLike, /, *, axis: int = -1, reverse: bool = False) -> Tensor:
    """y[i] = factor[i] * y[i - 1] + value[i] along an axis, with y[-1] = 0; with `reverse` from the end.

    Exponential averages and linear state-space models are of this form.  Both arrays are broadcast together.
    """
    a, b = as_values(factor, value)
    shape = broadcast(a.shape, b.shape)
    a, b = (v if v.shape == shape else F.broadcast_to(v, shape=shape) for v in (a, b))
    if a.dtype == boolean and b.dtype == boolean:
        a, b = as_summed(a), as_summed(b)
    return Tensor(F.recurrence(a, b, axis=normalise_axis(axis, len(shape)), reverse=reverse))
