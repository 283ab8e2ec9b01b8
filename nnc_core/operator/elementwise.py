"""Elementwise operators: arithmetic, comparison, logic, functions of one variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.base.dtype import DType, is_complex, is_inexact
from nnc_core.codegen.numpy_scalars import cast as numpy_cast
from nnc_core.codegen.numpy_scalars import integer_power
from nnc_core.codegen.pairs import converted
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.shape import elementwise as rule

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def _power(a: Any, b: Any) -> Any:
    return np.power(a, b) if is_inexact(np.asarray(a).dtype) else integer_power(np.asarray(a), np.asarray(b))


def _sigmoid(x: Any) -> Any:
    """Without overflow: exp of minus the magnitude."""
    e = np.exp(-np.abs(x))
    one = np.ones((), np.asarray(x).dtype)
    return np.where(np.asarray(x) >= 0, one, e) / (one + e)


def _clip(x: Any, low: Any, high: Any) -> Any:
    """np.clip makes bfloat16 float32."""
    return np.minimum(np.maximum(x, low), high)


def _cast(x: Any, dtype: DType) -> Any:
    """NumPy leaves floats that no integer holds to the processor; here they saturate, and NaN gives 0."""
    with np.errstate(all="ignore"):
        return numpy_cast(np.asarray(x), dtype)


def _power_by_base(F: Namespace[V], y: V, a: V, b: V) -> V:
    return F.where(F.equal(b, 0), 0, F.multiply(b, F.power(a, F.subtract(b, 1))))


def _power_by_exponent(F: Namespace[V], y: V, a: V, b: V) -> V:
    """0 where the base is 0, as the limit from above is for positive exponents."""
    zero = F.equal(a, 0)
    return F.where(zero, 0, F.multiply(y, F.log(F.where(zero, 1, a))))


def _clip_by_x(F: Namespace[V], y: V, x: V, low: V, high: V) -> V:
    return F.cast(F.logical_and(F.less_equal(low, x), F.less_equal(x, high)), dtype=x.dtype)


def _clip_by_low(F: Namespace[V], y: V, x: V, low: V, high: V) -> V:
    return F.cast(F.logical_and(F.less(x, low), F.less_equal(low, high)), dtype=x.dtype)


def _clip_by_high(F: Namespace[V], y: V, x: V, low: V, high: V) -> V:
    return F.cast(F.logical_or(F.less(high, x), F.less(high, low)), dtype=x.dtype)


class Arithmetic(Base[V], Generic[V]):
    """Numbers with numbers."""

    @op(infer=rule.arithmetic, reference=np.add, promote=ALL_INPUTS, commutative=True, inplace=(0, 1), exact=True,
        scalar=lambda a, b: a + b, partials=(1, 1), linear="jointly")
    def add(self, a: V | float, b: V | float) -> V:
        """The sum a + b."""
        ...

    @op(infer=rule.arithmetic, reference=np.subtract, promote=ALL_INPUTS, inplace=(0, 1), exact=True,
        scalar=lambda a, b: a - b, partials=(1, -1), linear="jointly")
    def subtract(self, a: V | float, b: V | float) -> V:
        """The difference a - b."""
        ...

    @op(infer=rule.arithmetic, reference=np.multiply, promote=ALL_INPUTS, commutative=True, inplace=(0, 1), exact=True,
        scalar=lambda a, b: a * b, partials=(lambda F, y, a, b: b, lambda F, y, a, b: a))
    def multiply(self, a: V | float, b: V | float) -> V:
        """The product a * b."""
        ...

    @op(infer=rule.inexact, reference=np.true_divide, promote=ALL_INPUTS, to_float=True, inplace=(0, 1), exact=True,
        scalar=lambda a, b: a / b,
        partials=(lambda F, y, a, b: F.divide(1.0, b), lambda F, y, a, b: F.negative(F.divide(y, b))))
    def divide(self, a: V | float, b: V | float) -> V:
        """The quotient a / b, of whole numbers too; infinite or NaN where b is 0."""
        ...

    @op(infer=rule.real_arithmetic, reference=np.floor_divide, promote=ALL_INPUTS, inplace=(0, 1), differentiable=False,
        scalar=lambda a, b: a.apply("floor_divide", b))
    def floor_divide(self, a: V | float, b: V | float) -> V:
        """The quotient a / b rounded towards minus infinity."""
        ...

    @op(infer=rule.real_arithmetic, reference=np.remainder, promote=ALL_INPUTS, inplace=(0, 1),
        scalar=lambda a, b: a.apply("remainder", b),
        partials=(1, lambda F, y, a, b: F.negative(F.floor_divide(a, b))))
    def remainder(self, a: V | float, b: V | float) -> V:
        """The rest of `floor_divide`, a - b * floor(a / b), with the sign of b."""
        ...

    @op(infer=rule.arithmetic, reference=_power, promote=ALL_INPUTS, inplace=(0, 1),
        scalar=lambda x, n: x.apply("power", n), partials=(_power_by_base, _power_by_exponent))
    def power(self, a: V | float, b: V | float) -> V:
        """a to the power of b; integers with a negative exponent are rounded towards zero, 0 for base 0."""
        ...

    @op(infer=rule.real_arithmetic, reference=np.maximum, promote=ALL_INPUTS, commutative=True, inplace=(0, 1),
        exact=True, scalar=lambda a, b: a.apply("maximum", b),
        partials=(lambda F, y, a, b: _share(F, a, b), lambda F, y, a, b: _share(F, b, a)))
    def maximum(self, a: V | float, b: V | float) -> V:
        """The larger; NaN wins, and where both are equal each has half of the gradient."""
        ...

    @op(infer=rule.real_arithmetic, reference=np.minimum, promote=ALL_INPUTS, commutative=True, inplace=(0, 1),
        exact=True, scalar=lambda a, b: a.apply("minimum", b),
        partials=(lambda F, y, a, b: _share(F, b, a), lambda F, y, a, b: _share(F, a, b)))
    def minimum(self, a: V | float, b: V | float) -> V:
        """The smaller; NaN wins, and where both are equal each has half of the gradient."""
        ...

    @op(infer=rule.arithmetic, reference=np.negative, promote=ALL_INPUTS, inplace=(0,), exact=True,
        scalar=lambda x: -x, partials=(-1,), linear="jointly")
    def negative(self, x: V | float) -> V:
        """The number with the other sign, -x."""
        ...

    @op(infer=rule.magnitude, reference=np.abs, promote=ALL_INPUTS, inplace=(0,), exact=True,
        scalar=lambda x: x.apply("abs"), vjp=lambda F, g, y, x: (F.multiply(_direction(F, y, x), g),),
        jvp=lambda F, t, y, x: _along(F, t[0], y, x))
    def abs(self, x: V | float) -> V:
        """The absolute value; of complex numbers the magnitude, a real number."""
        ...

    @op(infer=rule.real_arithmetic, reference=np.sign, promote=ALL_INPUTS, inplace=(0,), exact=True,
        differentiable=False, scalar=lambda x: x.apply("sign"))
    def sign(self, x: V | float) -> V:
        """-1, 0 or 1 as x is below, at or above 0; NaN of NaN."""
        ...

    @op(infer=rule.real_arithmetic, reference=_clip, promote=ALL_INPUTS, inplace=(0,), exact=True,
        scalar=lambda x, low, high: x.apply("maximum", low).apply("minimum", high),
        partials=(_clip_by_x, _clip_by_low, _clip_by_high))
    def clip(self, x: V | float, low: V | float, high: V | float) -> V:
        """Brought into [low, high]; where low > high the result is high."""
        ...


def _direction(F: Namespace[V], y: V, x: V) -> V:
    """x / |x|, and 0 at 0."""
    if not is_complex(x.dtype):
        return F.sign(x)
    return F.divide(x, F.cast(F.where(F.equal(y, 0), 1, y), dtype=x.dtype))


def _along(F: Namespace[V], t: Any, y: V, x: V) -> V:
    """The derivative of |x| as x moves along t."""
    if not is_complex(x.dtype):
        return F.multiply(t, F.sign(x))
    return F.real(F.multiply(F.conj(_direction(F, y, x)), t))


def _cast_back(F: Namespace[V], g: V, x: V) -> V:
    if is_complex(g.dtype) and not is_complex(x.dtype):
        g = F.real(g)
    return F.cast(g, dtype=x.dtype)


def _share(F: Namespace[V], a: V, b: V) -> V:
    """The derivative of max(a, b) by a."""
    return F.where(F.equal(a, b), 0.5, F.cast(F.greater(a, b), dtype=a.dtype))


class Functions(Base[V], Generic[V]):
    """Functions of one variable; integers become floats of the default dtype."""

    @op(infer=rule.inexact, reference=np.exp, promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("exp"), partials=(lambda F, y, x: y,))
    def exp(self, x: V | float) -> V:
        """The exponential e**x."""
        ...

    @op(infer=rule.inexact, reference=np.log, promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("log"), partials=(lambda F, y, x: F.divide(1.0, x),))
    def log(self, x: V | float) -> V:
        """The natural logarithm; -inf at 0, NaN below it."""
        ...

    @op(infer=rule.inexact, reference=np.tanh, promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("tanh"), partials=(lambda F, y, x: F.subtract(1.0, F.multiply(y, y)),))
    def tanh(self, x: V | float) -> V:
        """The hyperbolic tangent, sinh(x) / cosh(x), between -1 and 1."""
        ...

    @op(infer=rule.floating, reference=_sigmoid, promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("sigmoid"), partials=(lambda F, y, x: F.multiply(y, F.subtract(1.0, y)),))
    def sigmoid(self, x: V | float) -> V:
        """1 / (1 + exp(-x))."""
        ...

    @op(infer=rule.inexact, reference=np.sqrt, promote=ALL_INPUTS, to_float=True, inplace=(0,), exact=True,
        scalar=lambda x: x.apply("sqrt"), partials=(lambda F, y, x: F.divide(0.5, y),))
    def sqrt(self, x: V | float) -> V:
        """The square root; NaN below 0."""
        ...

    @op(infer=rule.inexact, reference=np.sin, promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("sin"), partials=(lambda F, y, x: F.cos(x),))
    def sin(self, x: V | float) -> V:
        """The sine of x, an angle in radians."""
        ...

    @op(infer=rule.inexact, reference=np.cos, promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=lambda x: x.apply("cos"), partials=(lambda F, y, x: F.negative(F.sin(x)),))
    def cos(self, x: V | float) -> V:
        """The cosine of x, an angle in radians."""
        ...

    @op(infer=rule.real_arithmetic, reference=lambda x: np.maximum(x, np.zeros((), np.asarray(x).dtype)), inplace=(0,),
        promote=ALL_INPUTS, exact=True, scalar=lambda x: x.apply("maximum", 0),
        vjp=lambda F, g, y, x: (F.where(F.greater(y, 0), g, 0),),
        jvp=lambda F, t, y, x: F.where(F.greater(y, 0), t[0], 0))
    def relu(self, x: V | float) -> V:
        """max(x, 0), with derivative 0 at 0.

        By the result alone, so that x need not be kept; and chosen, not multiplied: 0 whatever comes from above.
        """
        ...


class Comparison(Base[V], Generic[V]):
    """Relations, whose results are booleans."""

    @op(infer=rule.comparison, reference=np.equal, promote=ALL_INPUTS, commutative=True, exact=True, storage=True,
        differentiable=False, scalar=lambda a, b: a.equal(b))
    def equal(self, a: V | float, b: V | float) -> V:
        """True where a and b are equal; NaN equals nothing."""
        ...

    @op(infer=rule.comparison, reference=np.not_equal, promote=ALL_INPUTS, commutative=True, exact=True, storage=True,
        differentiable=False, scalar=lambda a, b: a.not_equal(b))
    def not_equal(self, a: V | float, b: V | float) -> V:
        """True where a and b differ; NaN differs from everything."""
        ...

    @op(infer=rule.ordering, reference=np.less, promote=ALL_INPUTS, exact=True, differentiable=False,
        scalar=lambda a, b: a < b)
    def less(self, a: V | float, b: V | float) -> V:
        """True where a is below b; False beside NaN."""
        ...

    @op(infer=rule.ordering, reference=np.less_equal, promote=ALL_INPUTS, exact=True, differentiable=False,
        scalar=lambda a, b: a <= b)
    def less_equal(self, a: V | float, b: V | float) -> V:
        """True where a is at most b; False beside NaN."""
        ...

    @op(infer=rule.ordering, reference=np.greater, promote=ALL_INPUTS, exact=True, differentiable=False,
        scalar=lambda a, b: a > b)
    def greater(self, a: V | float, b: V | float) -> V:
        """True where a is above b; False beside NaN."""
        ...

    @op(infer=rule.ordering, reference=np.greater_equal, promote=ALL_INPUTS, exact=True, differentiable=False,
        scalar=lambda a, b: a >= b)
    def greater_equal(self, a: V | float, b: V | float) -> V:
        """True where a is at least b; False beside NaN."""
        ...


class Logic(Base[V], Generic[V]):
    """Booleans with booleans, and choice."""

    @op(infer=rule.logical, reference=np.logical_and, promote=ALL_INPUTS, commutative=True, inplace=(0, 1),
        exact=True, differentiable=False, scalar=lambda a, b: a & b)
    def logical_and(self, a: V | bool, b: V | bool) -> V:
        """True where both are true."""
        ...

    @op(infer=rule.logical, reference=np.logical_or, promote=ALL_INPUTS, commutative=True, inplace=(0, 1),
        exact=True, differentiable=False, scalar=lambda a, b: a | b)
    def logical_or(self, a: V | bool, b: V | bool) -> V:
        """True where at least one is true."""
        ...

    @op(infer=rule.logical, reference=np.logical_xor, promote=ALL_INPUTS, commutative=True, inplace=(0, 1),
        exact=True, differentiable=False, scalar=lambda a, b: a ^ b)
    def logical_xor(self, a: V | bool, b: V | bool) -> V:
        """True where exactly one is true."""
        ...

    @op(infer=rule.logical, reference=np.logical_not, promote=ALL_INPUTS, inplace=(0,), exact=True,
        differentiable=False, scalar=lambda x: ~x)
    def logical_not(self, x: V | bool) -> V:
        """True where x is false."""
        ...

    @op(infer=rule.where, reference=np.where, promote=(1, 2), inplace=(1, 2), exact=True, storage=True,
        scalar=lambda condition, a, b: condition.select(a, b),
        vjp=(None, lambda F, g, y, c, a, b: F.sum_to(F.where(c, g, 0), a.shape),
             lambda F, g, y, c, a, b: F.sum_to(F.where(c, 0, g), b.shape)),
        jvp=lambda F, t, y, c, a, b: F.where(c, 0 if t[1] is None else t[1], 0 if t[2] is None else t[2]))
    def where(self, condition: V, a: V | float, b: V | float) -> V:
        """a where the condition is true, b elsewhere."""
        ...


class Casts(Base[V], Generic[V]):
    """The same elements as another dtype, or as they are."""

    @op(infer=rule.cast, reference=_cast, exact=True, storage=True,
        scalar=lambda x, dtype: x.not_equal(0) if dtype.kind == "b" else converted(x, dtype),
        linear="jointly", vjp=lambda F, g, y, x, dtype: (_cast_back(F, g, x),))
    def cast(self, x: V, *, dtype: DType) -> V:
        """Elements converted; floats saturate at the ends of integers, NaN gives 0; to boolean: not equal to zero."""
        ...

    @op(infer=lambda x: x, reference=lambda x: np.array(x), exact=True, storage=True, scalar=lambda x: x,
        linear="jointly", vjp=lambda F, g, y, x: (g,))
    def copy(self, x: V) -> V:
        """The same elements in memory of their own, packed."""
        ...

    @op(infer=lambda x: x, reference=lambda x: x, exact=True, storage=True, scalar=lambda x: x, view=lambda x: x,
        linear="jointly", vjp=lambda F, g, y, x: (g,))
    def identity(self, x: V) -> V:
        """The value itself under a new name."""
        ...

    @op(infer=lambda x: x, reference=lambda x: x, exact=True, storage=True, scalar=lambda x: x, view=lambda x: x,
        differentiable=False)
    def stop_gradient(self, x: V) -> V:
        """The value itself, as a constant to differentiation."""
        ...
