"""Attention, and what tells it where things are."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.dtype import accumulator
from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.functions.attention_masks import Mask, Sight, checked_softcap, hidden, mask_of, scale_of, scores_of, sight
from nnc_core.functions.constants import constant_beside
from nnc_core.functions.dropouts import check_rate, kept
from nnc_core.functions.floats import one_dtype
from nnc_core.functions.pieces import cut
from nnc_core.functions.reduction import as_inexact
from nnc_core.operator.attention import product
from nnc_core.operator.wide import narrowed
from nnc_core.random.generator import Generator
from nnc_core.shape.axes import normalise_axis
from nnc_core.type import Dim, DimLike, admit_numpy, default_float, whole
from nnc_core.values.arguments import ArrayLike, as_value, as_values, names_itself, stack_of
from nnc_core.values.dispatch import F
from nnc_core.values.modes import current_stack, use_device
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = [
    "AttentionWeights", "attention_scores", "attention_weights", "merge_heads", "multi_head_attention",
    "positional_encoding", "rotary_embedding", "rotary_tables", "rotate_half", "scaled_dot_product_attention",
    "split_heads",
]  # fmt: skip

LAYOUTS = ("BHLE", "BLHE")
"""Batch, heads, length, features; any number of axes for B."""


class AttentionWeights(NamedTuple):
    """Weights of queries (features, heads * size), of keys and values (features, key heads * size), of the results
    (heads * size, features); and a bias for each, or None."""

    query: ArrayLike
    key: ArrayLike
    value: ArrayLike
    output: ArrayLike
    query_bias: ArrayLike | None = None
    key_bias: ArrayLike | None = None
    value_bias: ArrayLike | None = None
    output_bias: ArrayLike | None = None


# ---- the product
def _exchanged(v: Value) -> Value:
    """Heads and length at each other's place."""
    n = v.ndim
    return F.permute(v, axes=(*range(n - 3), n - 2, n - 3, n - 1))


@names_itself
def scaled_dot_product_attention(query: ArrayLike, key: ArrayLike, value: ArrayLike, mask: ArrayLike | None = None, /,
                                 *, causal: bool = False, offset: Any = 0, window: Any = None,
                                 key_lengths: ArrayLike | None = None, scale: float | None = None,
                                 softcap: float | None = None, dropout: float = 0.0,
                                 generator: Generator | None = None, layout: str = "BHLE") -> Tensor:
    """softmax(scale * query @ key.T + mask) @ value.

    Query (batch, heads, queries, features), key and value (batch, key heads, keys, features), of which each head serves
    heads / key heads neighbouring ones of the queries; layout "BLHE" has the heads behind the length.  A mask is
    boolean, true where a query may look at a key, or float and added; it is broadcast to (batch, heads, queries, keys).
    If `causal`, query i sees keys up to i + `offset`.  A query that sees nothing gives 0.  `scale` is
    1 / sqrt(features) where it is not said.  `dropout` is the rate at which weights are left out; without it a device
    may compute block by block, as cpu:0 does, so that memory is linear in the lengths.

    `offset` may be a named dimension, or a number for each sequence (batch).  A `window` (left, right) hides keys that
    are further away from i + offset, on a side that is not None; a single number holds for both.  Keys from
    `key_lengths` (batch) on are hidden.  With a `softcap` scores s become softcap * tanh(s / softcap) before the mask.
    """
    check_rate(dropout)
    task = _task((query, key, value), mask, layout)
    q, k, v = task.values
    y = attended(q, k, v, task.mask, sight(causal, offset, window, key_lengths), scale, dropout, generator,
                 checked_softcap(softcap))
    return Tensor(_exchanged(y) if layout == "BLHE" else y)


class _Task(NamedTuple):
    """Queries, keys and perhaps values of one dtype, heads before the length, and the mask if there is one."""

    values: list[Value]
    mask: tuple[Value, ...]


def _task(arrays: Sequence[ArrayLike], mask: ArrayLike | None, layout: str) -> _Task:
    if layout not in LAYOUTS:
        raise AttributeValueError(f"layout {layout!r} is none of {', '.join(map(repr, LAYOUTS))}")
    stack = stack_of(arrays)
    values = one_dtype([as_value(x, stack) for x in arrays])
    for name, x in zip(("query", "key", "value"), values, strict=False):
        if x.ndim < 3:
            raise ShapeError(f"the {name} is {x.spec}, expected {', '.join(layout)}")
    if layout == "BLHE":
        values = list(map(_exchanged, values))
    return _Task(values, () if mask is None else (as_value(mask, stack),))


