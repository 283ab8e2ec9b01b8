"""Special functions: the error function and its relatives, and Bessel's.

The kernels on all devices and the references here run the same scalar instructions (nnc_core/codegen); what holds them
to the truth are tests with more digits, and SciPy.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import TYPE_CHECKING, Generic

from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.references import expanded
from nnc_core.shape import elementwise as rule

if TYPE_CHECKING:
    from nnc_core.operator import Namespace

_TWO_BY_ROOT_PI = 2 / sqrt(pi)


def _bell(F: Namespace[V], x: V, height: float, width: float) -> V:
    """height * exp(-width * x**2)."""
    return F.multiply(F.exp(F.multiply(F.multiply(x, x), -width)), height)


def _over(F: Namespace[V], y: V, x: V, at_zero: float) -> V:
    """y / x, and its limit at x = 0."""
    zero = F.equal(x, 0)
    return F.where(zero, at_zero, F.divide(y, F.where(zero, 1, x)))


class ErrorFunctions(Base[V], Generic[V]):
    """Integrals of the bell curve; integers become floats of the default dtype."""

    @op(infer=rule.floating, reference=expanded("erf"), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("erf"), partials=(lambda F, y, x: _bell(F, x, _TWO_BY_ROOT_PI, 1.0),))
    def erf(self, x: V | float) -> V:
        """The error function: 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x."""
        ...

    @op(infer=rule.floating, reference=expanded("erfc"), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("erfc"), partials=(lambda F, y, x: _bell(F, x, -_TWO_BY_ROOT_PI, 1.0),))
    def erfc(self, x: V | float) -> V:
        """1 - erf(x), accurate in the tail."""
        ...

    @op(infer=rule.floating, reference=expanded("erfcx"), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("erfcx"),
        partials=(lambda F, y, x: F.subtract(F.multiply(F.multiply(x, 2.0), y), _TWO_BY_ROOT_PI),))
    def erfcx(self, x: V | float) -> V:
        """exp(x**2) * erfc(x), which falls as 1 / x."""
        ...

    @op(infer=rule.floating, reference=expanded("erfinv"), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("erfinv"), partials=(lambda F, y, x: _bell(F, y, 1 / _TWO_BY_ROOT_PI, -1.0),))
    def erfinv(self, x: V | float) -> V:
        """The inverse of erf: infinite at 1 and -1, NaN beyond."""
        ...

    @op(infer=rule.floating, reference=expanded("ndtr"), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("ndtr"), partials=(lambda F, y, x: _bell(F, x, 1 / sqrt(2 * pi), 0.5),))
    def ndtr(self, x: V | float) -> V:
        """The standard normal distribution: the integral of its density up to x."""
        ...

    @op(infer=rule.floating, reference=expanded("log_ndtr"), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("log_ndtr"),
        partials=(lambda F, y, x: F.divide(sqrt(2 / pi), F.erfcx(F.multiply(x, -sqrt(0.5)))),))
    def log_ndtr(self, x: V | float) -> V:
        """log(ndtr(x)), finite in the left tail."""
        ...

    @op(infer=rule.floating, reference=expanded("dawsn"), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("dawsn"),
        partials=(lambda F, y, x: F.subtract(1.0, F.multiply(F.multiply(x, 2.0), y)),))
    def dawsn(self, x: V | float) -> V:
        """Dawson's integral: exp(-x**2) times the integral of exp(t**2) from 0 to x."""
        ...


class BesselFunctions(Base[V], Generic[V]):
    """Modified Bessel functions of the first kind; integers become floats of the default dtype."""

    @op(infer=rule.floating, reference=expanded("i0"), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("i0"), partials=(lambda F, y, x: F.i1(x),))
    def i0(self, x: V | float) -> V:
        """The modified Bessel function of order 0."""
        ...

    @op(infer=rule.floating, reference=expanded("i1"), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("i1"), partials=(lambda F, y, x: F.subtract(F.i0(x), _over(F, y, x, 0.5)),))
    def i1(self, x: V | float) -> V:
        """The modified Bessel function of order 1."""
        ...

    @op(infer=rule.floating, reference=expanded("i0e"), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("i0e"),
        partials=(lambda F, y, x: F.subtract(F.i1e(x), F.multiply(F.sign(x), y)),))
    def i0e(self, x: V | float) -> V:
        """exp(-|x|) * i0(x)."""
        ...

    @op(infer=rule.floating, reference=expanded("i1e"), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("i1e"),
        partials=(lambda F, y, x: F.subtract(F.subtract(F.i0e(x), _over(F, y, x, 0.5)), F.multiply(F.sign(x), y)),))
    def i1e(self, x: V | float) -> V:
        """exp(-|x|) * i1(x)."""
        ...
