"""The gamma function's relatives: lgamma, digamma, polygamma, Hurwitz' zeta function, betaln.

polygamma and zeta are summed by Euler and Maclaurin's formula: ten terms as they stand, the others by an asymptotic
series (DLMF 25.11.28).  polygamma below 0 is reflected, with the derivatives of the cotangent as polynomials in it
(DLMF 5.15.6).  betaln takes Stirling's series apart where its terms would cancel (Didonato and Morris, ACM TOMS 18,
1992).
"""

from __future__ import annotations

from fractions import Fraction
from math import factorial, log, pi
from typing import TYPE_CHECKING, Generic

from nnc_core.base.errors import AttributeValueError
from nnc_core.codegen.scalar import Scalar
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.references import by_nest, expanded, in_wide
from nnc_core.shape import elementwise as rule
from nnc_core.type import TensorSpec

if TYPE_CHECKING:
    from nnc_core.operator import Namespace

TERMS = 10
_BERNOULLI = [Fraction(*b) for b in ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510),
                                     (43867, 798))]  # fmt: skip
"""B2, B4 ..."""
LOWEST_EXPONENT = -1.0
"""Of zeta: below it the terms are much larger than their sum."""
_STIRLING = [float(b / (2 * k * (2 * k - 1))) for k, b in enumerate(_BERNOULLI[:7], 1)]
_HALF_LOG_2_PI = log(2 * pi) / 2
HIGHEST_ORDER = 20
"""The largest order of polygamma: beyond it float32 overflows on the way."""
PLAIN_ORDER = 3
"""Up to it the factorial is a factor of its own; then powers would leave float32 where the result does not."""


