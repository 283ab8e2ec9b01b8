"""Activation functions as layers, one class each, and any of them by its name."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, ClassVar

from nnc_core.base.errors import AttributeValueError
from nnc_core.functions import activation as functions
from nnc_core.functions.creation import full
from nnc_core.functions.elementwise import relu, sigmoid, tanh
from nnc_core.functions.neural import log_softmax, softmax, softmin
from nnc_core.nn.layers.checks import at_least_one, check_length, float_dtype, within
from nnc_core.nn.layers.dropout import _seeded_generator
from nnc_core.nn.layers.settings import settings
from nnc_core.nn.module import Module
from nnc_core.nn.parameter import Parameter
from nnc_core.random.generator import Generator
from nnc_core.values.tensor import Tensor

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Activation", "HardShrink", "HardSigmoid", "HardSwish", "HardTanh",
    "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid", "SoftShrink",
    "Softmax", "Softmin", "Softplus", "Softsign", "SwiGLU", "Swish", "Tanh", "TanhShrink", "Threshold",
    "ThresholdedReLU",
]  # fmt: skip


class _Function(Module):
    """A function of one tensor, with settings that are attributes of the same name."""

    function: ClassVar[Callable[..., Tensor]]
    _names: tuple[str, ...] = ()

    def _set(self, **options: Any) -> None:
        self._names = tuple(options)
        for name, value in options.items():
            setattr(self, name, value)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as x."""
        return type(self).function(x, **{name: getattr(self, name) for name in self._names})

    def describe(self) -> str:
        return settings(self, *self._names)


# ---- piecewise linear
class ReLU(_Function):
    """max(x, 0)"""

    function = staticmethod(relu)


class ReLU6(_Function):
    """x brought into [0, 6]."""

    function = staticmethod(functions.relu6)


class LeakyReLU(_Function):
    """x where it is positive, slope * x elsewhere.  Owl's and TensorFlow's slope is 0.2."""

    function = staticmethod(functions.leaky_relu)

    def __init__(self, slope: float = 0.01) -> None:
        self._set(slope=slope)


class Threshold(_Function):
    """x where it is above the threshold, `value` elsewhere."""

    function = staticmethod(functions.threshold)

    def __init__(self, threshold: float, value: float = 0.0) -> None:
        self._set(threshold=threshold, value=value)


class ThresholdedReLU(_Function):
    """x where it is above the threshold, 0 elsewhere: Owl's TRelu."""

    function = staticmethod(functions.threshold)

    def __init__(self, threshold: float = 1.0) -> None:
        self._set(threshold=threshold)


class HardTanh(_Function):
    """x brought into [low, high]."""

    function = staticmethod(functions.hardtanh)

    def __init__(self, low: float = -1.0, high: float = 1.0) -> None:
        self._set(low=low, high=high)


class HardSigmoid(_Function):
    """slope * x + offset, brought into [0, 1].  Owl's and Keras' slope is 0.2."""

    function = staticmethod(functions.hardsigmoid)

    def __init__(self, slope: float = 1 / 6, offset: float = 0.5) -> None:
        self._set(slope=slope, offset=offset)


class HardSwish(_Function):
    """x * hardsigmoid(x)"""

    function = staticmethod(functions.hardswish)


class HardShrink(_Function):
    """x where |x| > bound, 0 elsewhere."""

    function = staticmethod(functions.hardshrink)

    def __init__(self, bound: float = 0.5) -> None:
        self._set(bound=bound)


class SoftShrink(_Function):
    """x moved towards 0 by `bound`, and 0 where that would cross it."""

    function = staticmethod(functions.softshrink)

    def __init__(self, bound: float = 0.5) -> None:
        within("SoftShrink", 0, float("inf"), bound=bound)
        self._set(bound=bound)


# ---- smooth
class Tanh(_Function):
    """The hyperbolic tangent."""

    function = staticmethod(tanh)


class TanhShrink(_Function):
    """x - tanh(x)"""

    function = staticmethod(functions.tanhshrink)


class Sigmoid(_Function):
    """1 / (1 + exp(-x))"""

    function = staticmethod(sigmoid)


class LogSigmoid(_Function):
    """log(sigmoid(x)), exact where sigmoid underflows."""

    function = staticmethod(functions.logsigmoid)


class SiLU(_Function):
    """x * sigmoid(x), also called swish."""

    function = staticmethod(functions.silu)


Swish = SiLU


class GELU(_Function):
    """x times the probability that a standard normal number is below x; `approximate` is "none" or "tanh"."""

    function = staticmethod(functions.gelu)

    def __init__(self, approximate: str = "none") -> None:
        if approximate not in ("none", "tanh"):
            raise AttributeValueError(f"approximate {approximate!r} is neither 'none' nor 'tanh'", operator="GELU")
        self._set(approximate=approximate)


class Mish(_Function):
    """x * tanh(softplus(x))"""

    function = staticmethod(functions.mish)


class Softplus(_Function):
    """log(1 + exp(beta * x)) / beta, without overflow."""

    function = staticmethod(functions.softplus)

    def __init__(self, beta: float = 1.0) -> None:
        if not beta > 0:
            raise AttributeValueError(f"beta is {beta}, expected a positive number", operator="Softplus")
        self._set(beta=beta)


class Softsign(_Function):
    """x / (1 + |x|)"""

    function = staticmethod(functions.softsign)


class ELU(_Function):
    """x where it is positive, alpha * (exp(x) - 1) elsewhere."""

    function = staticmethod(functions.elu)

    def __init__(self, alpha: float = 1.0) -> None:
        self._set(alpha=alpha)


