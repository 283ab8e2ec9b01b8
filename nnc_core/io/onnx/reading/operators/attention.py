"""Attention, and rotary embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.io.onnx.reading.run import NodeCall
from nnc_core.type import Dim
from nnc_core.values.tensor import Tensor

SCORES = 3
"""The number of the output with scores or weights."""


@operator("Attention", since=23)
def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, past_key: Tensor | None = None,
              past_value: Tensor | None = None, lengths: Tensor | None = None, *, is_causal: int = 0,
              kv_num_heads: int | None = None, left_window_size: int = -1, q_num_heads: int | None = None,
              qk_matmul_output_mode: int = 0, right_window_size: int = -1, scale: float | None = None,
              softcap: float = 0.0, softmax_precision: int = 0, call: NodeCall) -> Any:
    flat = q.ndim == 3
    if flat:
        q, k, v = (_heads(x, n) for x, n in ((q, q_num_heads), (k, kv_num_heads), (v, kv_num_heads)))
    offset: Any = 0 if past_key is None else past_key.shape[-2]
    if past_key is not None and past_value is not None:
        k, v = nnc.concat([past_key, k], axis=-2), nnc.concat([past_value, v], axis=-2)
    elif lengths is not None:
        offset = nnc.subtract(lengths, q.shape[-2])
    window = tuple(None if n < 0 else n for n in (left_window_size, right_window_size))
    options = {"causal": bool(is_causal), "offset": offset, "window": window if any(n is not None for n in window)
               else None, "key_lengths": lengths, "scale": scale, "softcap": softcap or None}
    mask = None if mask is None else _widened(mask, k.shape[-2])
    y = nnc.scaled_dot_product_attention(q, k, v, mask, **options)
    if flat:
        y = nnc.reshape(nnc.swapaxes(y, 1, 2), (y.shape[0], y.shape[2], y.shape[1] * y.shape[3]))
    found = (y, k, v)
    return (*found, _scores(q, k, mask, qk_matmul_output_mode, options)) if call.wants(SCORES) else found


def _widened(mask: Tensor, keys: Any) -> Tensor:
    """A mask for the first keys only, which hides the others."""
    missing = keys - mask.shape[-1]
    if isinstance(missing, Dim) or missing <= 0:
        return mask
    widths = [(0, 0)] * (mask.ndim - 1) + [(0, missing)]
    return nnc.pad(mask, widths, constant_values=False if mask.dtype == bool else -np.inf)


def _scores(q: Tensor, k: Tensor, mask: Tensor | None, mode: int, options: dict[str, Any]) -> Tensor:
    """Products (0), bounded (1), with what masks add (2), or their softmax (3)."""
    if mode == WEIGHTS:
        return nnc.attention_weights(q, k, mask, **options)
    if mode == MASKED:
        return nnc.attention_scores(q, k, mask, **options)
    return nnc.attention_scores(q, k, scale=options["scale"], softcap=options["softcap"] if mode == BOUNDED else None)


BOUNDED, MASKED, WEIGHTS = 1, 2, 3


def _heads(x: Tensor, heads: int | None) -> Tensor:
    """(batch, length, features) as (batch, heads, length, features of a head)."""
    count = heads or 1
    parts = nnc.reshape(x, (x.shape[0], x.shape[1], count, x.shape[2] // count))
    return nnc.swapaxes(parts, 1, 2)


@operator("RotaryEmbedding", since=23)
def rotary_embedding(x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None = None, *, interleaved: int = 0,
                     num_heads: int = 0, rotary_embedding_dim: int = 0) -> Tensor:
    """The first features of each head turned; caches are by position, or for each element without positions."""
    heads = x if x.ndim == 4 else _heads(x, num_heads)
    if positions is not None:
        cos, sin = nnc.take(cos, positions, axis=0), nnc.take(sin, positions, axis=0)
    turned = int(rotary_embedding_dim or heads.shape[-1])
    cos, sin = (nnc.expand_dims(t[..., : turned // 2], 1) for t in (cos, sin))
    y = nnc.rotary_embedding(heads[..., :turned], cos, sin, interleaved=bool(interleaved))
    if turned < heads.shape[-1]:
        y = nnc.concat([y, heads[..., turned:]], axis=-1)
    return y if x.ndim == 4 else nnc.reshape(nnc.swapaxes(y, 1, 2), x.shape)
