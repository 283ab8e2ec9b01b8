"""Activation functions as layers, a class each, made from the functions; and any of them by its name."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter as Argument
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any, ClassVar

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


class FunctionLayer(Module):
    """A function of one tensor, with settings that are attributes of the same name."""

    function: ClassVar[Callable[..., Tensor]]
    settings: ClassVar[tuple[str, ...]] = ()

    if TYPE_CHECKING:

        def __init__(self, *args: Any, **settings: Any) -> None: ...

    def forward(self, x: Tensor) -> Tensor:
        """The function of x: of the shape of x, but for GLU and SwiGLU, which halve an axis."""
        return type(self).function(x, **{name: getattr(self, name) for name in self.settings})

    def describe(self) -> str:
        return settings(self, *self.settings)


def layer_of(function: Callable[..., Tensor], name: str, *taken: str, check: Callable[..., None] | None = None,
             **defaults: Any) -> type[FunctionLayer]:
    """A class of layers that compute a function, with its documentation.

    Settings are the function's parameters of the names `taken`, by position or name, with the function's annotations
    and defaults, or these `defaults`; `check` is called with them and raises for values that cannot be.
    """
    found = signature(function).parameters
    parameters = [found[t].replace(kind=Argument.POSITIONAL_OR_KEYWORD, default=defaults.get(t, found[t].default))
                  for t in taken]  # fmt: skip
    members: dict[str, Any] = {"function": staticmethod(function), "settings": taken, "__doc__": function.__doc__,
                               "__module__": __name__, "__qualname__": name}
    if taken:
        members["__init__"] = _constructor_of(parameters, check)
    return type(name, (FunctionLayer,), members)


def _constructor_of(parameters: list[Argument], check: Callable[..., None] | None) -> Callable[..., None]:
    own = Signature([Argument("self", Argument.POSITIONAL_ONLY), *parameters])

    def __init__(self: FunctionLayer, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        given = own.bind(self, *args, **kwargs)
        given.apply_defaults()
        values = {name: given.arguments[name] for name in self.settings}
        if check is not None:
            check(**values)
        for name, value in values.items():
            setattr(self, name, value)

    __init__.__signature__ = own  # type: ignore[attr-defined]
    __init__.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": None}
    return __init__


def _check_gelu(approximate: str) -> None:
    if approximate not in ("none", "tanh"):
        raise AttributeValueError(f"approximate {approximate!r} is neither 'none' nor 'tanh'")


def _check_softplus(beta: float) -> None:
    if not beta > 0:
        raise AttributeValueError(f"beta is {beta}, expected a positive number")


def _check_celu(alpha: float) -> None:
    if alpha == 0:
        raise AttributeValueError("alpha is 0, expected another number")


def _check_softshrink(bound: float) -> None:
    within("SoftShrink", 0, float("inf"), bound=bound)


# ---- piecewise linear
ReLU = layer_of(relu, "ReLU")
ReLU6 = layer_of(functions.relu6, "ReLU6")
LeakyReLU = layer_of(functions.leaky_relu, "LeakyReLU", "slope")
Threshold = layer_of(functions.threshold, "Threshold", "threshold", "value")
ThresholdedReLU = layer_of(functions.threshold, "ThresholdedReLU", "threshold", threshold=1.0)  # Owl's TRelu
HardTanh = layer_of(functions.hardtanh, "HardTanh", "low", "high")
HardSigmoid = layer_of(functions.hardsigmoid, "HardSigmoid", "slope", "offset")
HardSwish = layer_of(functions.hardswish, "HardSwish")
HardShrink = layer_of(functions.hardshrink, "HardShrink", "bound")
SoftShrink = layer_of(functions.softshrink, "SoftShrink", "bound", check=_check_softshrink)
# ---- smooth
Tanh = layer_of(tanh, "Tanh")
TanhShrink = layer_of(functions.tanhshrink, "TanhShrink")
Sigmoid = layer_of(sigmoid, "Sigmoid")
LogSigmoid = layer_of(functions.logsigmoid, "LogSigmoid")
SiLU = Swish = layer_of(functions.silu, "SiLU")
GELU = layer_of(functions.gelu, "GELU", "approximate", check=_check_gelu)
Mish = layer_of(functions.mish, "Mish")
Softplus = layer_of(functions.softplus, "Softplus", "beta", check=_check_softplus)
Softsign = layer_of(functions.softsign, "Softsign")
ELU = layer_of(functions.elu, "ELU", "alpha")
CELU = layer_of(functions.celu, "CELU", "alpha", check=_check_celu)
SELU = layer_of(functions.selu, "SELU")
# ---- along an axis
Softmax = layer_of(softmax, "Softmax", "axis")
LogSoftmax = layer_of(log_softmax, "LogSoftmax", "axis")
Softmin = layer_of(softmin, "Softmin", "axis")
GLU = layer_of(functions.glu, "GLU", "axis")
SwiGLU = layer_of(functions.swiglu, "SwiGLU", "axis")


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
