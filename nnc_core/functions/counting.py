"""Factorials, the gamma function, and in how many ways things are chosen, with the names of scipy.special."""

from __future__ import annotations

from math import factorial as exact_factorial
from math import inf, log, nan, pi

import numpy as np

from nnc_core.base.dtype import boolean, int64, is_integer
from nnc_core.base.errors import DTypeError
from nnc_core.functions.constants import constant_beside
from nnc_core.functions.floats import one_dtype
from nnc_core.functions.reduction import as_dtype, as_inexact
from nnc_core.type import default_float, whole
from nnc_core.values.arguments import ArrayLike, as_value, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.elementwise_programs import of_elements
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["beta", "binom", "comb", "factorial", "gamma", "gammasgn", "multigammaln", "perm", "poch"]

LARGEST = 170
"""The largest number whose factorial float64 holds."""


# ---- the gamma function
@of_elements
def _sign(v: Value) -> Value:
    """Sign of gamma: below 0 it changes at every integer, where NaN says that there is none."""
    down = F.floor(v)
    odd = F.not_equal(F.multiply(F.floor(F.multiply(down, 0.5)), 2.0), down)
    below = F.where(F.equal(down, v), nan, F.where(odd, -1.0, 1.0))
    at_zero = F.where(F.signbit(v), -1.0, 1.0)
    signs = F.where(F.less(v, 0), below, F.where(F.equal(v, 0), at_zero, 1.0))
    known = F.logical_and(F.equal(v, v), F.greater(v, -inf))
    return as_dtype(F.where(known, signs, nan), v.dtype)


@names_itself
def gammasgn(x: ArrayLike, /) -> Tensor:
    """The sign of gamma(x): 1 above 0, NaN at the negative integers."""
    return Tensor(F.stop_gradient(_sign(as_inexact(as_value(x)))))


@of_elements
def _gamma(v: Value) -> Value:
    return F.multiply(F.stop_gradient(_sign(v)), F.exp(F.lgamma(v)))


@names_itself
def gamma(x: ArrayLike, /) -> Tensor:
    """The gamma function, (x - 1)! of integers: as accurate as the exponential of lgamma; NaN at the negative
    integers."""
    return Tensor(_gamma(as_inexact(as_value(x))))


@of_elements
def _beta(a: Value, b: Value) -> Value:
    """At poles, where gamma has no sign, the logarithm says what comes of it."""
    total = F.add(a, b)
    pole = F.logical_or(_is_pole(total), F.logical_or(_is_pole(a), _is_pole(b)))
    upper, other, lower = (_sign(F.where(pole, 1.0, v)) for v in (a, b, total))
    return F.multiply(F.stop_gradient(F.multiply(F.multiply(upper, other), lower)), F.exp(F.betaln(a, b)))


