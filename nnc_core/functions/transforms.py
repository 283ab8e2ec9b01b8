"""Transformations of positive numbers, and exponentials near 0, with the names of scipy.special."""

from __future__ import annotations

from math import inf

from nnc_core.functions.floats import one_dtype
from nnc_core.functions.reduction import as_inexact
from nnc_core.values.arguments import ArrayLike, as_value, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.elementwise_programs import of_elements
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["boxcox", "boxcox1p", "cosm1", "exp10", "exprel", "inv_boxcox", "inv_boxcox1p", "rel_entr"]


@names_itself
def exp10(x: ArrayLike, /) -> Tensor:
    """10**x."""
    v = as_inexact(as_value(x))
    return Tensor(F.power(F.full_like(v, 10), v))


@names_itself
def cosm1(x: ArrayLike, /) -> Tensor:
    """cos(x) - 1, accurate near 0."""
    return Tensor(_cosm1(as_inexact(as_value(x))))


@of_elements
def _cosm1(v: Value) -> Value:
    half = F.sin(F.multiply(v, 0.5))
    return F.multiply(F.multiply(half, half), -2.0)


@names_itself
def exprel(x: ArrayLike, /) -> Tensor:
    """(exp(x) - 1) / x, and 1 at 0."""
    return Tensor(_relative(as_inexact(as_value(x))))


@of_elements
def _relative(v: Value) -> Value:
    """Relative exponential, by its series near 0, so that derivatives are right there."""
    near = F.less(F.abs(v), 0.125)
    small, large = F.where(near, v, 0), F.where(near, 1, v)
    series = F.full_like(v, 1)
    for k in range(14, 1, -1):
        series = F.add(F.divide(F.multiply(series, small), k), 1)
    far = F.divide(F.expm1(large), large)
    return F.where(near, series, F.where(F.equal(v, inf), inf, far))


@names_itself
def rel_entr(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """x log(x / y): 0 where x is 0 and y is not negative, inf where one of them is negative or y alone is 0."""
    return Tensor(_rel_entr(*one_dtype(as_values(x, y))))


@of_elements
def _rel_entr(p: Value, q: Value) -> Value:
    inside = F.logical_and(F.greater(p, 0), F.greater(q, 0))
    a, b = F.where(inside, p, 1), F.where(inside, q, 1)
    nothing = F.logical_and(F.equal(p, 0), F.greater_equal(q, 0))
    value = F.where(inside, F.multiply(a, F.log(F.divide(a, b))), F.where(nothing, F.full_like(p, 0), inf))
    return F.where(F.logical_and(F.equal(p, p), F.equal(q, q)), value, F.add(p, q))


# ---- Box and Cox
def _powered(logarithm: Value, power: Value) -> Value:
    """(exp(power * logarithm) - 1) / power, and the logarithm for power 0."""
    product = F.multiply(logarithm, power)
    known = F.less(F.abs(logarithm), inf)
    whole = F.multiply(F.where(known, logarithm, 1), _relative(F.where(known, product, 0)))
    zero = F.equal(power, 0)
    ends = F.where(zero, logarithm, F.divide(F.expm1(F.where(zero, 0, product)), F.where(zero, 1, power)))
    return F.where(known, whole, ends)


@of_elements
def _boxcox(v: Value, power: Value) -> Value:
    return _powered(F.log(v), power)


@of_elements
def _boxcox1p(v: Value, power: Value) -> Value:
    return _powered(F.log1p(v), power)


@names_itself
def boxcox(x: ArrayLike, lmbda: ArrayLike, /) -> Tensor:
    """(x**lmbda - 1) / lmbda, and log(x) for lmbda 0 (Box and Cox)."""
    return Tensor(_boxcox(*one_dtype(as_values(x, lmbda))))


@names_itself
def boxcox1p(x: ArrayLike, lmbda: ArrayLike, /) -> Tensor:
    """boxcox(1 + x, lmbda), accurate near 0."""
    return Tensor(_boxcox1p(*one_dtype(as_values(x, lmbda))))


def _root(v: Value, power: Value) -> Value:
    """log(1 + power * v) / power, and v for power 0."""
    product = F.multiply(v, power)
    near = F.less(F.abs(product), 1e-2)
    small = F.where(near, product, 0)
    series = F.full_like(product, 1 / 10)
    for k in range(9, 0, -1):
        series = F.subtract(1 / k, F.multiply(series, small))
    zero = F.equal(power, 0)
    far = F.divide(F.log1p(F.where(near, 1, product)), F.where(zero, 1, power))
    return F.where(near, F.multiply(v, series), F.where(zero, v, far))


@of_elements
def _inv_boxcox(v: Value, power: Value) -> Value:
    return F.exp(_root(v, power))


@of_elements
def _inv_boxcox1p(v: Value, power: Value) -> Value:
    return F.expm1(_root(v, power))


@names_itself
def inv_boxcox(y: ArrayLike, lmbda: ArrayLike, /) -> Tensor:
    """The x of which boxcox(x, lmbda) is y."""
    return Tensor(_inv_boxcox(*one_dtype(as_values(y, lmbda))))


@names_itself
def inv_boxcox1p(y: ArrayLike, lmbda: ArrayLike, /) -> Tensor:
    """The x of which boxcox1p(x, lmbda) is y."""
    return Tensor(_inv_boxcox1p(*one_dtype(as_values(y, lmbda))))
