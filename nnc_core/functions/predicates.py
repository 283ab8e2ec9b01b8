"""Predicates of numbers: finite, infinite, close to each other; and the replacement of NaN and infinities."""

from __future__ import annotations

from math import inf

from nnc_core.base.dtype import boolean, int64, is_complex, is_float, is_inexact
from nnc_core.base.errors import DTypeError, ShapeError
from nnc_core.functions.dtypes import finfo
from nnc_core.functions.reduction import as_dtype, as_precise, comparable
from nnc_core.values.arguments import ArrayLike, as_operands, as_value, as_value_beside, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = [
    "allclose", "array_equal", "array_equiv", "isclose", "isfinite", "isinf", "isneginf", "isposinf", "nan_to_num",
]  # fmt: skip


@by_shapes
@names_itself
def isfinite(x: ArrayLike, /) -> Tensor:
    """True where x is neither infinite nor NaN; of complex numbers both parts."""
    return Tensor(_finite(as_value(x)))


@by_shapes
@names_itself
def isinf(x: ArrayLike, /) -> Tensor:
    """True where x is infinite; of complex numbers one part or both."""
    return Tensor(_infinite(as_value(x)))


@by_shapes
@names_itself
def isposinf(x: ArrayLike, /) -> Tensor:
    """True where x is plus infinity."""
    return Tensor(_equals(as_value(x), inf))


@by_shapes
@names_itself
def isneginf(x: ArrayLike, /) -> Tensor:
    """True where x is minus infinity."""
    return Tensor(_equals(as_value(x), -inf))


def _finite(v: Value) -> Value:
    if is_complex(v.dtype):
        return F.logical_and(_finite(F.real(v)), _finite(F.imag(v)))
    return F.less(F.abs(v), inf) if is_float(v.dtype) else F.equal(v, v)


def _infinite(v: Value) -> Value:
    if is_complex(v.dtype):
        return F.logical_or(_infinite(F.real(v)), _infinite(F.imag(v)))
    return F.equal(F.abs(v), inf) if is_float(v.dtype) else F.not_equal(v, v)


def _equals(v: Value, infinity: float) -> Value:
    """Integers and booleans are never infinite."""
    if is_complex(v.dtype):
        raise DTypeError(f"{v.dtype} has no order", hint="ask abs(x), or real(x) and imag(x)")
    return F.equal(v, infinity) if is_float(v.dtype) else F.not_equal(v, v)


@by_shapes
@names_itself
def isclose(a: ArrayLike, b: ArrayLike, /, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8,
            equal_nan: bool = False) -> Tensor:
    """True where |a - b| <= atol + rtol * |b|, or both are the same infinity, or with `equal_nan` both NaN."""
    first, second = as_values(a, b)
    x, y = comparable(as_precise(first), as_precise(second))
    whole = not any(is_inexact(v.dtype) for v in (first, second))
    apart = _apart(first, second, F.abs(F.subtract(x, y))) if whole else F.abs(F.subtract(x, y))
    relative, absolute = as_operands(rtol, atol)
    near = F.less_equal(apart, F.add(F.multiply(F.abs(y), relative), absolute))
    close = F.logical_or(F.logical_and(near, _finite(y)), F.equal(apart, 0) if whole else F.equal(x, y))
    if equal_nan:
        close = F.logical_or(close, F.logical_and(F.not_equal(x, x), F.not_equal(y, y)))
    return Tensor(close)


def _apart(a: Value, b: Value, rounded: Value) -> Value:
    """|a - b| of integers, exact where it fits into int64 and as it was computed from floats elsewhere."""
    m, n = (as_dtype(v, int64) for v in (a, b))
    return F.where(F.less(rounded, 2.0**62), as_dtype(F.abs(F.subtract(m, n)), rounded.dtype), rounded)


@by_shapes
@names_itself
def allclose(a: ArrayLike, b: ArrayLike, /, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8,
             equal_nan: bool = False) -> Tensor:
    """True if `isclose` holds everywhere: a boolean of shape ()."""
    return Tensor(_everywhere(isclose(a, b, rtol, atol, equal_nan)._value))


@by_shapes
@names_itself
def array_equal(a: ArrayLike, b: ArrayLike, /, equal_nan: bool = False) -> Tensor:
    """True if the shapes and all elements are equal, with `equal_nan` NaN to NaN: a boolean of shape ()."""
    x, y = as_values(a, b)
    if x.shape != y.shape:
        return Tensor(as_value_beside(False, x))
    same = F.equal(x, y)
    if equal_nan:
        same = F.logical_or(same, F.logical_and(F.not_equal(x, x), F.not_equal(y, y)))
    return Tensor(_everywhere(same))


@by_shapes
@names_itself
def array_equiv(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """True if the arrays are equal once they are broadcast together: a boolean of shape ()."""
    x, y = as_values(a, b)
    try:
        return Tensor(_everywhere(F.equal(x, y)))
    except ShapeError:
        return Tensor(as_value_beside(False, x))


def _everywhere(v: Value) -> Value:
    assert v.dtype == boolean, "of conditions"
    return F.all(v, axis=tuple(range(v.ndim)), keepdims=False)


@by_shapes
@names_itself
def nan_to_num(x: ArrayLike, /, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """NaN and infinities replaced by numbers: 0 and, unless told otherwise, the dtype's largest ones; in both parts of
    complex numbers."""
    v = as_value(x)
    if is_complex(v.dtype):
        return Tensor(F.complex_(*[_numbered(part, nan, posinf, neginf) for part in (F.real(v), F.imag(v))]))
    return Tensor(_numbered(v, nan, posinf, neginf) if is_float(v.dtype) else v)


def _numbered(v: Value, nan: float, posinf: float | None, neginf: float | None) -> Value:
    largest = finfo(v.dtype).max
    known = F.where(F.not_equal(v, v), nan, v)
    bounded = F.where(F.equal(v, inf), largest if posinf is None else posinf, known)
    return F.where(F.equal(v, -inf), -largest if neginf is None else neginf, bounded)
