"""Activation functions."""

from __future__ import annotations

from typing import Any

from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.functions.constants import beside
from nnc_core.functions.pieces import cut
from nnc_core.functions.reduction import as_inexact
from nnc_core.operator import OPERATORS
from nnc_core.random.generator import Generator, generator_for
from nnc_core.shape.axes import normalise_axis
from nnc_core.symbol import float_attribute
from nnc_core.values.arguments import ArrayLike, as_operands, as_value, as_values, names_itself
from nnc_core.values.dispatch import F, dispatch
from nnc_core.values.operands import operand
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = [
    "celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid",
    "mish", "prelu", "relu6", "rrelu", "selu", "silu", "softplus", "softshrink", "softsign", "swiglu", "swish",
    "tanhshrink", "threshold",
]  # fmt: skip

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
"""Klambauer et al. 2017: with them mean 0 and variance 1 are a fixed point."""


# ---- smooth ones
def _unary(name: str, x: ArrayLike, *attributes: Any) -> Tensor:
    told_apart = tuple(map(float_attribute, attributes)) if attributes else attributes
    return Tensor(dispatch(OPERATORS[name], (operand(x),), told_apart))


@names_itself
def silu(x: ArrayLike, /) -> Tensor:
    """x * sigmoid(x); 0 at -inf."""
    return _unary("silu", x)


swish = silu


@names_itself
def gelu(x: ArrayLike, /, *, approximate: str = "none") -> Tensor:
    """x times the probability that a standard normal number is below x; `approximate` "tanh" takes
    (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2 for it."""
    return _unary("gelu", x, approximate)


@names_itself
def mish(x: ArrayLike, /) -> Tensor:
    """x * tanh(softplus(x))"""
    return _unary("mish", x)


@names_itself
def softsign(x: ArrayLike, /) -> Tensor:
    """x / (1 + |x|)"""
    return _unary("softsign", x)


