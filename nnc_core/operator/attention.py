"""Scaled dot-product attention (Vaswani et al. 2017), with heads of queries that share keys and values.

Its body forms all scores at once.  Library code need not: the sums of exponentials that attention gives beside its
result let the way back find each weight again from its score, so that neither way keeps more than a block of scores
(Milakov and Gimelshein 2018, Dao et al. 2022).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from nnc_core.base.dtype import accumulator, boolean, int64
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.wide import narrowed, widely, widened_operand
from nnc_core.shape import neural as rule
from nnc_core.type import DimLike, Dims

if TYPE_CHECKING:
    from nnc_core.operator import Namespace

SETTINGS = ("scale", "causal", "offset")
"""Attributes of all operators here, in their order."""


def _grouped(F: Namespace[V], x: V, key_heads: DimLike) -> V:
    """(..., heads, queries, k) as (..., heads of keys, queries of all heads that share one, k)."""
    *lead, heads, length, features = x.shape
    return x if heads == key_heads else F.reshape(x, shape=(*lead, key_heads, heads // key_heads * length, features))


def product(F: Namespace[V], a: V, b: V, transpose_b: bool, shape: Dims) -> V:
    """a (..., heads, queries, k) times b (..., heads of keys, k, n), or its transpose; in that shape."""
    y = F.matmul(_grouped(F, a, b.shape[-3]), b, transpose_a=False, transpose_b=transpose_b)
    return y if y.shape == shape else F.reshape(y, shape=shape)


def _over_queries(F: Namespace[V], a: V, b: V, key_heads: DimLike) -> V:
    """The transpose of a (..., heads, queries, k) times b (..., heads, queries, n), summed over the heads that share
    keys: (..., heads of keys, k, n)."""
    return F.matmul(_grouped(F, a, key_heads), _grouped(F, b, key_heads), transpose_a=True, transpose_b=False)


def _along_keys(F: Namespace[V], row: V) -> V:
    """(..., queries) as (..., queries, 1)."""
    return F.reshape(row, shape=(*row.shape, 1))


# ---- scores
def _visible(F: Namespace[V], queries: DimLike, keys: DimLike, offset: int) -> V:
    """Query i may look at key j if j <= i + offset."""
    i = F.reshape(F.arange(size=queries, dtype=int64, start=offset), shape=(queries, 1))
    return F.less_equal(F.arange(size=keys, dtype=int64), i)


def masked(F: Namespace[V], scores: V, mask: tuple[Any, ...], causal: bool, offset: int) -> tuple[V, V | None]:
    """Scores with what is added to them, and what may be looked at; None if that is everything."""
    allowed = _visible(F, scores.shape[-2], scores.shape[-1], offset) if causal else None
    for m in mask:
        if m.dtype != boolean:
            scores = F.add(scores, narrowed(F, m, scores.dtype))
            m = F.not_equal(scores, -inf)
        allowed = m if allowed is None else F.logical_and(allowed, m)
    return scores, allowed


def _scores(F: Namespace[V], scaled: V, key: V, mask: tuple[Any, ...], causal: bool,
            offset: int) -> tuple[Any, Any]:
    """The scores of queries that are scaled, and what may be looked at."""
    found = product(F, scaled, key, True, (*scaled.shape[:-1], key.shape[-2]))
    return masked(F, found, mask, causal, offset)


class _Weighted(NamedTuple):
    weights: Any
    sums: Any
    """The logarithm of what the exponentials of scores were divided by."""


def _weighted(F: Namespace[V], scores: V, allowed: V | None) -> _Weighted:
    """Softmax along the last axis, over what may be looked at; rows of which nothing may be have weights and sums 0."""
    last = len(scores.shape) - 1
    if scores.shape[last] == 0:  # nothing has no maximum
        return _Weighted(scores, F.sum(scores, axis=(last,)))
    left = scores if allowed is None else F.where(allowed, scores, -inf)
    highest = F.max(left, axis=(last,), keepdims=True)
    if allowed is not None:
        highest = F.where(F.equal(highest, -inf), 0, highest)
    e = F.exp(F.subtract(left, highest))
    total = F.sum(e, axis=(last,), keepdims=True)
    if allowed is not None:
        total = F.where(F.equal(total, 0), 1, total)
    sums = F.add(highest, F.log(total))
    return _Weighted(F.divide(e, total), F.reshape(sums, shape=sums.shape[:-1]))


# ---- derivatives
class _Ahead(NamedTuple):
    """Values that all derivatives of attention go through."""

    scaled: Any
    """The queries, scaled."""
    weights: Any


def _ahead(F: Namespace[V], query: V, key: V, sums: V, mask: tuple[Any, ...], scale: float, causal: bool,
           offset: int) -> _Ahead:
    """The weights, found again from the sums."""
    scaled = F.multiply(query, scale)
    scores, allowed = _scores(F, scaled, key, mask, causal, offset)
    left = scores if allowed is None else F.where(allowed, scores, -inf)
    return _Ahead(scaled, F.exp(F.subtract(left, _along_keys(F, sums))))


def _of_scores(F: Namespace[V], weights: V, value: V, cotangent: V, shift: V) -> V:
    """The cotangents of scores: weights * (cotangent @ value.T - shift)."""
    onto = product(F, cotangent, value, True, weights.shape)
    return F.multiply(weights, F.subtract(onto, _along_keys(F, shift)))


def _shift(F: Namespace[V], result: V, cotangent: V) -> V:
    """The sums of result * cotangent, which the weights of each query share."""
    both = F.multiply(widened_operand(F, result), widened_operand(F, cotangent))
    return F.sum(both, axis=(len(both.shape) - 1,))


def _attention_vjp(F: Namespace[V], g: Any, y: Any, query: V, key: V, value: V, *rest: Any) -> tuple[Any, ...]:
    """The shift is less by the cotangent of the sums; without one, library code that finds it itself may be asked."""
    mask, settings = rest[: -len(SETTINGS)], dict(zip(SETTINGS, rest[-len(SETTINGS) :], strict=True))
    result, sums = F.picks(y)
    cotangent, of_sums = F.zeros_like(result) if g[0] is None else g[0], g[1]

    def shift() -> Any:
        found = _shift(F, result, cotangent)
        return found if of_sums is None else F.subtract(found, of_sums)

    if of_sums is None:
        whole = F.attention_gradients_from_result(query, key, value, cotangent, sums, result, *mask, **settings)
    else:
        whole = F.attention_gradients(query, key, value, cotangent, sums, shift(), *mask, **settings)

    def of_mask(m: Any) -> Any:
        wide = [widened_operand(F, x) for x in (query, key, value, cotangent)]
        weights = _ahead(F, wide[0], wide[1], sums, tuple([widened_operand(F, x) for x in mask]), **settings).weights
        return narrowed(F, F.sum_to(_of_scores(F, weights, wide[2], wide[3], shift()), m.shape), m.dtype)

    return (*F.picks(whole), *[None if m.dtype == boolean else lambda m=m: of_mask(m) for m in mask])


def _attention_jvp(F: Namespace[V], tangents: Any, y: Any, query: V, key: V, value: V, *rest: Any) -> tuple[Any, ...]:
    scale, causal, offset = rest[-len(SETTINGS) :]
    q, k, v, *mask = (widened_operand(F, x) for x in (query, key, value, *rest[: -len(SETTINGS)]))
    dq, dk, dv, *dmask = (None if t is None else widened_operand(F, t) for t in tangents)
    scaled, weights = _ahead(F, q, k, F.picks(y)[1], tuple(mask), scale, causal, offset)
    shape = weights.shape
    moved = [] if dq is None else [product(F, F.multiply(dq, scale), k, True, shape)]
    moved += [] if dk is None else [product(F, scaled, dk, True, shape)]
    moved += [F.broadcast_to(t, shape=shape) for t in dmask if t is not None]
    out = (*shape[:-1], value.shape[-1])
    terms = [] if dv is None else [product(F, weights, dv, False, out)]
    of_sums = None
    if moved:
        scores = _total(F, moved)
        mean = F.sum(F.multiply(weights, scores), axis=(len(shape) - 1,), keepdims=True)
        of_sums = F.reshape(mean, shape=shape[:-1])
        terms.append(product(F, F.multiply(weights, F.subtract(scores, mean)), v, False, out))
    return narrowed(F, _total(F, terms), query.dtype), of_sums


def _total(F: Namespace[V], terms: list[Any]) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = F.add(total, term)
    return total


class Attention(Base[V], Generic[V]):
    """A mask is boolean, true where a query may look at a key, or a float that is added to the scores; it is broadcast
    to (..., heads, queries, keys).  A query that may look at nothing has weights 0.  If `causal`, query i sees keys up
    to i + offset.  Keys may have fewer heads than queries, each for as many of theirs, which stand side by side.
    """

    @op(composite=True, infer=rule.attention_weights)
    @widely
    def attention_weights(self, query: V, key: V, *mask: V, scale: float, causal: bool, offset: int) -> V:
        """softmax(scale * query @ key.T): (..., heads, queries, keys)."""
        F: Any = self
        scores, allowed = _scores(F, F.multiply(query, scale), key, mask, causal, offset)
        last = len(scores.shape) - 1
        return F.softmax(scores, axis=last) if allowed is None else F.masked_softmax(scores, allowed, axis=last)  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.attention, vjp=_attention_vjp, jvp=_attention_jvp)
    def scaled_dot_product_attention(self, query: V, key: V, value: V, *mask: V, scale: float, causal: bool,
                                     offset: int) -> V:
        """(y, sums): attention_weights(query, key) @ value, (..., heads, queries, features of a value); for each query
        the logarithm of the sum of its scores' exponentials, 0 where it may look at nothing.  Sums of halves are
        float32."""
        F: Any = self
        if accumulator(query.dtype) != query.dtype:
            wide = [widened_operand(F, x) for x in (query, key, value, *mask)]
            y, sums = F.picks(F.scaled_dot_product_attention(*wide, scale=scale, causal=causal, offset=offset))
            return F.together(narrowed(F, y, query.dtype), sums)  # type: ignore[no-any-return]
        weights, sums = _weighted(F, *_scores(F, F.multiply(query, scale), key, mask, causal, offset))
        return F.together(product(F, weights, value, False, (*query.shape[:-1], value.shape[-1])), sums)  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.attention_gradients)
    def attention_gradients(self, query: V, key: V, value: V, cotangent: V, sums: V, shift: V, *mask: V, scale: float,
                            causal: bool, offset: int) -> V:
        """Cotangents of query, key and value, from that of attention's result and from its sums.

        With weights p = exp(scores - sums) and ds = p * (cotangent @ value.T - shift): scale * ds @ key,
        scale * ds.T @ query and p.T @ cotangent.  The shift (..., heads, queries) is the sum of result * cotangent.
        """
        F: Any = self
        if accumulator(query.dtype) != query.dtype:
            wide = [widened_operand(F, x) for x in (query, key, value, cotangent, sums, shift, *mask)]
            whole = F.attention_gradients(*wide, scale=scale, causal=causal, offset=offset)
            return F.together(*[narrowed(F, x, query.dtype) for x in F.picks(whole)])  # type: ignore[no-any-return]
        scaled, weights = _ahead(F, query, key, sums, mask, scale, causal, offset)
        of_scores = _of_scores(F, weights, value, cotangent, shift)
        of_query = F.multiply(product(F, of_scores, key, False, query.shape), scale)
        shared = key.shape[-3]
        return F.together(of_query, _over_queries(F, of_scores, scaled, shared),  # type: ignore[no-any-return]
                          _over_queries(F, weights, cotangent, shared))

    @op(composite=True, infer=rule.attention_gradients_from_result)
    def attention_gradients_from_result(self, query: V, key: V, value: V, cotangent: V, sums: V, result: V, *mask: V,
                                        scale: float, causal: bool, offset: int) -> V:
        """attention_gradients whose shift is found from attention's result."""
        F: Any = self
        shift = _shift(F, result, cotangent)
        return F.attention_gradients(query, key, value, cotangent, sums, shift, *mask, scale=scale, causal=causal,  # type: ignore[no-any-return]
                                     offset=offset)
