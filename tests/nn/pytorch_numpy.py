"""PyTorch's layers written in NumPy, on arrays called and laid out as in its `state_dict`; batches first, NCHW."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import expit, softmax

State = Mapping[str, Any]


def under(state: State, prefix: str) -> dict[str, Any]:
    return {name.removeprefix(f"{prefix}."): x for name, x in state.items() if name.startswith(f"{prefix}.")}


def linear(s: State, x: Any) -> Any:
    return x @ s["weight"].T + s.get("bias", 0)


def conv2d(s: State, x: Any, stride: int = 1, padding: int = 0, groups: int = 1) -> Any:
    out, _, height, width = s["weight"].shape
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (height, width), (2, 3))[:, :, ::stride, ::stride]
    parts = [np.einsum("nchwij,ocij->nohw", w, k) for w, k in
             zip(np.split(windows, groups, 1), np.split(s["weight"], groups, 0), strict=True)]
    return np.concatenate(parts, 1) + s.get("bias", np.zeros(out))[:, None, None]


def conv_transpose2d(s: State, x: Any, stride: int = 1) -> Any:
    _, out, height, width = s["weight"].shape
    n, _, rows, columns = x.shape
    y = np.zeros((n, out, (rows - 1) * stride + height, (columns - 1) * stride + width))
    for i in range(rows):
        for j in range(columns):
            added = np.einsum("nc,cohw->nohw", x[:, :, i, j], s["weight"])
            y[:, :, i * stride : i * stride + height, j * stride : j * stride + width] += added
    return y + s["bias"][:, None, None]


def batch_norm(s: State, x: Any) -> Any:
    mean, variance, weight, bias = (s[n][:, None, None] for n in ("running_mean", "running_var", "weight", "bias"))
    return (x - mean) / np.sqrt(variance + 1e-5) * weight + bias


def layer_norm(s: State, x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * s["weight"] + s["bias"]


def recurrent(s: State, x: Any, kind: str, layers: int = 1, directions: int = 1) -> Any:
    """The outputs of nn.RNN, nn.GRU or nn.LSTM with batch_first=True."""
    for layer in range(layers):
        sides = []
        for d in range(directions):
            name = f"l{layer}{'_reverse' * d}"
            own = [s[f"{part}_{name}"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
            projection = s.get(f"weight_hr_{name}")
            h = np.zeros((len(x), own[1].shape[1]))
            c = np.zeros((len(x), own[1].shape[0] // {"rnn": 1, "gru": 3, "lstm": 4}[kind]))
            steps = range(x.shape[1])
            found = {}
            for t in reversed(steps) if d else steps:
                h, c = _step(kind, x[:, t] @ own[0].T + own[2], h @ own[1].T + own[3], h, c)
                h = h if projection is None else h @ projection.T
                found[t] = h
            sides.append(np.stack([found[t] for t in steps], 1))
        x = np.concatenate(sides, -1)
    return x


def _step(kind: str, a: Any, b: Any, h: Any, c: Any) -> tuple[Any, Any]:
    if kind == "rnn":
        return np.tanh(a + b), c
    if kind == "gru":
        (ar, az, an), (br, bz, bn) = np.split(a, 3, 1), np.split(b, 3, 1)
        z = expit(az + bz)
        return (1 - z) * np.tanh(an + expit(ar + br) * bn) + z * h, c
    i, f, g, o = np.split(a + b, 4, 1)
    c = expit(f) * c + expit(i) * np.tanh(g)
    return expit(o) * np.tanh(c), c


def attention(s: State, heads: int, query: Any, key: Any, value: Any) -> Any:
    """nn.MultiheadAttention with batch_first=True."""
    if "in_proj_weight" in s:
        weights = np.split(s["in_proj_weight"], 3)
    else:
        weights = [s[f"{name}_proj_weight"] for name in "qkv"]
    biases = np.split(s["in_proj_bias"], 3)
    q, k, v = (x @ w.T + b for x, w, b in zip((query, key, value), weights, biases, strict=True))
    each = [softmax(a @ b.transpose(0, 2, 1) / np.sqrt(a.shape[-1]), -1) @ c for a, b, c in
            zip(*[np.split(x, heads, -1) for x in (q, k, v)], strict=True)]
    return linear(under(s, "out_proj"), np.concatenate(each, -1))


def encoder_layer(s: State, heads: int, x: Any) -> Any:
    """nn.TransformerEncoderLayer, post-norm, relu."""
    x = layer_norm(under(s, "norm1"), x + attention(under(s, "self_attn"), heads, x, x, x))
    hidden = np.maximum(linear(under(s, "linear1"), x), 0)
    return layer_norm(under(s, "norm2"), x + linear(under(s, "linear2"), hidden))


def decoder_layer(s: State, heads: int, x: Any, memory: Any) -> Any:
    """nn.TransformerDecoderLayer without masks, post-norm, relu."""
    x = layer_norm(under(s, "norm1"), x + attention(under(s, "self_attn"), heads, x, x, x))
    x = layer_norm(under(s, "norm2"), x + attention(under(s, "multihead_attn"), heads, x, memory, memory))
    hidden = np.maximum(linear(under(s, "linear1"), x), 0)
    return layer_norm(under(s, "norm3"), x + linear(under(s, "linear2"), hidden))