class CELU(_Function):
    """x where it is positive, alpha * (exp(x / alpha) - 1) elsewhere: smooth for every alpha."""

    function = staticmethod(functions.celu)

    def __init__(self, alpha: float = 1.0) -> None:
        if alpha == 0:
            raise AttributeValueError("alpha is 0, expected another number", operator="CELU")
        self._set(alpha=alpha)


class SELU(_Function):
    """Scaled elu, which keeps mean 0 and variance 1 through layers (Klambauer et al. 2017)."""

    function = staticmethod(functions.selu)


# ---- along an axis
class _AlongAxis(_Function):
    def __init__(self, axis: int = -1) -> None:
        self._set(axis=axis)


class Softmax(_AlongAxis):
    """exp(x) / sum(exp(x)) along an axis."""

    function = staticmethod(softmax)


class LogSoftmax(_AlongAxis):
    """log(softmax(x)) along an axis."""

    function = staticmethod(log_softmax)


class Softmin(_AlongAxis):
    """softmax(-x) along an axis."""

    function = staticmethod(softmin)


class GLU(_AlongAxis):
    """The first half of x along an axis, times the sigmoid of the second: half as long there."""

    function = staticmethod(functions.glu)


class SwiGLU(_AlongAxis):
    """The first half of x along an axis, times the silu of the second: half as long there (Shazeer 2020)."""

    function = staticmethod(functions.swiglu)


# ---- with state
class PReLU(Module):
    """`LeakyReLU` with slopes that are learned: `slope` (channels,), one for each index of `axis`, or one for all
    (He et al. 2015)."""

    def __init__(self, channels: int = 1, start: float = 0.25, axis: int = -1, *, dtype: Any = None) -> None:
        at_least_one("PReLU", channels=channels)
        self.channels, self.start, self.axis = channels, start, axis
        self.slope = Parameter(full(channels, float(start), dtype=float_dtype("PReLU", dtype)))

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as x."""
        if self.channels > 1:
            check_length(self, x, self.axis, self.channels, "channels")
        return functions.prelu(x, self.slope.read(), axis=self.axis)

    def describe(self) -> str:
        return settings(self, "channels", "start", "axis")


class RReLU(Module):
    """`LeakyReLU` with a slope for each element, drawn from [low, high) in training; in evaluation their mean (Xu et
    al. 2015).  `generator` is as in `Dropout`."""

    def __init__(self, low: float = 1 / 8, high: float = 1 / 3, generator: Generator | None = None) -> None:
        if not low <= high:
            raise AttributeValueError(f"slopes from {low} to {high}, expected low <= high", operator="RReLU")
        self.low, self.high = low, high
        self.generator = _seeded_generator() if generator is None else generator

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as x."""
        return functions.rrelu(x, low=self.low, high=self.high, training=self.training, generator=self.generator)

    def describe(self) -> str:
        return settings(self, "low", "high")


# ---- by name
NAMED: dict[str, Callable[..., Tensor]] = {
    f.__name__: f for f in (
        functions.celu, functions.elu, functions.gelu, functions.glu, functions.hardshrink, functions.hardsigmoid,
        functions.hardswish, functions.hardtanh, functions.leaky_relu, functions.logsigmoid, log_softmax,
        functions.mish, relu, functions.relu6, functions.selu, sigmoid, functions.silu, softmax, softmin,
        functions.softplus, functions.softshrink, functions.softsign, functions.swiglu, tanh, functions.tanhshrink,
        functions.threshold)
} | {"swish": functions.silu, "trelu": functions.threshold}
"""Also what Owl calls TRelu."""


class Activation(Module):
    """A function by its name or itself, with options: Activation("leaky_relu", slope=0.2), Activation(nnc.sin); None
    is the identity.

    Names are those of `nnc`'s functions, and "trelu" for `nnc.threshold`.
    """

    def __init__(self, kind: str | Callable[..., Tensor] | None, **options: Any) -> None:
        if isinstance(kind, str) and kind not in NAMED:
            raise AttributeValueError(f"there is no activation {kind!r}", operator="Activation",
                                      hint=f"one of {', '.join(sorted(NAMED))}, or a function")
        if not (kind is None or isinstance(kind, str) or callable(kind)) or (kind is None and options):
            raise AttributeValueError(f"{kind!r} with {len(options)} options is no name and no function",
                                      operator="Activation")
        if isinstance(kind, str):
            _check_options(kind, options)
        self.kind, self._options = kind, tuple(options.items())

    @property
    def options(self) -> dict[str, Any]:
        """The options with which the function is called."""
        return dict(self._options)

    def forward(self, x: Tensor) -> Tensor:
        """The function of x: the same shape as x for those with a name, half of it for glu and swiglu."""
        if self.kind is None:
            return x
        return (NAMED[self.kind] if isinstance(self.kind, str) else self.kind)(x, **self.options)

    def describe(self) -> str:
        name = self.kind if self.kind is None or isinstance(self.kind, str) else getattr(
            self.kind, "__name__", type(self.kind).__name__)
        return ", ".join([repr(name) if isinstance(self.kind, str) else str(name),
                          *[f"{option}={value!r}" for option, value in self._options]])


def _check_options(kind: str, options: dict[str, Any]) -> None:
    try:
        signature(NAMED[kind]).bind(None, **options)
    except TypeError as error:
        raise AttributeValueError(f"options of {kind!r}: {error}", operator="Activation") from None
