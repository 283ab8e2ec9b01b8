"""Distributions that are sampled by rejection or by counting.

They run on the host, whatever the device: a comparison that goes the other way for a difference in the last bit would
change a number altogether, and numbers are the same on every device and in every mode.
"""

from __future__ import annotations

from typing import Any, Generic

from nnc_core.base.dtype import DType
from nnc_core.base.errors import GradientError
from nnc_core.operator import sampling
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.flops import per_output
from nnc_core.shape import random as rule
from nnc_core.type import DimLike


def _no_slope(*arguments: Any) -> Any:
    raise GradientError("a gamma variable has no derivative by its concentration here", operator="random_gamma",
                        hint="stop_gradient the concentration; derivatives by the scale are right")


class Distributions(Base[V], Generic[V]):
    """A number for each element of the parameters, which are float64 inside."""

    @op(infer=rule.gamma, reference=sampling.gamma, random=True, host=True, exact=True, vjp=_no_slope, jvp=_no_slope,
        flops=per_output(100))
    def random_gamma(self, key: V, concentration: V, *, log: bool) -> V:
        """Gamma distributed with scale 1, or the logarithm, which does not underflow; NaN for a negative concentration.

        It is sampled without a derivative: asking for one is an error."""
        ...

    @op(infer=rule.counts, reference=sampling.poisson, random=True, host=True, exact=True, differentiable=False,
        flops=per_output(100))
    def random_poisson(self, key: V, rate: V, *, dtype: DType) -> V:
        """Draw the number of events that happen where `rate` are expected; 0 where that is no positive number."""
        ...

    @op(infer=rule.binomial, reference=sampling.binomial, random=True, host=True, exact=True, differentiable=False,
        flops=per_output(100))
    def random_binomial(self, key: V, count: V, probability: V, *, dtype: DType) -> V:
        """Draw how many of `count` trials succeed; probabilities below 0 count as 0, those above 1 as 1."""
        ...

    @op(infer=rule.multinomial, reference=sampling.multinomial, random=True, host=True, exact=True,
        differentiable=False, flops=per_output(100))
    def random_multinomial(self, key: V, count: V, probabilities: V, *, dtype: DType) -> V:
        """Draw how many of `count` trials give each category (last axis); probabilities are divided by their sum."""
        ...

    @op(infer=rule.distinct, reference=sampling.distinct_integers, random=True, host=True, exact=True,
        differentiable=False, flops=per_output(10))
    def distinct_integers(self, key: V, *, size: DimLike, below: int) -> V:
        """int64[size]: different integers from 0 up to, but not including, `below`, in random order."""
        ...

    @op(infer=rule.choice, reference=sampling.weighted_choice, random=True, host=True, exact=True,
        differentiable=False, flops=per_output(10))
    def random_choice(self, key: V, weights: V, *, size: DimLike, replace: bool) -> V:
        """int64[size] positions, chosen with probabilities as the weights say; without `replace` none twice."""
        ...