@names_itself
def beta(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """gamma(a) gamma(b) / gamma(a + b): infinite at the poles of a and b, 0 at those of a + b, NaN at both."""
    return Tensor(_beta(*one_dtype(as_values(a, b))))


def _rising(v: Value, k: Value) -> Value:
    """gamma(v + k) / gamma(v) of v > 0 and k >= 0: the logarithms of both are large where v is, their difference is
    not."""
    rest = F.add(F.log(F.add(v, k)), F.betaln(v, F.add(k, 1)))
    return F.exp(F.subtract(F.lgamma(F.add(k, 1)), rest))


@of_elements
def _poch(v: Value, k: Value) -> Value:
    """From the smaller of both numbers upwards where they are positive."""
    end, down = F.add(v, k), F.less(k, 0)
    lowest, steps = F.where(down, end, v), F.where(down, F.negative(k), k)
    plain = F.logical_and(F.greater(lowest, 0), F.logical_and(F.less(v, inf), F.less(end, inf)))
    up = _rising(F.where(plain, lowest, 1), F.where(plain, steps, 0))
    along = F.where(down, F.divide(1, up), up)
    a, b = F.where(plain, 1, end), F.where(plain, 1, v)
    signs = F.stop_gradient(F.multiply(_sign(a), _sign(b)))
    y = F.where(plain, along, F.multiply(signs, F.exp(F.subtract(F.lgamma(a), F.lgamma(b)))))
    return F.where(F.equal(v, inf), _of_endless(k), y)


@names_itself
def poch(x: ArrayLike, m: ArrayLike, /) -> Tensor:
    """Pochhammer's symbol: gamma(x + m) / gamma(x)."""
    return Tensor(_poch(*one_dtype(as_values(x, m))))


@of_elements
def _multigammaln(v: Value, d: int) -> Value:
    y = F.add(F.lgamma(v), d * (d - 1) / 4 * log(pi))
    for j in range(1, d):
        y = F.add(y, F.lgamma(F.subtract(v, j / 2)))
    return y


@names_itself
def multigammaln(a: ArrayLike, d: int, /) -> Tensor:
    """The logarithm of the gamma function of d dimensions, of a > (d - 1) / 2."""
    d = whole(d, "the dimension", 1)
    return Tensor(_multigammaln(as_inexact(as_value(a)), d))


# ---- counting
@by_shapes
@names_itself
def factorial(n: ArrayLike, /) -> Tensor:
    """n! of integers as floats of the default dtype, correctly rounded; 0 of negative ones."""
    v = as_value(n)
    if not is_integer(v.dtype):
        raise DTypeError(f"{v.dtype} numbers have no factorial", hint="gamma(n + 1)")
    table = np.array([0.0, *(float(exact_factorial(k)) for k in range(LARGEST + 1)), np.inf])
    with np.errstate(over="ignore"):
        values = constant_beside(v, table.astype(default_float()))
    return Tensor(F.take(values, F.add(F.clip(as_dtype(v, int64), -1, LARGEST + 1), 1), axis=0))


@of_elements
def _choices(n: Value, k: Value) -> Value:
    """gamma(n + 1) / gamma(k + 1) / gamma(n - k + 1) for 0 <= k <= n; 0 elsewhere."""
    inside = F.logical_and(F.greater_equal(k, 0), F.less_equal(k, n))
    finite = F.logical_and(inside, F.less(n, inf))
    m, j = F.where(finite, n, 0), F.where(finite, k, 0)
    return F.where(finite, F.exp(_log_of_choices(m, j)), F.where(inside, _of_endless(k), 0))


def _log_of_choices(n: Value, k: Value) -> Value:
    return F.negative(F.add(F.log(F.abs(F.add(n, 1))), F.betaln(F.add(F.subtract(n, k), 1), F.add(k, 1))))


def _of_endless(k: Value) -> Value:
    """The limit of choices of k as their number grows: it goes as n**k, of which nothing is known for an endless k."""
    beyond = F.where(F.equal(k, 0), 1.0, F.where(F.logical_and(F.greater(k, 0), F.less(k, inf)), inf, nan))
    return as_dtype(F.where(F.less(k, 0), 0.0, beyond), k.dtype)


@of_elements
def _binom(n: Value, k: Value) -> Value:
    """Outside of 0 <= k <= n by the signs of three gamma functions: 0 at the poles of the lower two, NaN at those of
    the upper one."""
    endless = F.equal(n, inf)
    plain = F.logical_or(endless, F.logical_and(F.greater_equal(k, 0), F.less_equal(k, n)))
    rest = F.subtract(n, k)
    none = F.logical_or(_is_pole(F.add(k, 1)), _is_pole(F.add(rest, 1)))
    known = F.logical_or(plain, none)
    m, j = F.where(known, 1.0, n), F.where(known, 0.5, k)
    a, b, c = (F.add(v, 1) for v in (m, j, F.subtract(m, j)))
    signs = F.stop_gradient(F.multiply(_sign(a), F.multiply(_sign(b), _sign(c))))
    beyond = F.multiply(signs, F.exp(_log_of_choices(m, j)))
    y = F.where(plain, _choices(n, k), F.where(none, F.multiply(n, 0), beyond))
    y = F.where(endless, _of_endless(k), y)
    return F.where(F.logical_and(_is_pole(F.add(n, 1)), F.equal(k, k)), nan, y)


def _is_pole(v: Value) -> Value:
    """True where the gamma function has no value: at 0 and the negative whole numbers."""
    return F.logical_and(F.less_equal(v, 0), F.equal(F.floor(v), v))


@names_itself
def binom(n: ArrayLike, k: ArrayLike, /) -> Tensor:
    """The binomial coefficient of n over k for real numbers: gamma(n + 1) / gamma(k + 1) / gamma(n - k + 1), which is 0
    where k or n - k is a negative whole number; NaN where n is one.  Of an infinite n it is what n**k becomes."""
    return Tensor(_binom(*one_dtype(as_values(n, k))))


@by_shapes
@names_itself
def comb(n: ArrayLike, k: ArrayLike, /, *, repetition: bool = False) -> Tensor:
    """In how many ways k of n things are chosen, with `repetition` those that were chosen may be chosen again: floats,
    of integers whole ones."""
    v, w = as_values(n, k)
    whole = all(is_integer(x.dtype) or x.dtype == boolean for x in (v, w))
    m, j = one_dtype([v, w])
    return Tensor(_chosen(m, j, repetition, whole))


@of_elements
def _chosen(m: Value, j: Value, repetition: bool, whole: bool) -> Value:
    if repetition:
        y = F.where(F.equal(j, 0), F.where(F.greater_equal(m, 0), 1.0, 0.0), _choices(F.add(m, F.subtract(j, 1)), j))
        y = as_dtype(y, m.dtype)
    else:
        y = _choices(m, j)
    return F.round(y) if whole else y


@by_shapes
@names_itself
def perm(n: ArrayLike, k: ArrayLike, /) -> Tensor:
    """In how many orders k of n things are laid down: n! / (n - k)!, floats, of integers whole ones; 0 unless
    0 <= k <= n."""
    v, w = as_values(n, k)
    whole = all(is_integer(x.dtype) or x.dtype == boolean for x in (v, w))
    return Tensor(_orders(*one_dtype([v, w]), whole))


@of_elements
def _orders(m: Value, j: Value, whole: bool) -> Value:
    inside = F.logical_and(F.greater_equal(j, 0), F.less_equal(j, m))
    finite = F.logical_and(inside, F.less(m, inf))
    total, taken = F.where(finite, m, 0), F.where(finite, j, 0)
    orders = _rising(F.add(F.subtract(total, taken), 1), taken)
    y = F.where(finite, orders, F.where(inside, _of_endless(j), 0))
    return F.round(y) if whole else y