def _polynomial(coefficients: list[float], x: Scalar) -> Scalar:
    total = x.constant(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def _power(x: Scalar, n: int) -> Scalar:
    """x**n for n >= 1, by repeated squaring."""
    square, result = x, None
    while n:
        if n & 1:
            result = square if result is None else result * square
        n >>= 1
        square = square * square if n else square
    assert result is not None, "n is positive"
    return result


def _tail(order: int) -> list[float]:
    """The asymptotic series' terms of even power: B2k (n + 1) ... (n + 2k - 1) / (2k)!, without the powers."""
    terms = []
    for k, b in enumerate(_BERNOULLI, 1):
        rising = Fraction(1)
        for factor in range(order + 1, order + 2 * k):
            rising *= factor
        terms.append(float(b * rising / factorial(2 * k)))
    return terms


def _derivative_sum(a: Scalar, order: int) -> Scalar:
    """order! * zeta(order + 1, a) for a > 0: the sum of order! / (a + k)**(order + 1)."""
    scale = 1.0 if order <= PLAIN_ORDER else factorial(order) ** (1 / (order + 1))
    total = a.constant(0)
    for k in reversed(range(TERMS)):  # the smallest first
        total = total + _power(scale / (a + float(k)), order + 1)
    end = a + float(TERMS)
    inverse = 1.0 / end
    series = _polynomial([0.0, *_tail(order)], inverse * inverse)
    rest = (series + inverse * 0.5) + 1 / order
    total = total + _power(scale / end, order) * (rest * scale)
    return total * float(factorial(order)) if order <= PLAIN_ORDER else total


def _cotangent_slopes(order: int) -> list[float]:
    """pi times the derivative of that order of cot(pi x), up to its sign, as a polynomial in the cotangent."""
    p = [0, 1]
    for _ in range(order):
        slope = [k * c for k, c in enumerate(p)][1:]
        p = [a + b for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return [float(c) * pi ** (order + 1) for c in p]


def _polygamma(x: Scalar, order: int) -> Scalar:
    a = abs(x)
    negative = x < 0
    total = _derivative_sum(negative.select(a + 1.0, a), order)
    rest = a - a.apply("round")
    cotangent = (rest * pi).apply("cos") / (rest * pi).apply("sin")
    pole = rest.equal(0)
    slope = pole.select(x.constant(float("inf") if order % 2 else float("nan")),
                        _polynomial(_cotangent_slopes(order), cotangent))
    return negative.select(slope - total, total if order % 2 else -total)


def _polygamma_spec(x: TensorSpec, order: int) -> TensorSpec:
    if not 1 <= order <= HIGHEST_ORDER:
        raise AttributeValueError(f"order {order} is not between 1 and {HIGHEST_ORDER}",
                                  hint="of order 0 it is digamma" if order == 0 else None)
    return rule.floating(x)


def _zeta(s: Scalar, q: Scalar) -> Scalar:
    """The sum of (q + k)**-s for s > 1 and q > 0; below s = 1 what Euler's and Maclaurin's formula makes of it, which
    loses more digits the further below."""
    total = s.constant(0)
    for k in reversed(range(TERMS)):
        total = total + (q + float(k)).apply("power", -s)
    end = q + float(TERMS)
    power = end.apply("power", -s)
    inverse = 1.0 / end
    term, rest = s * inverse, s.constant(0)
    for k, b in enumerate(_BERNOULLI, 1):
        rest = rest + term * float(b / factorial(2 * k))
        term = term * ((s + float(2 * k - 1)) * inverse) * ((s + float(2 * k)) * inverse)
    nan, infinite = s.constant(float("nan")), s.constant(float("inf"))
    total = total + power.equal(0).select(power, power * ((rest + 0.5) + end / (s - 1.0)))
    pole = q.equal(q.apply("floor")) & (s > 1)
    total = (q <= 0).select(pole.select(infinite, nan), total)
    far = (s > 1).select(s.constant(0), (s < 1).select(-infinite, s))
    total = q.equal(float("inf")).select(far, total)
    total = s.equal(1).select(infinite, (s < LOWEST_EXPONENT).select(nan, total))
    return s.equal(float("inf")).select(_limit_of_zeta(q, nan, infinite), total)


def _limit_of_zeta(q: Scalar, nan: Scalar, infinite: Scalar) -> Scalar:
    """At s = infinity: the first term alone."""
    one = q.equal(1).select(q.constant(1), (q < 1).select(infinite, q.constant(0)))
    return (q <= 0).select(nan, q.equal(q).select(one, q))


def _zeta_by_s(F: Namespace[V], y: V, s: V, q: V) -> V:
    """The same sum, each term differentiated: -log(q + k) (q + k)**-s, and the product rule in the series."""
    far = F.equal(q, float("inf"))
    minus, q = F.negative(s), F.where(far, 1.0, q)
    total = F.zeros_like(y)
    for k in reversed(range(TERMS)):
        base = F.add(q, float(k))
        total = F.subtract(total, F.multiply(F.log(base), F.power(base, minus)))
    end = F.add(q, float(TERMS))
    inverse = F.divide(1.0, end)
    above = F.divide(end, F.subtract(s, 1.0))
    term, slope = F.multiply(s, inverse), inverse
    rest, rest_slope = F.add(above, 0.5), F.negative(F.divide(above, F.subtract(s, 1.0)))
    for k, b in enumerate(_BERNOULLI, 1):
        weight = float(b / factorial(2 * k))
        rest, rest_slope = F.add(rest, F.multiply(term, weight)), F.add(rest_slope, F.multiply(slope, weight))
        for step in (2 * k - 1, 2 * k):
            factor = F.multiply(F.add(s, float(step)), inverse)
            slope = F.add(F.multiply(slope, factor), F.multiply(term, inverse))
            term = F.multiply(term, factor)
    tail = F.subtract(rest_slope, F.multiply(F.log(end), rest))
    return F.where(far, 0.0, F.add(total, F.multiply(F.power(end, minus), tail)))


def _zeta_by_q(F: Namespace[V], y: V, s: V, q: V) -> V:
    """The exponent is one more, where s = 0 takes the pole away."""
    level = F.equal(s, 0.0)
    s = F.where(level, 2.0, s)
    return F.where(level, -1.0, F.negative(F.multiply(s, F.zeta(F.add(s, 1.0), q))))


def _stirling_rest(x: Scalar) -> Scalar:
    """lgamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2 of x >= 8."""
    inverse = 1.0 / x
    return _polynomial(_STIRLING, inverse * inverse) * inverse


def _betaln(a: Scalar, b: Scalar) -> Scalar:
    small, large = a.minimum(b), a.maximum(b)
    total = small + large
    plain = (small.apply("lgamma") - total.apply("lgamma")) + large.apply("lgamma")
    rest = _stirling_rest(large) - _stirling_rest(total)
    by_large = (large - 0.5) * (small / large).apply("log1p")
    one_large = (small.apply("lgamma") + (small - by_large)) + (rest - small * total.apply("log"))
    by_small = small * (large / small).apply("log1p")
    both_rest = (rest + _stirling_rest(small)) + (_HALF_LOG_2_PI - small.apply("log") * 0.5)
    both_large = (both_rest - by_large) - by_small
    apart = (small < 8).select(one_large, both_large)
    together = (large < 8) | ((small <= 0) & (total + small < 8))
    nothing = large.equal(float("inf")) & (small > 0)
    result = nothing.select(a.constant(float("-inf")), together.select(plain, apart))
    pole = (a.equal(0) & b.equal(b)) | (b.equal(0) & a.equal(a))
    return pole.select(a.constant(float("inf")), result)


class GammaFunctions(Base[V], Generic[V]):
    """Integers become floats of the default dtype."""

    @op(infer=rule.floating, reference=expanded("lgamma"), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("lgamma"), partials=(lambda F, y, x: F.digamma(x),))
    def lgamma(self, x: V | float) -> V:
        """log(|gamma(x)|); infinite at 0, -1, -2 ..."""
        ...

    @op(infer=rule.floating, reference=expanded("digamma"), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("digamma"), partials=(lambda F, y, x: F.polygamma(x, order=1),))
    def digamma(self, x: V | float) -> V:
        """The derivative of lgamma; infinite at 0, NaN at -1, -2 ..."""
        ...

    @op(infer=_polygamma_spec, reference=by_nest("polygamma", in_wide(_polygamma)), promote=ALL_INPUTS, to_float=True,
        inplace=(0,), scalar=in_wide(_polygamma),
        partials=(lambda F, y, x, order: F.polygamma(x, order=order + 1),))
    def polygamma(self, x: V | float, *, order: int) -> V:
        """The derivative of digamma of an order from 1 to 20.  Infinite at 0; at -1, -2 ... infinite for odd orders,
        NaN for even ones, which have no one limit there."""
        ...

    @op(infer=rule.floating, reference=by_nest("zeta", in_wide(_zeta)), promote=ALL_INPUTS, to_float=True,
        inplace=(0, 1), scalar=in_wide(_zeta),
        partials=(_zeta_by_s,
                  _zeta_by_q))
    def zeta(self, s: V | float, q: V | float) -> V:
        """Hurwitz' zeta function: the sum of (q + k)**-s over k = 0, 1, 2 ..., continued down to s = -1; 0 for
        q = infinity, infinite for s = 1 and at the poles q = 0, -1, -2 ..., NaN for s < -1 and for other q <= 0."""
        ...

    @op(infer=rule.floating, reference=by_nest("betaln", in_wide(_betaln)), promote=ALL_INPUTS, to_float=True,
        commutative=True, inplace=(0, 1), scalar=in_wide(_betaln),
        partials=(lambda F, y, a, b: F.subtract(F.digamma(a), F.digamma(F.add(a, b))),
                  lambda F, y, a, b: F.subtract(F.digamma(b), F.digamma(F.add(a, b)))))
    def betaln(self, a: V | float, b: V | float) -> V:
        """log(|gamma(a) gamma(b) / gamma(a + b)|), accurate for large a and b too; infinite where one of them is 0."""
        ...
