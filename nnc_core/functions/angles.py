"""Angles, and what else NumPy asks of complex numbers element by element."""

from __future__ import annotations

from math import pi

from nnc_core.base.dtype import boolean, complex_of, is_complex, is_integer
from nnc_core.base.errors import AttributeValueError, DTypeError
from nnc_core.functions.pieces import cut
from nnc_core.functions.reduction import as_inexact
from nnc_core.operator.along import taken_along
from nnc_core.shape.axes import normalise_axis
from nnc_core.values.arguments import ArrayLike, as_value, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.modes import use_device
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value
from nnc_core.values.whole import as_whole

__all__ = ["angle", "iscomplex", "isreal", "sort_complex", "unwrap"]


@by_shapes
@names_itself
def angle(z: ArrayLike, /, deg: bool = False) -> Tensor:
    """The angle of complex numbers against the positive real axis, from -pi to pi, or in degrees; of real numbers 0 or
    pi."""
    v = as_inexact(as_value(z))
    re, im = (F.real(v), F.imag(v)) if is_complex(v.dtype) else (v, F.zeros_like(v))
    y = F.atan2(im, re)
    return Tensor(F.multiply(y, 180 / pi) if deg else y)


@by_shapes
@names_itself
def unwrap(p: ArrayLike, /, discont: float | None = None, axis: int = -1, *, period: float = 2 * pi) -> Tensor:
    """Angles without jumps: whole periods are added wherever neighbours along an axis differ by more than `discont`,
    half of a period if not given or smaller."""
    v = as_value(p)
    if is_complex(v.dtype) or v.dtype == boolean:
        raise DTypeError(f"angles are real numbers, not {v.dtype}", hint="angle(z)")
    a = normalise_axis(axis, v.ndim)
    if not period > 0:
        raise AttributeValueError(f"the period {period} is not positive")
    whole = is_integer(v.dtype) and float(period).is_integer()
    v = v if whole else as_inexact(v)
    n = v.shape[a]
    if n == 0 or n == 1:
        return Tensor(v)
    jumps = F.subtract(cut(v, a, 1, n), cut(v, a, 0, n - 1))
    turns = F.cumulative_sum(_turns(jumps, discont, int(period) if whole else float(period)), axis=a)
    return Tensor(F.concat(cut(v, a, 0, 1), F.add(cut(v, a, 1, n), turns), axis=a))


def _turns(jumps: Value, discont: float | None, period: float) -> Value:
    """The correction to add at each jump."""
    half = period // 2 if isinstance(period, int) else period / 2
    low = -half
    inside = F.add(F.remainder(F.subtract(jumps, low), period), low)
    if period == 2 * half:  # half a period upwards stays upwards
        inside = F.where(F.logical_and(F.equal(inside, low), F.greater(jumps, 0)), half, inside)
    small = F.less(F.abs(jumps), half if discont is None else discont)
    return F.where(small, 0, F.subtract(inside, jumps))


@names_itself
def iscomplex(x: ArrayLike, /) -> Tensor:
    """True where the imaginary part is not zero, whatever the dtype."""
    return Tensor(_has_imaginary_part(as_value(x)))


@names_itself
def isreal(x: ArrayLike, /) -> Tensor:
    """True where the imaginary part is zero, whatever the dtype."""
    return Tensor(F.logical_not(_has_imaginary_part(as_value(x))))


def _has_imaginary_part(v: Value) -> Value:
    if is_complex(v.dtype):
        return F.not_equal(F.imag(v), 0)
    with use_device(v.stack):
        return F.full(shape=v.shape, value=False, dtype=boolean)


@names_itself
def sort_complex(x: ArrayLike, /) -> Tensor:
    """The elements along the last axis as complex numbers, by rising real parts, where those are equal by rising
    imaginary parts."""
    v = as_inexact(as_value(x))
    axis = normalise_axis(-1, v.ndim)
    if not is_complex(v.dtype):
        return Tensor(F.cast(F.sort(v, axis=axis), dtype=complex_of(v.dtype)))
    if (found := as_whole("complex_sorted", (v,), (axis,))) is not None:
        return Tensor(found)
    keys = [F.reshape(part, shape=(1, *part.shape)) for part in (F.imag(v), F.real(v))]
    order = F.lexsort(F.concat(*keys, axis=0), axis=axis)
    return Tensor(taken_along(F, v, order, axis))
