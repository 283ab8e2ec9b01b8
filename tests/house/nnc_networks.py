"""NNC's commands of neural networks: convolutions, pools, norms, attention, recurrent networks, losses.

NNC's kernels are (out, rows, columns, in) and its losses give a number for each row: the rows of this table say how
that is written here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

import nnc_core as nnc
from tests.house.nnc_rows import Backward, Command
from tests.house.rows import Array, Row
from tests.tensors.sliding import correlated, pooled, spread

_RNG = np.random.default_rng(13)


def _numbers(*shape: int) -> Array:
    return np.asarray(_RNG.uniform(-1, 1, shape))


IMAGE, KERNEL, BIAS = _numbers(2, 5, 4, 4), _numbers(6, 3, 2, 2), _numbers(6)
BORDER, NOTHING, TWO, ONE = ((1, 1), (0, 1)), ((0, 0), (0, 0)), (2, 1), (1, 1)
OURS = (1, 2, 3, 0)
"""From (out, rows, columns, in)."""


def _pool(kind: str) -> Row:
    def wanted(x: Array) -> Array:
        best, also = pooled(kind, x, (3, 2), TWO, BORDER, ONE)
        return np.asarray(best if kind == "max" else best / also)

    pool = getattr(nnc, f"{kind}_pool2d")
    return Row(f"{kind}_pool2d", lambda x: pool(x, (3, 2), strides=TWO, padding=BORDER), wanted, (IMAGE,),
               "the border is not counted" if kind == "avg" else "")


WINDOWS: dict[str, Command] = {
    "CONVOLUTION": Command(Row(
        "conv2d, permute_dims, add",
        lambda x, w, b: nnc.conv2d(x, nnc.permute_dims(w, OURS), strides=TWO, padding=BORDER, groups=2) + b,
        lambda x, w, b: correlated(x, w.transpose(OURS), TWO, BORDER, ONE, 2) + b, (IMAGE, KERNEL, BIAS),
        "groups and dilation are arguments; the bias is added, in one kernel"), Backward((0, 1, 2))),
    "CONVOLUTION_TRANSPOSE": Command(Row(
        "conv_transpose2d, permute_dims, add",
        lambda x, w, b: nnc.conv_transpose2d(x, nnc.permute_dims(w, OURS), strides=2, padding=BORDER,
                                             output_padding=(1, 0)) + b,
        lambda x, w, b: spread(x, w.transpose(OURS), (2, 2), BORDER, ONE, (1, 0)) + b,
        (_numbers(1, 3, 2, 6), KERNEL, _numbers(2))), Backward((0, 1, 2))),
    "MAX_POOL": Command(_pool("max"), Backward((0,))),
    "AVERAGE_POOL": Command(_pool("avg"), Backward((0,))),
    "UPSAMPLE": Command(Row(
        "upsample", lambda x: [nnc.upsample(x, 2), nnc.upsample(x, 2, method="linear")],
        lambda x: [x.repeat(2, 1).repeat(2, 2), _doubled(_doubled(x, 1), 2)], (IMAGE,),
        "`resize` takes sizes"), Backward((0,))),
}  # fmt: skip


def _doubled(x: Array, axis: int) -> Array:
    """Linear between pixels, whose centres are at halves."""
    x = np.moveaxis(x, axis, 0)
    before, after = np.concatenate([x[:1], x[:-1]]), np.concatenate([x[1:], x[-1:]])
    y = np.stack([0.25 * before + 0.75 * x, 0.75 * x + 0.25 * after], axis=1).reshape(-1, *x.shape[1:])
    return np.moveaxis(y, 0, axis)


# ---- products and attention
def _attended(q: Array, k: Array, v: Array) -> Array:
    """Of (batch, length, heads, features); query i sees keys up to i."""
    scores = 0.7 * np.einsum("bqhe,bkhe->bhqk", q, k)
    scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    return np.asarray(np.einsum("bhqk,bkhe->bqhe", special.softmax(scores, axis=-1), v))


PRODUCTS: dict[str, Command] = {
    "GEMM": Command(Row("matmul, add", lambda a, w, b: a @ nnc.matrix_transpose(w) + b, lambda a, w, b: a @ w.T + b,
                        (_numbers(3, 4), _numbers(5, 4), _numbers(5)), "transposes are folded into the product"),
                    Backward((0, 1, 2))),
    "SCALED_DOT_PRODUCT_ATTENTION": Command(Row(
        "scaled_dot_product_attention",
        lambda q, k, v: nnc.scaled_dot_product_attention(q, k, v, scale=0.7, causal=True, layout="BLHE"), _attended,
        (_numbers(2, 3, 2, 2), _numbers(2, 3, 2, 2), _numbers(2, 3, 2, 3)),
        "heads are joined by `merge_heads`, with a matrix and a bias"), Backward((0, 1, 2))),
    "SOFTMAX": Command(Row("softmax", nnc.softmax, lambda x: special.softmax(x, axis=-1), (_numbers(3, 4),)),
                       Backward((0,))),
}  # fmt: skip


# ---- norms
EPSILON, KEPT = 1e-3, 0.9


def _standardised(x: Array, axes: tuple[int, ...]) -> Array:
    return np.asarray((x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + EPSILON))


def _batch_norm(x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    """What training takes: the result, and the next running moments."""
    y, m, v = nnc.batch_norm_training(x, scale, bias, epsilon=EPSILON)
    return [y, KEPT * mean + (1 - KEPT) * m, KEPT * variance + (1 - KEPT) * v]


def _batch_norm_host(x: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> Any:
    still = IMAGE  # the moments are constants to differentiation
    m, v = still.mean((0, 1, 2)), still.var((0, 1, 2))
    return [_standardised(x, (0, 1, 2)) * scale + bias, KEPT * mean + (1 - KEPT) * m,
            KEPT * variance + (1 - KEPT) * v]


def _grouped(x: Array, scale: Array, bias: Array) -> Array:
    y = x.reshape(*x.shape[:-1], 2, -1)
    return _standardised(y, (1, 2, 4)).reshape(x.shape) * scale + bias


CHANNELS = (_numbers(4), _numbers(4))
NORMS: dict[str, Command] = {
    "BATCH_NORM": Command(Row("batch_norm_training, batch_norm", _batch_norm, _batch_norm_host,
                              (IMAGE, *CHANNELS, _numbers(4), 1 + _numbers(4) ** 2),
                              "a test takes `batch_norm` with the running moments"), Backward((0, 1, 2))),
    "LAYER_NORM": Command(Row("layer_norm", lambda x, a, b: nnc.layer_norm(x, a, b, epsilon=EPSILON),
                              lambda x, a, b: _standardised(x, (-1,)) * a + b, (IMAGE, *CHANNELS)),
                          Backward((0, 1, 2))),
    "GROUP_NORM": Command(Row("group_norm", lambda x, a, b: nnc.group_norm(x, 2, a, b, epsilon=EPSILON), _grouped,
                              (IMAGE, *CHANNELS)), Backward((0, 1, 2))),
    "RMSNORM": Command(Row("rms_norm", lambda x, a: nnc.rms_norm(x, a, epsilon=EPSILON),
                           lambda x, a: x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * a,
                           (IMAGE, CHANNELS[0])), Backward((0, 1))),
}  # fmt: skip


# ---- recurrent networks and dropout
def _lstm(x: Any, w: Any, u: Any, b: Any, h: Any, c: Any) -> Any:
    y, (last, cell) = nnc.lstm(x, nnc.RecurrentWeights(w, u, b), (h, c))
    return [y, last, cell]


def _lstm_host(x: Array, w: Array, u: Array, b: Array, h: Array, c: Array) -> Any:
    (h,), (c,) = h, c
    rows = []
    for step in x:
        i, f, g, o = np.split(step @ w + h @ u + b, 4, axis=-1)
        c = special.expit(f) * c + special.expit(i) * np.tanh(g)
        h = special.expit(o) * np.tanh(c)
        rows.append(h)
    return [np.stack(rows), h[None], c[None]]


RATE = 0.25


def _dropped(x: Any) -> Any:
    return nnc.dropout(x, RATE, generator=nnc.Generator(9))


def _kept() -> Array:
    """What the same generator keeps."""
    return np.asarray(_dropped(nnc.ones((6, 50), dtype="float64")).numpy())


STATES: dict[str, Command] = {
    "LSTM": Command(Row("lstm", _lstm, _lstm_host,
                        (_numbers(3, 2, 2), _numbers(2, 8), _numbers(2, 8), _numbers(8), _numbers(1, 2, 2),
                         _numbers(1, 2, 2)), "layers, directions, lengths and projections are arguments"),
                    Backward((0, 1, 2, 3, 4, 5))),
    "DROPOUT": Command(Row("dropout", lambda x: [_share(_dropped(x)), _dropped(x) * (1 - RATE)],
                           lambda x: [1 - RATE, x * (_kept() > 0)], (2 + _numbers(6, 50),),
                           "the whole array at once: shared axes; the mask is no result", near=0.08),
                       Backward(forward=Row("vjp, dropout", lambda g, x: nnc.vjp(_dropped, x)[1](g)[0],
                                            lambda g, x: g * _kept(), (_numbers(6, 50), _numbers(6, 50)),
                                            "gradient of DROPOUT: the numbers that were kept"))),
}  # fmt: skip


def _share(x: Any) -> Any:
    return nnc.mean(nnc.astype(x != 0, nnc.float64))


# ---- losses, a number for each row
LOGITS, TARGETS, LABELS = _numbers(3, 4), _RNG.uniform(0.1, 0.9, (3, 4)), np.array([2, 0, 3])
CHANCES = special.softmax(LOGITS, axis=-1)
BETA = 1.5


def _smooth(xp: Any, a: Any, b: Any) -> Any:
    """Quadratic or linear by the sum of a whole row."""
    d = a - b
    size = xp.sum(xp.abs(d), axis=-1)
    return xp.where(size < BETA, 0.5 / BETA * xp.sum(d * d, axis=-1), size - 0.5 * BETA)


def _log_chances(x: Array) -> Array:
    return np.asarray(special.log_softmax(x, axis=-1)[np.arange(3), LABELS])


ROWS_OF = "a number for each row: reduction=\"none\", then the sum or the mean"
LOSSES: dict[str, Command] = {
    "MSE": Command(Row("mse_loss, mean", lambda a, b: nnc.mean(nnc.mse_loss(a, b, reduction="none"), axis=-1),
                       lambda a, b: ((a - b) ** 2).mean(-1), (LOGITS, TARGETS), ROWS_OF), Backward((0, 1))),
    "SMOOTH_L1": Command(Row("where, abs, sum", lambda a, b: _smooth(nnc, a, b), lambda a, b: _smooth(np, a, b),
                             (LOGITS, TARGETS * [[1], [1], [3]]),
                             "NNC chooses by the sum of a row; `smooth_l1_loss` by each number"), Backward((0, 1))),
    "BINARY_CROSSENTROPY": Command(Row(
        "binary_cross_entropy, sum",
        lambda p, t: nnc.sum(nnc.binary_cross_entropy(p, t, reduction="none"), axis=-1),
        lambda p, t: -(special.xlogy(t, p) + special.xlog1py(1 - t, -p)).sum(-1), (CHANCES, TARGETS), ROWS_OF),
        Backward((0,))),
    "SIGMOID_BINARY_CROSSENTROPY": Command(Row(
        "binary_cross_entropy_with_logits, sum, sigmoid",
        lambda x, t: [nnc.sum(nnc.binary_cross_entropy_with_logits(x, t, reduction="none"), axis=-1), nnc.sigmoid(x)],
        lambda x, t: [(np.logaddexp(0, x) - t * x).sum(-1), special.expit(x)], (LOGITS, TARGETS), ROWS_OF),
        Backward((0,))),
    "CATEGORICAL_CROSSENTROPY": Command(Row(
        "categorical_cross_entropy", lambda p, i: nnc.categorical_cross_entropy(p, i, reduction="none"),
        lambda p, i: -np.log(p[np.arange(3), i]), (CHANCES, LABELS), "label smoothing is one number"), Backward((0,))),
    "SOFTMAX_CROSSENTROPY": Command(Row(
        "cross_entropy, softmax", lambda x, i: [nnc.cross_entropy(x, i, reduction="none"), nnc.softmax(x)],
        lambda x, i: [-_log_chances(x), special.softmax(x, axis=-1)], (LOGITS, LABELS), ROWS_OF), Backward((0,))),
}  # fmt: skip

COMMANDS: dict[str, Command] = {**WINDOWS, **PRODUCTS, **NORMS, **STATES, **LOSSES}
