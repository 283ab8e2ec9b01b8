"""Riemann's zeta function of all real numbers: far below 0 by that of 1 - s.

Its functional equation, zeta(s) = 2 (2 pi)**-x sin(pi s / 2) gamma(x) zeta(x) of x = 1 - s, is taken with gamma(x) as a
product of gamma(x / 2) and gamma((x + 1) / 2), which are finite for as long as the result is.
"""

from __future__ import annotations

from math import log, pi

from nnc_core.base.dtype import accumulator
from nnc_core.functions.reduction import as_dtype
from nnc_core.values.dispatch import F
from nnc_core.values.elementwise_programs import of_elements
from nnc_core.values.value import Value

REFLECTED = -0.25
"""Below it the equation is more accurate than the sum is; above, 1 - s is too near to the pole."""
LARGEST = {4: 70.0, 8: 340.0}
"""By the bytes of a number, an x from which on the result is infinite, and the parts are not yet."""


@of_elements
def riemann(v: Value) -> Value:
    s = as_dtype(v, accumulator(v.dtype))
    below = F.less(s, REFLECTED)
    x = F.where(below, F.subtract(1.0, s), s)
    half = F.multiply(F.minimum(F.where(below, x, 2.0), LARGEST[s.dtype.itemsize]), 0.5)
    upper, lower = (F.exp(F.subtract(F.lgamma(a), F.multiply(half, log(pi)))) for a in (half, F.add(half, 0.5)))
    factor = F.multiply(F.multiply(upper, F.multiply(_sine(s), pi**-0.5)), lower)
    whole = F.zeta(x, 1.0)
    return as_dtype(F.where(below, F.multiply(factor, whole), whole), v.dtype)


def _sine(s: Value) -> Value:
    """sin(pi s / 2), which is 0 at even numbers."""
    turn = F.subtract(s, F.multiply(F.round(F.multiply(s, 0.25)), 4.0))
    back = F.where(F.greater(turn, 1.0), F.subtract(2.0, turn), F.subtract(-2.0, turn))
    near = F.where(F.greater(F.abs(turn), 1.0), back, turn)
    return F.sin(F.multiply(near, pi / 2))
