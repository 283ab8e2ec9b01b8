"""Roots: cbrt, rsqrt, hypot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.references import in_wide, widened
from nnc_core.shape import elementwise as rule

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def _cosine(F: Namespace[V], y: V, side: Any) -> V:
    """side / y, the derivative of the hypotenuse y; 0 where there is no triangle."""
    nothing = F.equal(y, 0)
    return F.where(nothing, 0, F.divide(side, F.where(nothing, 1, y)))


class Roots(Base[V], Generic[V]):
    """Integers become floats of the default dtype."""

    @op(infer=rule.floating, reference=widened(np.cbrt), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("cbrt"), partials=(lambda F, y, x: F.divide(1 / 3, F.multiply(y, y)),))
    def cbrt(self, x: V | float) -> V:
        """The real cube root, with the sign of x."""
        ...

    @op(infer=rule.floating, reference=widened(lambda x: x.dtype.type(1) / np.sqrt(x)), promote=ALL_INPUTS,
        to_float=True, inplace=(0,), scalar=in_wide(lambda x: 1.0 / x.apply("sqrt")),
        partials=(lambda F, y, x: F.multiply(F.multiply(y, -0.5), F.multiply(y, y)),))
    def rsqrt(self, x: V | float) -> V:
        """1 / sqrt(x)."""
        ...

    @op(infer=rule.floating, reference=widened(np.hypot), promote=ALL_INPUTS, to_float=True, commutative=True,
        inplace=(0, 1), scalar=lambda a, b: a.apply("hypot", b),
        partials=(lambda F, y, a, b: _cosine(F, y, a), lambda F, y, a, b: _cosine(F, y, b)))
    def hypot(self, a: V | float, b: V | float) -> V:
        """sqrt(a**2 + b**2), without overflow in between; its derivative at the origin is 0."""
        ...