def attended(q: Value, k: Value, v: Value, mask: tuple[Value, ...], seen: Sight, scale: float | None,
             dropout: float, generator: Generator | None, softcap: float | None = None) -> Value:
    """The results of queries; by the operator that devices have kernels of, if nothing else is asked for."""
    both = mask_of(q, k, mask, seen)
    named: dict[str, Any] = {"scale": scale_of(q, scale), "causal": both.causal, "offset": both.offset}
    if dropout == 0 and softcap is None:
        return F.pick(F.scaled_dot_product_attention(q, k, v, *both.inputs, **named), index=0)
    weights = _weights(q, k, both, named, softcap)
    weights = kept(weights, dropout, generator) if dropout else weights
    return product(F, weights, v, False, (*weights.shape[:-1], v.shape[-1]))


def _weights(q: Value, k: Value, mask: Mask, named: dict[str, Any], softcap: float | None) -> Value:
    if softcap is None:
        return F.attention_weights(q, k, *mask.inputs, **named)
    scores, allowed = hidden(scores_of(q, k, named["scale"], softcap), mask)
    last = scores.ndim - 1
    weights = F.softmax(scores, axis=last) if allowed is None else F.masked_softmax(scores, allowed, axis=last)
    return narrowed(F, weights, q.dtype)


@names_itself
def attention_weights(query: ArrayLike, key: ArrayLike, mask: ArrayLike | None = None, /, *, causal: bool = False,
                      offset: Any = 0, window: Any = None, key_lengths: ArrayLike | None = None,
                      scale: float | None = None, softcap: float | None = None, layout: str = "BHLE") -> Tensor:
    """(batch, heads, queries, keys): what values are weighed by in `scaled_dot_product_attention`."""
    task = _task((query, key), mask, layout)
    q, k = task.values
    both = mask_of(q, k, task.mask, sight(causal, offset, window, key_lengths))
    named = {"scale": scale_of(q, scale), "causal": both.causal, "offset": both.offset}
    return Tensor(_weights(q, k, both, named, checked_softcap(softcap)))


@names_itself
def attention_scores(query: ArrayLike, key: ArrayLike, mask: ArrayLike | None = None, /, *, causal: bool = False,
                     offset: Any = 0, window: Any = None, key_lengths: ArrayLike | None = None,
                     scale: float | None = None, softcap: float | None = None, layout: str = "BHLE") -> Tensor:
    """(batch, heads, queries, keys): what `attention_weights` are the softmax of; -inf where keys are hidden."""
    task = _task((query, key), mask, layout)
    q, k = task.values
    scores = scores_of(q, k, scale_of(q, scale), checked_softcap(softcap))
    scores, allowed = hidden(scores, mask_of(q, k, task.mask, sight(causal, offset, window, key_lengths)))
    return Tensor(narrowed(F, scores if allowed is None else F.where(allowed, scores, -inf), q.dtype))


