"""Exponentials and logarithms: other bases, forms that keep their digits, sums of exponentials, entropies."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.codegen.numpy_scalars import expm1, log1p
from nnc_core.codegen.scalar import Scalar
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.references import expanded, in_wide, widened
from nnc_core.shape import elementwise as rule

if TYPE_CHECKING:
    from nnc_core.operator import Namespace

_LN2, _LN10 = log(2), log(10)


def _log_add_exp(a: Scalar, b: Scalar) -> Scalar:
    """The larger one plus a small term; equal infinities have no difference."""
    shrunk = (-abs(a - b)).apply("exp").apply("log1p")
    return a.equal(b).select(a + _LN2, a.maximum(b) + shrunk)


def _log_add_exp2(a: Scalar, b: Scalar) -> Scalar:
    shrunk = (-abs(a - b)).apply("exp2").apply("log1p") * (1 / _LN2)
    return a.equal(b).select(a + 1.0, a.maximum(b) + shrunk)


def _share_of(F: Namespace[V], a: V, b: V, scale: float) -> V:
    """e**a / (e**a + e**b), for equal infinities too."""
    return F.where(F.equal(a, b), 0.5, F.sigmoid(F.multiply(F.subtract(a, b), scale)))


def _zero_times(logarithm: str) -> Any:
    """x times the logarithm of y, and 0 where x is 0, unless y is NaN."""

    def scalar(x: Scalar, y: Scalar) -> Scalar:
        nothing = x.equal(0) & y.equal(y)
        return nothing.select(x.constant(0), x * y.apply(logarithm))

    return scalar


def _numpy_zero_times(logarithm: Any) -> Any:
    return widened(lambda x, y: np.where((x == 0) & (y == y), x.dtype.type(0), x * logarithm(y)))


def _logarithm_or_nothing(F: Namespace[V], logarithm: Any, x: V, y: V, end: float) -> V:
    """The derivative of x * logarithm(y) by x; where x is 0 and the logarithm is infinite or no number, 0."""
    outside = F.logical_and(F.equal(x, 0), F.less_equal(y, end))
    return F.where(outside, 0, logarithm(F.where(outside, end + 1, y)))


def _entropy(x: Scalar) -> Scalar:
    inside = x > 0
    outside = x.equal(0).select(x.constant(0), (x < 0).select(x.constant(-np.inf), x))
    return inside.select(-(x * x.apply("log")), outside)


def _numpy_entropy(x: Any) -> Any:
    value = -(x * np.log(np.where(x > 0, x, x.dtype.type(1))))
    return np.where(x > 0, value, np.where(x == 0, 0, np.where(x < 0, -np.inf, x)).astype(x.dtype))


class Exponentials(Base[V], Generic[V]):
    """Integers become floats of the default dtype."""

    @op(infer=rule.inexact, reference=widened(np.exp2), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("exp2"), partials=(lambda F, y, x: F.multiply(y, _LN2),))
    def exp2(self, x: V | float) -> V:
        """2**x."""
        ...

    @op(infer=rule.inexact, reference=widened(expm1), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("expm1"), partials=(lambda F, y, x: F.exp(x),))
    def expm1(self, x: V | float) -> V:
        """exp(x) - 1, accurate at small x; of complex infinities as the Array API has it."""
        ...

    @op(infer=rule.inexact, reference=widened(log1p), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("log1p"), partials=(lambda F, y, x: F.divide(1.0, F.add(x, 1.0)),))
    def log1p(self, x: V | float) -> V:
        """log(1 + x), accurate at small x."""
        ...

    @op(infer=rule.inexact, reference=widened(np.log2), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("log2"), partials=(lambda F, y, x: F.divide(1 / _LN2, x),))
    def log2(self, x: V | float) -> V:
        """Logarithm to base 2."""
        ...

    @op(infer=rule.inexact, reference=widened(np.log10), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("log10"), partials=(lambda F, y, x: F.divide(1 / _LN10, x),))
    def log10(self, x: V | float) -> V:
        """Logarithm to base 10."""
        ...

    @op(infer=rule.floating, reference=widened(np.logaddexp), promote=ALL_INPUTS, to_float=True, commutative=True,
        inplace=(0, 1), scalar=in_wide(_log_add_exp),
        partials=(lambda F, y, a, b: _share_of(F, a, b, 1.0), lambda F, y, a, b: _share_of(F, b, a, 1.0)))
    def logaddexp(self, a: V | float, b: V | float) -> V:
        """log(exp(a) + exp(b)), without overflow."""
        ...

    @op(infer=rule.floating, reference=widened(np.logaddexp2), promote=ALL_INPUTS, to_float=True, commutative=True,
        inplace=(0, 1), scalar=in_wide(_log_add_exp2),
        partials=(lambda F, y, a, b: _share_of(F, a, b, _LN2), lambda F, y, a, b: _share_of(F, b, a, _LN2)))
    def logaddexp2(self, a: V | float, b: V | float) -> V:
        """log2(2**a + 2**b), without overflow."""
        ...

    @op(infer=rule.floating, reference=_numpy_zero_times(np.log), promote=ALL_INPUTS, to_float=True, inplace=(0, 1),
        scalar=in_wide(_zero_times("log")),
        partials=(lambda F, y, a, b: _logarithm_or_nothing(F, F.log, a, b, 0),
                  lambda F, y, a, b: F.where(F.equal(a, 0), 0, F.divide(a, b))))
    def xlogy(self, a: V | float, b: V | float) -> V:
        """a * log(b), and 0 where a is 0; there its derivative by b is 0, and that by a 0 if b <= 0."""
        ...

    @op(infer=rule.floating, reference=_numpy_zero_times(np.log1p), promote=ALL_INPUTS, to_float=True, inplace=(0, 1),
        scalar=in_wide(_zero_times("log1p")),
        partials=(lambda F, y, a, b: _logarithm_or_nothing(F, F.log1p, a, b, -1),
                  lambda F, y, a, b: F.where(F.equal(a, 0), 0, F.divide(a, F.add(b, 1.0)))))
    def xlog1py(self, a: V | float, b: V | float) -> V:
        """a * log(1 + b), and 0 where a is 0; there its derivative by b is 0, and that by a 0 if b <= -1."""
        ...

    @op(infer=rule.floating, reference=widened(_numpy_entropy), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=in_wide(_entropy), partials=(lambda F, y, x: F.negative(F.add(F.log(x), 1.0)),))
    def entr(self, x: V | float) -> V:
        """-x * log(x): 0 at 0, -inf below."""
        ...

    @op(infer=rule.floating, reference=expanded("logit"), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("logit"),
        partials=(lambda F, y, x: F.divide(1.0, F.multiply(x, F.subtract(1.0, x))),))
    def logit(self, x: V | float) -> V:
        """log(x / (1 - x)), the inverse of sigmoid, accurate at 1/2."""
        ...
