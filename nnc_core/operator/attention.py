"""Scaled dot-product attention (Vaswani et al. 2017), with heads of queries that share keys and values."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, Generic

from nnc_core.base.dtype import boolean, int64
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.wide import widely
from nnc_core.shape import neural as rule
from nnc_core.type import DimLike, Dims

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def _grouped(F: Namespace[V], x: V, key_heads: DimLike) -> V:
    """(..., heads, queries, k) as (..., heads of keys, queries of all heads that share one, k)."""
    *lead, heads, length, features = x.shape
    return x if heads == key_heads else F.reshape(x, shape=(*lead, key_heads, heads // key_heads * length, features))


def product(F: Namespace[V], a: V, b: V, transpose_b: bool, shape: Dims) -> V:
    """a (..., heads, queries, k) times b (..., heads of keys, k, n), or its transpose; in that shape."""
    y = F.matmul(_grouped(F, a, b.shape[-3]), b, transpose_a=False, transpose_b=transpose_b)
    return y if y.shape == shape else F.reshape(y, shape=shape)


def _visible(F: Namespace[V], queries: DimLike, keys: DimLike, offset: int) -> V:
    """Query i may look at key j if j <= i + offset."""
    i = F.reshape(F.arange(size=queries, dtype=int64, start=offset), shape=(queries, 1))
    return F.less_equal(F.arange(size=keys, dtype=int64), i)


def _masked(F: Namespace[V], scores: V, mask: tuple[Any, ...], causal: bool, offset: int) -> tuple[V | None, ...]:
    """Scores with what is added to them, and what may be looked at; None if that is everything."""
    allowed = _visible(F, scores.shape[-2], scores.shape[-1], offset) if causal else None
    for m in mask:
        if m.dtype != boolean:
            scores = F.add(scores, m)
            m = F.less(-inf, scores)
        allowed = m if allowed is None else F.logical_and(allowed, m)
    return scores, allowed


class Attention(Base[V], Generic[V]):
    """A mask is boolean, true where a query may look at a key, or a float that is added to the scores; it is broadcast
    to (..., heads, queries, keys).  A query that may look at nothing has weights 0."""

    @op(composite=True, infer=rule.attention_weights)
    @widely
    def attention_weights(self, query: V, key: V, *mask: V, scale: float, causal: bool, offset: int) -> V:
        """softmax(scale * query @ key.T): (..., heads, queries, keys); if `causal`, query i sees keys up to i + offset.

        Keys may have fewer heads than queries, each for as many of theirs, which stand side by side.
        """
        F: Any = self
        shape = (*query.shape[:-1], key.shape[-2])
        scores, allowed = _masked(F, product(F, F.multiply(query, scale), key, True, shape), mask, causal, offset)
        last = len(shape) - 1
        return F.softmax(scores, axis=last) if allowed is None else F.masked_softmax(scores, allowed, axis=last)  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.attention)
    @widely
    def scaled_dot_product_attention(self, query: V, key: V, value: V, *mask: V, scale: float, causal: bool,
                                     offset: int) -> V:
        """attention_weights(query, key) @ value: (..., heads, queries, features of a value)."""
        F: Any = self
        weights = F.attention_weights(query, key, *mask, scale=scale, causal=causal, offset=offset)
        return product(F, weights, value, False, (*query.shape[:-1], value.shape[-1]))  # type: ignore[no-any-return]