@names_itself
def softplus(x: ArrayLike, /, *, beta: float = 1.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, without overflow."""
    if not beta > 0:
        raise AttributeValueError(f"beta is {beta}, expected a positive number")
    if beta == 1:
        return _unary("softplus", x)
    return Tensor(F.divide(F.softplus(F.multiply(as_value(x), beta)), beta))


@names_itself
def logsigmoid(x: ArrayLike, /) -> Tensor:
    """log(sigmoid(x)), exact where sigmoid underflows."""
    return Tensor(F.negative(F.softplus(F.negative(as_inexact(as_value(x))))))


@names_itself
def tanhshrink(x: ArrayLike, /) -> Tensor:
    """x - tanh(x)"""
    v = as_inexact(as_value(x))
    return Tensor(F.subtract(v, F.tanh(v)))


# ---- exponential on the left
@names_itself
def elu(x: ArrayLike, /, *, alpha: float = 1.0) -> Tensor:
    """x where it is positive, alpha * (exp(x) - 1) elsewhere."""
    return _unary("elu", x, float(alpha))


@names_itself
def selu(x: ArrayLike, /) -> Tensor:
    """Scaled elu, which keeps mean 0 and variance 1 through layers (Klambauer et al. 2017)."""
    return Tensor(F.multiply(F.elu(as_value(x), alpha=SELU_ALPHA), SELU_SCALE))


@names_itself
def celu(x: ArrayLike, /, *, alpha: float = 1.0) -> Tensor:
    """x where it is positive, alpha * (exp(x / alpha) - 1) elsewhere: smooth for every alpha."""
    if alpha == 0:
        raise AttributeValueError("alpha is 0, expected another number")
    v = as_inexact(as_value(x))
    positive = F.greater(v, 0)
    return Tensor(F.where(positive, v, F.multiply(F.expm1(F.divide(F.where(positive, 0, v), alpha)), alpha)))


# ---- piecewise linear
@names_itself
def leaky_relu(x: ArrayLike, /, *, slope: float = 0.01) -> Tensor:
    """x where it is positive, slope * x elsewhere."""
    return _unary("leaky_relu", x, float(slope))


def _sloped(v: Value, slope: Value) -> Value:
    return F.where(F.greater(v, 0), v, F.multiply(v, slope))


@names_itself
def prelu(x: ArrayLike, slope: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """`leaky_relu` with slopes that can be learned: a number, one for each element along an axis, or an array that
    broadcasts to x."""
    v, s = as_values(x, slope)
    if s.ndim == 1 and v.ndim:
        at = normalise_axis(axis, v.ndim)
        if s.shape[0] not in (1, v.shape[at]):
            raise ShapeError(f"slopes {s.spec} are not as many as axis {at} of {v.spec} is long")
        s = F.reshape(s, shape=tuple(s.shape[0] if i == at else 1 for i in range(v.ndim)))
    return Tensor(_sloped(v, s))


@names_itself
def rrelu(x: ArrayLike, /, *, low: float = 1 / 8, high: float = 1 / 3, training: bool = True,
          generator: Generator | None = None) -> Tensor:
    """`leaky_relu` with a slope for each element, drawn from [low, high); without `training` the mean of the two."""
    if not low <= high:
        raise AttributeValueError(f"slopes from {low} to {high}, expected low <= high")
    v = as_inexact(as_value(x))
    if not training:
        return Tensor(F.leaky_relu(v, slope=(low + high) / 2))
    with beside(v):
        slopes = generator_for(generator, v.stack).uniform(v.shape, low, high, v.dtype)
    return Tensor(_sloped(v, slopes._value))


@names_itself
def hardtanh(x: ArrayLike, /, *, low: float = -1.0, high: float = 1.0) -> Tensor:
    """x brought into [low, high]."""
    return Tensor(F.clip(*as_operands(x, low, high)))


@names_itself
def relu6(x: ArrayLike, /) -> Tensor:
    """x brought into [0, 6]."""
    return Tensor(F.clip(*as_operands(x, 0, 6)))


@names_itself
def hardsigmoid(x: ArrayLike, /, *, slope: float = 1 / 6, offset: float = 0.5) -> Tensor:
    """slope * x + offset, brought into [0, 1].  Owl's and Keras' slope is 0.2."""
    return Tensor(_hardsigmoid(as_inexact(as_value(x)), slope, offset))


def _hardsigmoid(v: Value, slope: float, offset: float) -> Value:
    return F.clip(F.add(F.multiply(v, slope), offset), 0, 1)


@names_itself
def hardswish(x: ArrayLike, /) -> Tensor:
    """x * hardsigmoid(x)"""
    v = as_inexact(as_value(x))
    return Tensor(F.multiply(v, _hardsigmoid(v, 1 / 6, 0.5)))


@names_itself
def threshold(x: ArrayLike, /, threshold: float, value: float = 0.0) -> Tensor:
    """x where it is above the threshold, `value` elsewhere; NaN stays NaN."""
    v = as_value(x)
    return Tensor(F.where(F.less_equal(v, threshold), value, v))


@names_itself
def hardshrink(x: ArrayLike, /, *, bound: float = 0.5) -> Tensor:
    """x where |x| > bound, 0 elsewhere."""
    v = as_inexact(as_value(x))
    return Tensor(F.where(F.less_equal(F.abs(v), bound), 0, v))


@names_itself
def softshrink(x: ArrayLike, /, *, bound: float = 0.5) -> Tensor:
    """x moved towards 0 by `bound`, and 0 where that would cross it."""
    if not bound >= 0:
        raise AttributeValueError(f"bound is {bound}, expected at least 0")
    v = as_inexact(as_value(x))
    return Tensor(F.subtract(v, F.clip(v, -bound, bound)))


# ---- gates
def _halves(x: ArrayLike, axis: int) -> tuple[Value, Value]:
    v = as_inexact(as_value(x))
    at = normalise_axis(axis, v.ndim)
    length = v.shape[at]
    if isinstance(length, int) and length % 2:
        raise ShapeError(f"axis {at} of {v.spec} has no two halves")
    middle = length // 2
    return cut(v, at, 0, middle), cut(v, at, middle, length)


@names_itself
def glu(x: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """The first half of x along an axis, times the sigmoid of the second."""
    a, b = _halves(x, axis)
    return Tensor(F.multiply(a, F.sigmoid(b)))


@names_itself
def swiglu(x: ArrayLike, gate: ArrayLike | None = None, /, *, axis: int = -1) -> Tensor:
    """x * silu(gate); without a gate x is the first half along an axis, and the gate the second (Shazeer 2020)."""
    a, b = _halves(x, axis) if gate is None else as_values(x, gate)
    return Tensor(F.multiply(a, F.silu(b)))
