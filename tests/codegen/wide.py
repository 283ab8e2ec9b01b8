"""Special functions in a wider format than the one under test: float64 for float32, extended precision for float64.

By other means than the expansions: series of positive terms, continued fractions, Stirling's series after steps of the
recurrence.  Good to about 2**-60 in extended precision.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import factorial
from typing import Any

import numpy as np
import scipy.special

Values = np.ndarray[Any, Any]

_EULER = "0.57721566490153286060651209008240243104"
_BERNOULLI = [Fraction(*b) for b in (
    (1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798), (-174611, 330),
    (854513, 138), (-236364091, 2730), (8553103, 6), (-23749461029, 870), (8615841276005, 14322))]  # fmt: skip


def _number(value: Fraction | str, like: Values) -> Any:
    if isinstance(value, str):
        return like.dtype.type(value)
    return like.dtype.type(value.numerator) / like.dtype.type(value.denominator)


def _pi(like: Values) -> Any:
    return 4 * np.arctan(like.dtype.type(1))


def _by_part(x: Values, *parts: tuple[Values, Callable[[Values], Values]]) -> Values:
    """Each part of x by a function of its own; NaN elsewhere."""
    result = np.full_like(x, np.nan)
    for chosen, function in parts:
        if chosen.any():
            result[chosen] = function(x[chosen])
    return result


def exp_of_square(x: Values, factor: float) -> Values:
    """e**(factor * x**2), the square in two parts; far out it is 0 or infinite."""
    x = np.clip(x, -200, 200)
    head = x.astype(np.float32).astype(x.dtype)
    return np.exp(head * head * x.dtype.type(factor)) * np.exp((x - head) * (x + head) * x.dtype.type(factor))


def erf(x: Values) -> Values:
    a = np.abs(x)
    near = _by_part(a, (a < 2, _erf_series), (a >= 2, lambda v: 1 - erfc(v)))
    return np.copysign(near, x)


def _erf_series(a: Values) -> Values:
    """2 / sqrt(pi) e**-x**2 times the sum of 2**n x**(2 n + 1) / (1 * 3 * ... * (2 n + 1))."""
    term, total = a.copy(), a.copy()
    for n in range(1, 80):
        term = term * (2 * a * a) / (2 * n + 1)
        total = total + term
    return 2 / np.sqrt(_pi(a)) * exp_of_square(a, -1) * total


def erfc(x: Values) -> Values:
    return _by_part(x, (x < 1, lambda v: 1 - erf(v)), (x >= 1, lambda v: exp_of_square(v, -1) * _fraction(v)))


def erfcx(x: Values) -> Values:
    return _by_part(x, (x < 1, lambda v: exp_of_square(v, 1) * (1 - erf(v))), (x >= 1, _fraction))


def _fraction(x: Values) -> Values:
    """e**x**2 erfc(x) by its continued fraction, from its end."""
    below = np.zeros_like(x)
    for n in range(400, 0, -1):
        below = (n / x.dtype.type(2)) / (x + below)
    return 1 / np.sqrt(_pi(x)) / (x + below)


def ndtr(x: Values) -> Values:
    half = np.sqrt(x.dtype.type(0.5))
    return _by_part(x, (x > -1, lambda v: erfc(-v * half) / 2),
                    (x <= -1, lambda v: exp_of_square(v, -0.5) * erfcx(-v * half) / 2))


def log_ndtr(x: Values) -> Values:
    half = np.sqrt(x.dtype.type(0.5))
    return _by_part(x, (x > 0, lambda v: np.log1p(-erfc(v * half) / 2)),
                    (x <= 0, lambda v: np.log(erfcx(-v * half) / 2) - v * v / 2))


def erfinv(x: Values) -> Values:
    """SciPy's, and one of Newton's steps; near 1 by the complement."""
    a = np.abs(x)
    y = scipy.special.erfinv(a.astype(np.float64)).astype(x.dtype)
    error = np.where(y < 1, erf(y) - a, (1 - a) - erfc(y))
    root = y - error * np.sqrt(_pi(x)) / 2 * exp_of_square(y, 1)
    return np.copysign(np.where(np.isfinite(y), root, y), x)


def dawsn(x: Values) -> Values:
    a = np.abs(x)
    return np.copysign(_by_part(a, (a < 8, _dawson_series), (a >= 8, _dawson_asymptote)), x)


def _dawson_series(a: Values) -> Values:
    """e**-x**2 times the sum of x**(2 n + 1) / (n! (2 n + 1))."""
    term, total = a.copy(), a.copy()
    for n in range(1, 250):
        term = term * (a * a) / n
        total = total + term / (2 * n + 1)
    return exp_of_square(a, -1) * total


def _dawson_asymptote(a: Values) -> Values:
    term = total = 1 / (2 * a)
    for n in range(1, 60):
        term = term * (2 * n - 1) / (2 * a * a)
        total = total + np.where(np.abs(term) > 1e-25, term, 0)
        term = np.where(2 * n - 1 > 2 * a * a, 0, term)
    return total


def lgamma(x: Values) -> Values:
    return _by_part(x, ((x < 0) & (x > -np.inf), _log_gamma_reflected), (x >= 0, _log_gamma), (x == -np.inf, np.abs))


def _log_gamma_reflected(x: Values) -> Values:
    a = -x
    return np.log(_pi(x) / np.abs(a * np.sin(_pi(x) * (a - np.rint(a))))) - _log_gamma(a)


def _log_gamma(x: Values) -> Values:
    return _by_part(x, (np.abs(x - 2) < 0.5, lambda v: _beside_two(v - 2)),
                    (np.abs(x - 1) <= 0.5, lambda v: _beside_two(v - 1) - np.log1p(v - 1)),
                    (((x < 0.5) | (x >= 2.5)) & (x < np.inf), _log_gamma_far), (x == np.inf, np.copy))


def _beside_two(d: Values) -> Values:
    """log(gamma(2 + d)) = (1 - Euler's constant) d + the sum of (zeta(k) - 1) (-d)**k / k."""
    total = np.zeros_like(d)
    for k in range(60, 1, -1):
        total = (total + _zeta_beyond_one(k, d) / k) * -d
    return (1 - _number(_EULER, d)) * d - total * d


def _zeta_beyond_one(k: int, like: Values) -> Any:
    return _number(_zeta_fraction(k), like)


@cache
def _zeta_fraction(k: int) -> Fraction:
    """zeta(k) - 1 by Euler and Maclaurin, to 2**-120."""
    total = sum(Fraction(1, n**k) for n in range(2, 40)) + Fraction(1, (k - 1) * 40 ** (k - 1)) + Fraction(1, 2 * 40**k)
    rising = Fraction(k)
    for j, b in enumerate(_BERNOULLI[:8], 1):
        total += b * rising / factorial(2 * j) / 40 ** (k + 2 * j - 1)
        rising *= (k + 2 * j - 1) * (k + 2 * j)
    return Fraction(round(total * 2**120), 2**120)


def _log_gamma_far(x: Values) -> Values:
    product, large = np.ones_like(x), x.copy()
    for _ in range(12):
        small = large < 12
        product, large = np.where(small, product * large, product), np.where(small, large + 1, large)
    series = np.zeros_like(x)
    for k in range(len(_BERNOULLI), 0, -1):
        series = (series + _number(_BERNOULLI[k - 1] / (2 * k * (2 * k - 1)), x)) / (large * large)
    stirling = (large - 0.5) * np.log(large) - large + np.log(2 * _pi(x)) / 2 + series * large
    return stirling - np.log(product)


def digamma(x: Values) -> Values:
    return _by_part(x, (x < 0, _digamma_reflected), (x >= 0, _digamma))


def _digamma_reflected(x: Values) -> Values:
    rest = x - np.rint(x)
    turn = np.where(rest == 0, np.nan, np.tan(_pi(x) * rest))
    return _digamma(-x) - 1 / x - _pi(x) / turn


def _digamma(x: Values) -> Values:
    steps, large = np.zeros_like(x), x.copy()
    for _ in range(12):
        small = large < 12
        steps, large = np.where(small, steps + 1 / large, steps), np.where(small, large + 1, large)
    series = np.zeros_like(x)
    for k in range(len(_BERNOULLI), 0, -1):
        series = (series + _number(_BERNOULLI[k - 1] / (2 * k), x)) / (large * large)
    return np.log(large) - 1 / (2 * large) - series - steps


def bessel(order: int, scaled: bool) -> Callable[[Values], Values]:
    """I0 or I1, times e**-|x| or not."""

    def series(a: Values) -> Values:
        term = np.ones_like(a) if order == 0 else a / 2
        total = term.copy()
        for n in range(1, 120):
            term = term * (a * a / 4) / (n * (n + order))
            total = total + term
        return total * np.exp(-a) if scaled else total

    def asymptote(a: Values) -> Values:
        term = total = np.ones_like(a)
        for n in range(1, 40):
            term = -term * (4 * order - (2 * n - 1) ** 2) / (n * 8 * a)
            total = total + term
        grown = total / np.sqrt(2 * _pi(a) * a)
        return grown if scaled else grown * np.exp(a)

    def function(x: Values) -> Values:
        a = np.abs(x)
        result = _by_part(a, (a < 30, series), ((a >= 30) & (a < np.inf), asymptote),
                          (a == np.inf, lambda v: 1 / v if scaled else v))
        return np.copysign(result, x) if order else result

    return function
