"""Activation functions: smooth ones in forms that keep their digits at both ends, and piecewise linear ones."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, pi, sqrt
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.base.dtype import accumulator
from nnc_core.base.errors import AttributeValueError
from nnc_core.codegen.exact_fma import fma
from nnc_core.codegen.formats import multiply_add
from nnc_core.codegen.numpy_expansions import evaluate
from nnc_core.codegen.scalar import Scalar
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.references import in_wide, widened
from nnc_core.shape.elementwise import floating
from nnc_core.type import TensorSpec

if TYPE_CHECKING:
    from nnc_core.operator import Namespace

GELUS = ("none", "tanh")
SATURATED = 40.0
"""Beyond it mish(x) is x, and on the other side x * exp(x), to the last bit of float64."""
_SLOPE, _BEND = 2 * sqrt(2 / pi), 0.044715


def _with_attribute(f: Callable[..., Any]) -> Callable[..., Any]:
    """A reference of one array and an attribute, halves computed in float32."""
    return lambda x, attribute: widened(lambda wide: f(wide, attribute))(x)


def _floating_with(x: TensorSpec, attribute: float) -> TensorSpec:
    return floating(x)


def _gelu_spec(x: TensorSpec, approximate: str) -> TensorSpec:
    if approximate not in GELUS:
        raise AttributeValueError(f"approximate {approximate!r} is none of {', '.join(map(repr, GELUS))}")
    return floating(x)


def _sigmoid(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


# ---- x times something that falls to zero faster than x grows
# Their limit at -inf is zero, not NaN.  Where the factor is smaller than any normal number the product may not be: it
# is multiplied by the root of an exponential twice.
def _gated(product: Callable[..., Scalar]) -> Callable[..., Scalar]:
    return in_wide(lambda x, *attributes: _ending(x, product(x, *attributes)))


def _ending(x: Scalar, product: Scalar) -> Scalar:
    return x.equal(-inf).select(x.constant(-0.0), product)


def _numpy_gated(gate: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *attributes: np.where(x == -inf, x.dtype.type(-0.0), x * gate(x, *attributes))


def _times_sigmoid(x: Scalar, u: Scalar) -> Scalar:
    """x * sigmoid(u) for u of the sign of x."""
    root = (abs(u) * -0.5).apply("exp")
    return (u < 0).select(x * root * root, x) / (root * root + 1.0)


def _gelu(x: Scalar, approximate: str) -> Scalar:
    """(1 + tanh(u)) / 2 is sigmoid(2 u), without the difference of nearly equal numbers."""
    if approximate == "none":
        return _gelu_by_tail(x)
    return _ending(x, _times_sigmoid(x, x * (x * x * _BEND + 1.0) * _SLOPE))


def _gelu_by_tail(x: Scalar) -> Scalar:
    """x, or nothing below 0, less |x| times what lies beyond |x|: keeps -0, and ends in -0."""
    magnitude = abs(x).minimum(FAR)
    return multiply_add(magnitude, -(-magnitude).apply("ndtr"), x.maximum(-0.0))


def _numpy_gelu(x: Any, approximate: str) -> Any:
    return _numpy_gelu_by_tail(x) if approximate == "none" else _numpy_gated(_numpy_gelu_gate)(x)


def _numpy_gelu_by_tail(x: Any) -> Any:
    magnitude = np.minimum(np.abs(x), x.dtype.type(FAR))
    tail, above = -evaluate("ndtr", -magnitude), np.where((x >= 0) | np.isnan(x), x, x.dtype.type(-0.0))
    return fma(magnitude, tail, above) if x.dtype == np.float32 else magnitude * tail + above


def _numpy_gelu_gate(x: Any) -> Any:
    return _sigmoid(x * (1 + x * x * _BEND) * _SLOPE)


def _mish(x: Scalar) -> Scalar:
    """tanh(log(1 + e)) as a quotient of polynomials in e = exp(x), which is e where e is tiny."""
    tiny = x < -SATURATED
    e = tiny.select(x * 0.5, x.minimum(SATURATED)).apply("exp")
    n = e * (e + 2.0)
    return tiny.select(x * e * e, x * (n / (n + 2.0)))


def _numpy_mish_gate(x: Any) -> Any:
    e = np.exp(np.minimum(x, x.dtype.type(SATURATED)))
    n = e * (e + 2)
    return n / (n + 2)


def _wide_slope(slope: Callable[..., Any]) -> Callable[..., Any]:
    """A derivative computed in float32 for halves, whose squares overflow."""

    def partial(F: Namespace[V], y: V, x: V, *attributes: Any) -> Any:
        wide = accumulator(x.dtype)
        if wide == x.dtype:
            return slope(F, x, *attributes)
        return F.cast(slope(F, F.cast(x, dtype=wide), *attributes), dtype=x.dtype)

    return partial


@_wide_slope
def _silu_slope(F: Namespace[V], x: V) -> V:
    s = F.sigmoid(x)
    return F.multiply(s, F.add(F.multiply(_finite(F, x), F.subtract(1.0, s)), 1.0))


@_wide_slope
def _gelu_slope(F: Namespace[V], x: V, approximate: str) -> V:
    x = _finite(F, x)
    square = F.multiply(x, x)
    if approximate == "none":
        bell = F.multiply(F.exp(F.multiply(square, -0.5)), 1 / sqrt(2 * pi))
        return F.add(F.ndtr(x), F.multiply(x, bell))
    s = F.sigmoid(F.multiply(F.multiply(x, F.add(F.multiply(square, _BEND), 1.0)), _SLOPE))
    inner = F.multiply(F.add(F.multiply(square, 3 * _BEND), 1.0), _SLOPE)
    return F.add(s, F.multiply(F.multiply(x, inner), F.multiply(s, F.subtract(1.0, s))))


@_wide_slope
def _mish_slope(F: Namespace[V], x: V) -> V:
    t = F.tanh(F.softplus(x))
    bend = F.multiply(F.subtract(1.0, F.multiply(t, t)), F.sigmoid(x))
    return F.add(t, F.multiply(_finite(F, x), bend))


FAR = 1e4
"""Slopes are constant beyond it, so that what is multiplied by their zeros needs not be infinite."""


def _finite(F: Namespace[V], x: V) -> V:
    return F.clip(x, -FAR, FAR)


# ---- the others
def _softplus(x: Scalar) -> Scalar:
    return x.maximum(0) + (-abs(x)).apply("exp").apply("log1p")


def _softsign(x: Scalar) -> Scalar:
    size = abs(x)
    return size.equal(inf).select(x.apply("sign"), x / (size + 1.0))


def _numpy_softsign(x: Any) -> Any:
    size = np.abs(x)
    return np.where(size == inf, np.sign(x), x / (size + 1))


@_wide_slope
def _softsign_slope(F: Namespace[V], x: V) -> V:
    once = F.divide(1.0, F.add(F.abs(x), 1.0))
    return F.multiply(once, once)


def _elu(x: Scalar, alpha: float) -> Scalar:
    return (x > 0).select(x, x.minimum(0).apply("expm1") * alpha)


@_wide_slope
def _elu_slope(F: Namespace[V], x: V, alpha: float) -> V:
    return F.where(F.greater(x, 0), 1.0, F.multiply(F.exp(F.minimum(x, 0)), alpha))


def _leaky_relu(x: Scalar, slope: float) -> Scalar:
    return (x > 0).select(x, x * slope)


class Activations(Base[V], Generic[V]):
    """Activations of real numbers; integers become floats of the default dtype."""

    @op(infer=floating, reference=widened(_numpy_gated(_sigmoid)), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=_gated(lambda x: _times_sigmoid(x, x)), partials=(_silu_slope,))
    def silu(self, x: V | float) -> V:
        """x * sigmoid(x), also called swish."""
        ...

    @op(infer=_gelu_spec, reference=_with_attribute(_numpy_gelu), promote=ALL_INPUTS, to_float=True,
        inplace=(0,), scalar=in_wide(_gelu), partials=(_gelu_slope,))
    def gelu(self, x: V | float, *, approximate: str = "none") -> V:
        """x times the probability that a standard normal number is below x, or "tanh"'s approximation of it."""
        ...

    @op(infer=floating, reference=widened(_numpy_gated(_numpy_mish_gate)), promote=ALL_INPUTS, to_float=True,
        inplace=(0,), scalar=_gated(_mish), partials=(_mish_slope,))
    def mish(self, x: V | float) -> V:
        """x * tanh(softplus(x))."""
        ...

    @op(infer=floating, reference=widened(lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))),
        promote=ALL_INPUTS, to_float=True, inplace=(0,), scalar=in_wide(_softplus),
        partials=(lambda F, y, x: F.sigmoid(x),))
    def softplus(self, x: V | float) -> V:
        """log(1 + exp(x)), without overflow."""
        ...

    @op(infer=floating, reference=widened(_numpy_softsign), promote=ALL_INPUTS, to_float=True, inplace=(0,),
        scalar=in_wide(_softsign), partials=(_softsign_slope,))
    def softsign(self, x: V | float) -> V:
        """x / (1 + |x|)."""
        ...

    @op(infer=_floating_with, promote=ALL_INPUTS, to_float=True, inplace=(0,),
        reference=_with_attribute(lambda x, alpha: np.where(x > 0, x, np.expm1(np.minimum(x, 0)) * alpha)),
        scalar=in_wide(_elu), partials=(_elu_slope,))
    def elu(self, x: V | float, *, alpha: float = 1.0) -> V:
        """x where it is positive, alpha * (exp(x) - 1) elsewhere."""
        ...

    @op(infer=_floating_with, promote=ALL_INPUTS, to_float=True, inplace=(0,),
        reference=_with_attribute(lambda x, slope: np.where(x > 0, x, x * slope)), scalar=in_wide(_leaky_relu),
        partials=(lambda F, y, x, slope: F.where(F.greater(x, 0), 1.0, F.number(slope, x.dtype, x)),))
    def leaky_relu(self, x: V | float, *, slope: float = 0.01) -> V:
        """x where it is positive, slope * x elsewhere."""
        ...
