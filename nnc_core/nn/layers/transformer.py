"""Transformers (Vaswani et al. 2017): layers of attention and two linear ones, with residual connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypedDict, Unpack

from nnc_core.base.errors import OperandError
from nnc_core.functions.activation import gelu, silu
from nnc_core.functions.elementwise import relu
from nnc_core.nn.initialise import generator_or_default
from nnc_core.nn.layers.attention import MultiHeadAttention
from nnc_core.nn.layers.checks import at_least_one, one_of, within
from nnc_core.nn.layers.dropout import Dropout
from nnc_core.nn.layers.linear import Linear
from nnc_core.nn.layers.normalisation import LayerNorm
from nnc_core.nn.layers.seeds import own_generator
from nnc_core.nn.module import Module
from nnc_core.random.generator import Generator
from nnc_core.values.tensor import Tensor

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = MappingProxyType({"relu": relu, "gelu": gelu, "silu": silu})


class Options(TypedDict, total=False):
    """Keywords of transformer layers, with the defaults 2048, 0.1, "relu", False, 1e-5, True."""

    hidden: int
    """Features between the two linear layers."""
    dropout: float
    activation: str
    """"relu", "gelu" or "silu"."""
    norm_first: bool
    """True to normalise inputs of the parts (pre-norm), False for the sums after them (post-norm)."""
    epsilon: float
    bias: bool
    generator: Generator | None
    dtype: Any


class _Layer(Module):
    """The feed-forward part, and how parts are joined."""

    def _set(self, features: int, hidden: int = 2048, dropout: float = 0.1, activation: str = "relu",
             norm_first: bool = False, epsilon: float = 1e-5, bias: bool = True, generator: Generator | None = None,
             dtype: Any = None) -> dict[str, Any]:
        """Everything but attention and norms; the options that attention takes."""
        kind = type(self).__name__
        at_least_one(kind, features=features, hidden=hidden)
        within(kind, 0, 1, dropout=dropout)
        one_of(kind, "activation", activation, tuple(ACTIVATIONS))
        self.activation, self.norm_first, self.epsilon = activation, bool(norm_first), epsilon
        shared: dict[str, Any] = {"bias": bias, "generator": generator_or_default(generator), "dtype": dtype}
        self.expand, self.contract = Linear(features, hidden, **shared), Linear(hidden, features, **shared)
        self.dropout, self.inner_dropout = [Dropout(dropout, own_generator(shared["generator"])) for _ in range(2)]
        return shared | {"dropout": dropout}

    def _norm(self, features: int, dtype: Any) -> LayerNorm:
        return LayerNorm(features, self.epsilon, dtype=dtype)

    def _joined(self, x: Tensor, norm: Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        y: Tensor = x + self.dropout(part(norm(x))) if self.norm_first else norm(x + self.dropout(part(x)))
        return y

    def _feed_forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.contract(self.inner_dropout(ACTIVATIONS[self.activation](self.expand(x))))
        return y

    def describe(self) -> str:
        said = [("dropout", self.dropout.rate, 0.1), ("activation", self.activation, "relu"),
                ("norm_first", self.norm_first, False)]
        sizes = f"{self.expand.in_features}, {self.expand.out_features}"
        return ", ".join([sizes, *[f"{n}={x!r}" for n, x, usual in said if x != usual]])


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward part: x (batch, length, features) -> the same shape.

    Masks are those of `MultiHeadAttention`; options those of `Options`.
    """

    def __init__(self, features: int, heads: int, **options: Unpack[Options]) -> None:
        shared = self._set(features, **options)
        self.attention = MultiHeadAttention(features, heads, **shared)
        self.attention_norm = self._norm(features, shared["dtype"])
        self.feed_forward_norm = self._norm(features, shared["dtype"])

    def forward(self, x: Tensor, mask: Tensor | None = None, *, key_mask: Tensor | None = None,
                causal: bool = False) -> Tensor:
        def attend(y: Tensor) -> Tensor:
            found: Tensor = self.attention(y, mask=mask, key_mask=key_mask, causal=causal)
            return found

        x = self._joined(x, self.attention_norm, attend)
        return self._joined(x, self.feed_forward_norm, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's results (`memory`), and a feed-forward part: x (batch, length,
    features), memory (batch, keys, memory_features) -> the shape of x.

    Self-attention is causal unless told otherwise.  Masks are those of `MultiHeadAttention`, options those of
    `Options`.
    """

    def __init__(self, features: int, heads: int, memory_features: int | None = None,
                 **options: Unpack[Options]) -> None:
        shared = self._set(features, **options)
        self.attention = MultiHeadAttention(features, heads, **shared)
        self.cross_attention = MultiHeadAttention(features, heads, key_features=memory_features, **shared)
        self.attention_norm = self._norm(features, shared["dtype"])
        self.cross_attention_norm = self._norm(features, shared["dtype"])
        self.feed_forward_norm = self._norm(features, shared["dtype"])

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None = None, memory_mask: Tensor | None = None, *,
                key_mask: Tensor | None = None, memory_key_mask: Tensor | None = None, causal: bool = True) -> Tensor:
        def attend(y: Tensor) -> Tensor:
            found: Tensor = self.attention(y, mask=mask, key_mask=key_mask, causal=causal)
            return found

        def look(y: Tensor) -> Tensor:
            found: Tensor = self.cross_attention(y, memory, mask=memory_mask, key_mask=memory_key_mask)
            return found

        x = self._joined(x, self.attention_norm, attend)
        x = self._joined(x, self.cross_attention_norm, look)
        return self._joined(x, self.feed_forward_norm, self._feed_forward)


class _Stack(Module):
    """Layers one after another, and a norm behind them."""

    def _set(self, features: Any, make: Callable[[], Module], layers: int, norm: LayerNorm | None) -> None:
        if isinstance(features, Module):
            raise OperandError(f"features is a {type(features).__name__}, expected an integer",
                               hint="it makes its layers itself, from features, heads, layers and their options")
        at_least_one(type(self).__name__, layers=layers)
        self.layers = tuple([make() for _ in range(layers)])
        self.norm = norm

    def _through(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x, *args, **kwargs)
        return x if self.norm is None else self.norm(x)


def _final_norm(features: int, wanted: bool | None, options: Options) -> LayerNorm | None:
    """A norm at the end where it is wanted: by itself behind pre-norm layers, which leave sums without one."""
    if not (options.get("norm_first", False) if wanted is None else wanted):
        return None
    return LayerNorm(features, options.get("epsilon", 1e-5), dtype=options.get("dtype"))


class TransformerEncoder(_Stack):
    """`layers` encoder layers, with weights of their own; `final_norm` is where layers are pre-norm, unless said."""

    def __init__(self, features: int, heads: int, layers: int = 6, final_norm: bool | None = None,
                 **options: Unpack[Options]) -> None:
        self._set(features, lambda: TransformerEncoderLayer(features, heads, **options), layers,
                  _final_norm(features, final_norm, options))

    def forward(self, x: Tensor, mask: Tensor | None = None, *, key_mask: Tensor | None = None,
                causal: bool = False) -> Tensor:
        """x (batch, length, features) -> the same shape."""
        return self._through(x, mask, key_mask=key_mask, causal=causal)


class TransformerDecoder(_Stack):
    """`layers` decoder layers, with weights of their own; `final_norm` is where layers are pre-norm, unless said."""

    def __init__(self, features: int, heads: int, layers: int = 6, final_norm: bool | None = None,
                 memory_features: int | None = None, **options: Unpack[Options]) -> None:
        self._set(features, lambda: TransformerDecoderLayer(features, heads, memory_features, **options), layers,
                  _final_norm(features, final_norm, options))

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None = None, memory_mask: Tensor | None = None, *,
                key_mask: Tensor | None = None, memory_key_mask: Tensor | None = None, causal: bool = True) -> Tensor:
        """x (batch, length, features), memory (batch, keys, memory_features) -> the shape of x."""
        return self._through(x, memory, mask, memory_mask, key_mask=key_mask, memory_key_mask=memory_key_mask,
                             causal=causal)
