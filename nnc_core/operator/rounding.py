"""Rounding to integers, remainders, and choices between numbers that NumPy has besides maximum and minimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.base.dtype import is_float, is_inexact
from nnc_core.codegen.pairs import Pair
from nnc_core.codegen.scalar import Scalar
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.references import widened
from nnc_core.shape import elementwise as rule

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def _of_floats(f: Callable[..., Any]) -> Callable[..., Any]:
    """f, and integers as they are."""
    return widened(lambda x: f(x) if is_inexact(x.dtype) else x)


def _preferred(relation: str) -> Callable[[Scalar, Scalar], Scalar]:
    """a where it stands in that relation to b, or b is NaN; else b."""

    def scalar(a: Scalar, b: Scalar) -> Scalar:
        better = a.apply(relation, b)
        return ((better | b.not_equal(b)) if is_float(b.dtype) else better).select(a, b)

    return scalar


def _share(F: Namespace[V], a: V, b: V, relation: Callable[[V, V], V]) -> V:
    """The derivative of the preferred of a and b by a; equals have half each, beside NaN the other has all."""
    better = relation(a, b)
    if is_float(b.dtype):
        better = F.logical_or(better, F.logical_and(F.not_equal(b, b), F.equal(a, a)))
    return F.where(F.equal(a, b), 0.5, F.cast(better, dtype=a.dtype))


def _step(x: Scalar, at_zero: Scalar) -> Scalar:
    side = (x > 0).select(x.constant(1), (x < 0).select(x.constant(0), x))
    return x.equal(0).select(at_zero, side)


def _nearest(x: Any) -> Any:
    return Pair(_nearest(x.re), _nearest(x.im)) if isinstance(x, Pair) else x.apply("round")


def _quotient(F: Namespace[V], y: V, a: V, b: V) -> V:
    """a / b rounded towards zero, from the remainder y, which is exact."""
    return F.round(F.divide(F.subtract(a, y), b))


class Rounding(Base[V], Generic[V]):
    """Integers are left as they are."""

    @op(infer=rule.real_arithmetic, reference=_of_floats(np.floor), promote=ALL_INPUTS, inplace=(0,), exact=True,
        differentiable=False, scalar=lambda x: x.apply("floor"))
    def floor(self, x: V | float) -> V:
        """The largest whole number that is not above x."""
        ...

    @op(infer=rule.real_arithmetic, reference=_of_floats(np.ceil), promote=ALL_INPUTS, inplace=(0,), exact=True,
        differentiable=False, scalar=lambda x: x.apply("ceil"))
    def ceil(self, x: V | float) -> V:
        """The smallest whole number that is not below x."""
        ...

    @op(infer=rule.real_arithmetic, reference=_of_floats(np.trunc), promote=ALL_INPUTS, inplace=(0,), exact=True,
        differentiable=False, scalar=lambda x: x.apply("trunc"))
    def trunc(self, x: V | float) -> V:
        """The whole part of x: rounded towards zero."""
        ...

    @op(infer=rule.arithmetic, reference=_of_floats(np.rint), promote=ALL_INPUTS, inplace=(0,), exact=True,
        differentiable=False, scalar=_nearest)
    def round(self, x: V | float) -> V:
        """Rounded to the nearest integer, halves to even; of complex numbers both parts."""
        ...

    @op(infer=rule.real_arithmetic, reference=widened(np.fmod), promote=ALL_INPUTS, inplace=(0, 1), exact=True,
        scalar=lambda a, b: a.apply("fmod", b),
        partials=(1, lambda F, y, a, b: F.negative(_quotient(F, y, a, b))))
    def fmod(self, a: V | float, b: V | float) -> V:
        """The remainder of the division rounded towards zero, with the sign of a."""
        ...

    @op(infer=rule.real_arithmetic, reference=widened(np.fmax), promote=ALL_INPUTS, commutative=True, inplace=(0, 1),
        exact=True, scalar=_preferred("greater_equal"),
        partials=(lambda F, y, a, b: _share(F, a, b, F.greater), lambda F, y, a, b: _share(F, b, a, F.greater)))
    def fmax(self, a: V | float, b: V | float) -> V:
        """The larger; NaN loses.  Where both are equal each has half of the gradient."""
        ...

    @op(infer=rule.real_arithmetic, reference=widened(np.fmin), promote=ALL_INPUTS, commutative=True, inplace=(0, 1),
        exact=True, scalar=_preferred("less_equal"),
        partials=(lambda F, y, a, b: _share(F, a, b, F.less), lambda F, y, a, b: _share(F, b, a, F.less)))
    def fmin(self, a: V | float, b: V | float) -> V:
        """The smaller; NaN loses.  Where both are equal each has half of the gradient."""
        ...

    @op(infer=rule.floating, reference=widened(np.heaviside), promote=ALL_INPUTS, to_float=True, inplace=(0, 1),
        exact=True, scalar=_step, partials=(None, lambda F, y, a, b: F.cast(F.equal(a, 0), dtype=a.dtype)))
    def heaviside(self, a: V | float, b: V | float) -> V:
        """0 where a < 0, b where a is 0, 1 where a > 0."""
        ...
