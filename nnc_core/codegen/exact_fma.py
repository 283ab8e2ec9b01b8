"""Fused multiply-add in NumPy, which has none: a * b + c rounded once."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from nnc_core.base.dtype import float32

Values = np.ndarray[Any, Any]

_SPLITTER = 2.0**27 + 1.0
_ONE = np.uint64(1)
_HALF, _BELOW = np.uint64(1 << 28), np.uint64((1 << 29) - 1)
"""The bits of a float64 below those of a float32, in the middle between two of them; all of those bits."""
_SMALLEST_NORMAL = np.uint64((1023 - 126) << 53)
"""The bits of the smallest normal float32 as a float64, without a sign."""
_SAFE = 2.0**400, 2.0**-400  # magnitudes whose products and their errors neither overflow nor underflow


def fma(a: Values, b: Values, c: Values) -> Values:
    """a * b + c for equal dtypes, float32 or float64."""
    if a.dtype != float32:
        return _fma_float64(*np.broadcast_arrays(a, b, c))
    product = np.multiply(a, b, dtype=np.float64)  # exact
    total = np.asarray(np.add(product, c, dtype=np.float64))
    rounded: Values = np.asarray(total.astype(float32))
    wrong = rounding_twice_matters(total)
    if wrong.any():
        rounded[wrong] = add_rounded_once(*[np.broadcast_to(x, total.shape)[wrong] for x in (product, c)])
    return rounded


def rounding_twice_matters(total: Values) -> Values:
    """Tell where float64 sums may round to another float32 than the exact sums: in the middle between two float32,
    and below the normal ones, where the middle lies elsewhere."""
    bits = total.view(np.uint64)
    subnormal = (bits << _ONE) - _ONE < _SMALLEST_NORMAL
    found: Values = ((bits & _BELOW) == _HALF) | subnormal
    return found


def add_rounded_once(a: Values, b: Values) -> Values:
    """The sum of values of which one at least is float64, rounded once, to float32."""
    return _round_to_odd(*two_sum(a, b)).astype(float32)


def _fma_float64(a: Values, b: Values, c: Values) -> Values:
    """Boldo and Melquiond: the two low parts are added with rounding to odd.  Extremes go by fractions."""
    high, low = two_product(a, b)
    low_high, low_low = two_sum(c, low)
    total, error = two_sum(high, low_high)
    result = total + _round_to_odd(*two_sum(low_low, error))
    product = a * b
    zero_factor = (a == 0) | (b == 0)
    result = np.where(zero_factor, product + c, np.where(c == 0, product, result))
    risky = ~(zero_factor | (c == 0) | is_moderate(a) & is_moderate(b) & is_moderate(c))
    result[risky] = [_exact(*terms) for terms in zip(a[risky], b[risky], c[risky], strict=True)]
    return result


def two_sum(a: Values, b: Values) -> tuple[Values, Values]:
    """The rounded sum and its error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Values, b: Values) -> tuple[Values, Values]:
    """The rounded product and its error (Dekker and Veltkamp)."""
    product = a * b
    (ah, al), (bh, bl) = _split(a), _split(b)
    return product, al * bl - (((product - ah * bh) - al * bh) - ah * bl)


def _split(a: Values) -> tuple[Values, Values]:
    scaled = a * _SPLITTER
    high = scaled - (scaled - a)
    return high, a - high


def _round_to_odd(total: Values, error: Values) -> Values:
    """total + error with an odd last bit where inexact, so that a later rounding to fewer bits is right."""
    bits = np.array(total, np.float64, copy=True, order="C").view(np.int64)
    outward = (error > 0) == (total > 0)
    inexact = np.isfinite(error) & (error != 0) & (bits & 1 == 0)
    return (bits + np.where(inexact, np.where(outward, 1, -1), 0)).view(np.float64)


def is_moderate(a: Values) -> Values:
    """Tell where products and their errors neither overflow nor underflow."""
    magnitude = np.abs(a)
    return (magnitude < _SAFE[0]) & (magnitude > _SAFE[1])


def _exact(a: float, b: float, c: float) -> float:
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        return float(c) if np.isfinite(a) and np.isfinite(b) else float(a * b + c)
    total = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if total == 0:
        return float(a * b + c) if a * b == 0 else 0.0
    try:
        return float(total)
    except OverflowError:
        return float("inf") if total > 0 else -float("inf")
