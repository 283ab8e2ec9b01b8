"""Attention as a layer, and what tells it where things are."""

from __future__ import annotations

from typing import Any

from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.functions.attention import (
    merge_heads,
    positional_encoding,
    scaled_dot_product_attention,
    split_heads,
)
from nnc_core.functions.elementwise import logical_and, where
from nnc_core.nn.initialise import Initialiser, generator_or_default, glorot_uniform
from nnc_core.nn.layers.checks import at_least_one, check_length, check_rank, title, within
from nnc_core.nn.layers.dropout import Dropout
from nnc_core.nn.layers.linear import Linear
from nnc_core.nn.layers.seeds import own_generator
from nnc_core.nn.module import Module
from nnc_core.random.generator import Generator
from nnc_core.values.tensor import Tensor


class MultiHeadAttention(Module):
    """Attention of several heads (Vaswani et al. 2017): forward(query, key=None, value=None, mask=None, ...).

    query (batch, queries, features), key (batch, keys, key_features) and value (batch, keys, value_features) go
    through the layers `query`, `key` and `value` and are split into heads of `head_size` numbers; the results side by
    side go through `output`: (batch, queries, features).  Without a key it is the query (self-attention), without a
    value it is the key.  With `key_heads`, of which `heads` is a multiple, neighbouring heads share keys and values
    (Ainslie et al. 2023).

    mask: boolean, true where a query may look at a key, or float and added; broadcast to (batch, heads, queries,
    keys).  key_mask: boolean (batch, keys), false for keys that nobody sees, such as padding.  causal: query i sees
    keys up to i + offset.  A query that sees nothing gives what `output` makes of zeros.  In training, attention
    weights are left out at the rate `dropout`.
    """

    def __init__(self, features: int, heads: int, *, key_features: int | None = None, value_features: int | None = None,
                 head_size: int | None = None, key_heads: int | None = None, bias: bool = True, dropout: float = 0.0,
                 init: Initialiser = glorot_uniform, generator: Generator | None = None, dtype: Any = None) -> None:
        at_least_one("MultiHeadAttention", features=features, heads=heads)
        within("MultiHeadAttention", 0, 1, dropout=dropout)
        if head_size is None and features % heads:
            raise AttributeValueError(f"{features} features cannot be split into {heads} heads",
                                      operator="MultiHeadAttention", hint="give head_size=")
        self.features, self.heads, self.dropout = features, heads, dropout
        self.head_size = features // heads if head_size is None else head_size
        self.key_heads = heads if key_heads is None else key_heads
        at_least_one("MultiHeadAttention", head_size=self.head_size, key_heads=self.key_heads)
        if heads % self.key_heads:
            raise AttributeValueError(f"{heads} heads cannot share {self.key_heads} key heads",
                                      operator="MultiHeadAttention")
        options: Any = {"bias": bias, "init": init, "generator": generator_or_default(generator), "dtype": dtype}
        size, shared = heads * self.head_size, self.key_heads * self.head_size
        keys = features if key_features is None else key_features
        self.query = Linear(features, size, **options)
        self.key = Linear(keys, shared, **options)
        self.value = Linear(keys if value_features is None else value_features, shared, **options)
        self.output = Linear(size, features, **options)
        self.generator = own_generator(generator) if dropout else None

    def forward(self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None,
                mask: Tensor | None = None, *, key_mask: Tensor | None = None, causal: bool = False,
                offset: int = 0) -> Tensor:
        key = query if key is None else key
        value = key if value is None else value
        check_rank(self, query, "BLF")
        q, k, v = (split_heads(layer(x), heads) for layer, x, heads in (
            (self.query, query, self.heads), (self.key, key, self.key_heads), (self.value, value, self.key_heads)))
        y = scaled_dot_product_attention(
            q, k, v, self._mask(mask, key_mask, key), causal=causal, offset=offset,
            dropout=self.dropout if self.training else 0.0, generator=self.generator)
        result: Tensor = self.output(merge_heads(y))
        return result

    def _mask(self, mask: Tensor | None, key_mask: Tensor | None, key: Tensor) -> Tensor | None:
        """Both masks in one."""
        if key_mask is None:
            return mask
        if key_mask.dtype != bool:
            raise DTypeError(f"key_mask is {key_mask.spec}, expected booleans, true for keys that are seen",
                             operator=title(self), hint="PyTorch's key_padding_mask is the opposite: ~key_padding_mask")
        if key_mask.shape != key.shape[:2]:
            raise ShapeError(f"key_mask is {key_mask.spec}, expected (batch, keys) = {key.shape[:2]}",
                             operator=title(self))
        seen = key_mask[:, None, None, :]
        if mask is None:
            return seen
        return logical_and(mask, seen) if mask.dtype == bool else where(seen, mask, float("-inf"))

    def describe(self) -> str:
        said = [("head_size", self.head_size, self.features // self.heads), ("key_heads", self.key_heads, self.heads),
                ("dropout", self.dropout, 0.0)]
        return ", ".join([f"{self.features}, {self.heads}", *[f"{n}={x}" for n, x, usual in said if x != usual]])


class PositionalEncoding(Module):
    """x (batch, length, features) plus sines and cosines of the places (Vaswani et al. 2017), from `first` on; then
    dropout.  There is no longest length."""

    def __init__(self, features: int, dropout: float = 0.0, *, base: float = 10000.0,
                 generator: Generator | None = None) -> None:
        at_least_one("PositionalEncoding", features=features)
        self.features, self.base = features, base
        self.dropout = Dropout(dropout, own_generator(generator))

    def forward(self, x: Tensor, first: int = 0) -> Tensor:
        check_rank(self, x, "BLF")
        check_length(self, x, 2, self.features, "features")
        places = positional_encoding(x.shape[1] + first, self.features, base=self.base, dtype=x.dtype, device=x.device)
        y: Tensor = self.dropout(x + places[first:])
        return y

    def describe(self) -> str:
        return f"{self.features}"