# ---- heads
def _split(v: Value, heads: int) -> Value:
    if v.ndim < 2 or whole(heads, "heads") < 1 or (isinstance(v.shape[-1], int) and v.shape[-1] % heads):
        raise ShapeError(f"{v.spec} cannot be split into {heads} heads")
    return _exchanged(F.reshape(v, shape=(*v.shape[:-1], heads, v.shape[-1] // heads)))


def _merged(v: Value) -> Value:
    v = _exchanged(v)
    return F.reshape(v, shape=(*v.shape[:-2], v.shape[-2] * v.shape[-1]))


@names_itself
def split_heads(x: ArrayLike, heads: int, /) -> Tensor:
    """(..., length, heads * features) as (..., heads, length, features)."""
    return Tensor(_split(as_value(x), heads))


@names_itself
def merge_heads(x: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, /) -> Tensor:
    """(..., heads, length, features) as (..., length, heads * features); with a weight (heads * features, n) and a bias
    the result of a layer on it (NNC's attention with a unify head)."""
    stack = stack_of((x, weight, bias))
    v = as_value(x, stack)
    if v.ndim < 3:
        raise ShapeError(f"{v.spec} has no heads, expected (..., heads, length, features)")
    return Tensor(_layer(_merged(v), *[None if p is None else as_value(p, stack) for p in (weight, bias)]))


def _layer(v: Value, weight: Value | None, bias: Value | None) -> Value:
    y = v if weight is None else F.matmul(v, weight)
    return y if bias is None else F.add(y, bias)


@names_itself
def multi_head_attention(query: ArrayLike, key: ArrayLike, value: ArrayLike, weights: AttentionWeights, /,
                         mask: ArrayLike | None = None, *, heads: int, key_heads: int | None = None,
                         causal: bool = False, offset: int = 0, scale: float | None = None, dropout: float = 0.0,
                         generator: Generator | None = None) -> Tensor:
    """Query (..., queries, features), key and value (..., keys, features), each through its weight and split into
    heads; `scaled_dot_product_attention` of these; the heads side by side through the output's weight.

    `key_heads` counts those of keys and values, which then are fewer: `heads` is a multiple of it.
    """
    check_rate(dropout)
    stack = stack_of((query, key, value, *weights))
    w = AttentionWeights(*[None if p is None else as_value(p, stack) for p in weights])
    shared = heads if key_heads is None else key_heads
    inputs = [(query, w.query, w.query_bias, heads), (key, w.key, w.key_bias, shared),
              (value, w.value, w.value_bias, shared)]
    q, k, v = one_dtype([_split(_layer(as_value(x, stack), a, b), n) for x, a, b, n in inputs])
    extra = () if mask is None else (as_value(mask, stack),)
    y = attended(q, k, v, extra, Sight(bool(causal), int(offset)), scale, dropout, generator)
    return Tensor(_layer(_merged(y), w.output, w.output_bias))


# ---- places
def _waves(places: Any, features: int, base: float, dtype: Any, device: Any) -> tuple[Value, Value]:
    """Cosines and sines of each place times each frequency, along a new last axis; places from 0 on for a length.

    Angles are float32 or wider: halves cannot tell large places apart.
    """
    wanted = default_float() if dtype is None else admit_numpy(dtype)
    wide = accumulator(wanted)
    with use_device(device if device is not None else current_stack()):
        several = isinstance(places, (Tensor, np.ndarray, list, tuple))
        if not several and not isinstance(places, Dim):
            places = whole(places, "the length", 0)
        at = F.cast(as_value(places), dtype=wide) if several else F.arange(size=places, dtype=wide)
    frequencies = np.exp(-log(base) * np.arange(0, features, 2) / features)
    angles = F.multiply(F.reshape(at, shape=(*at.shape, 1)), constant_beside(at, frequencies.astype(wide)))
    cos, sin = (wave if wide == wanted else F.cast(wave, dtype=wanted) for wave in (F.cos(angles), F.sin(angles)))
    return cos, sin


@names_itself
def positional_encoding(length: DimLike, features: int, /, *, base: float = 10000.0, dtype: Any = None,
                        device: Any = None) -> Tensor:
    """(length, features): sines of place * base**(-2 i / features) at even features 2 i, cosines at odd ones (Vaswani
    et al. 2017)."""
    cos, sin = _waves(length, whole(features, "features", 0), base, dtype, device)
    both = F.concat(*[F.reshape(wave, shape=(*wave.shape, 1)) for wave in (sin, cos)], axis=2)
    every = F.reshape(both, shape=(both.shape[0], 2 * sin.shape[1]))
    return Tensor(every if features % 2 == 0 else cut(every, 1, 0, features))


@names_itself
def rotary_tables(places: ArrayLike, features: int, /, *, base: float = 10000.0, dtype: Any = None,
                  device: Any = None) -> tuple[Tensor, Tensor]:
    """Cosines and sines (..., features / 2) of place * base**(-2 i / features), for places (...), or those from 0 to a
    length: what `rotary_embedding` takes."""
    if whole(features, "features", 0) % 2:
        raise AttributeValueError(f"{features} features are no pairs")
    cos, sin = _waves(places, features, base, dtype, device)
    return Tensor(cos), Tensor(sin)


@names_itself
def rotate_half(x: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """The second half along an axis with its sign changed, then the first."""
    v = as_value(x)
    a, b = _halves(v, normalise_axis(axis, v.ndim))
    return Tensor(F.concat(F.negative(b), a, axis=normalise_axis(axis, v.ndim)))


def _halves(v: Value, at: int) -> tuple[Value, Value]:
    length = v.shape[at]
    if isinstance(length, int) and length % 2:
        raise ShapeError(f"axis {at} of {v.spec} has no two halves")
    return cut(v, at, 0, length // 2), cut(v, at, length // 2, length)


@names_itself
def rotary_embedding(x: ArrayLike, cos: ArrayLike, sin: ArrayLike, /, *, interleaved: bool = False) -> Tensor:
    """Pairs of features of x (..., features) turned by angles (Su et al. 2021), whose cosines and sines
    (..., features / 2) are broadcast.  A pair has a feature of each half, or neighbours if `interleaved`."""
    v, c, s = as_values(x, cos, sin)
    v = as_inexact(v)
    if not v.ndim:
        raise ShapeError(f"x is {v.spec}, expected (..., features)")
    last = v.ndim - 1
    if interleaved:
        half, _ = _halves(v, last)
        pairs = F.reshape(v, shape=(*half.shape, 2))
        a, b = (F.reshape(cut(pairs, last + 1, k, k + 1), shape=half.shape) for k in (0, 1))
    else:
        a, b = _halves(v, last)
    c, s = (u if u.dtype == v.dtype else F.cast(u, dtype=v.dtype) for u in (c, s))
    turned = [F.subtract(F.multiply(a, c), F.multiply(b, s)), F.add(F.multiply(b, c), F.multiply(a, s))]
    if any(t.shape != a.shape for t in turned):
        raise ShapeError(f"cosines {c.spec} and sines {s.spec} do not broadcast to half of {v.spec}")
    if not interleaved:
        return Tensor(F.concat(*turned, axis=last))
    both = F.concat(*[F.reshape(t, shape=(*t.shape, 1)) for t in turned], axis=last + 1)
    return Tensor(F.reshape(both, shape=v.shape))
