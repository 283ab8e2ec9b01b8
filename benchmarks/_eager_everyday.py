"""Small calls that eager code is full of."""

from __future__ import annotations

from typing import Any

import numpy as np

import nnc_core as nnc
from benchmarks._eager import Case, Operands, layer_norm, log_softmax, softmax


def everyday() -> list[Case]:
    of, m = Operands(8), np.arange(16, dtype=np.float32).reshape(4, 4)
    a, b, rng, drawn = of.a, of.b, of.rng, of.drawn
    x, y, w = of.t_a, of.t_b, nnc.asarray(m)
    written, kept, table, grid = nnc.asarray(a), a.copy(), nnc.asarray(m), m.copy()
    condition, mask, row = x > 0, a > 0, nnc.asarray(m[:1])
    listed = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]

    def write(into: Any, key: Any, value: Any) -> None:
        into[key] = value

    return [
        Case("x + y", lambda: x + y, lambda: a + b),
        Case("x * 2.0", lambda: x * 2.0, lambda: a * 2.0),
        Case("x > y", lambda: x > y, lambda: a > b),
        Case("w @ w", lambda: w @ w, lambda: m @ m),
        Case("where(c, x, y)", lambda: nnc.where(condition, x, y), lambda: np.where(mask, a, b)),
        Case("where(c, x, 0.0)", lambda: nnc.where(condition, x, 0.0), lambda: np.where(mask, a, np.float32(0))),
        Case("x[3]", lambda: x[3], lambda: a[3]),
        Case("x[2:5]", lambda: x[2:5], lambda: a[2:5]),
        Case("w[1, 2]", lambda: w[1, 2], lambda: m[1, 2]),
        Case("w[:, 1]", lambda: w[:, 1], lambda: m[:, 1]),
        Case("x[3] = 1.0", lambda: write(written, 3, 1.0), lambda: write(kept, 3, 1.0)),
        Case("w[1, 2] = 1.0", lambda: write(table, (1, 2), 1.0), lambda: write(grid, (1, 2), 1.0)),
        Case("w[1] = w[2]", lambda: write(table, 1, table[2]), lambda: write(grid, 1, grid[2])),
        Case("zeros(8)", lambda: nnc.zeros(8), lambda: np.zeros(8, np.float32)),
        Case("ones((4, 4))", lambda: nnc.ones((4, 4)), lambda: np.ones((4, 4), np.float32)),
        Case("full(8, 2.0)", lambda: nnc.full(8, 2.0), lambda: np.full(8, 2.0, np.float32)),
        Case("arange(8)", lambda: nnc.arange(8), lambda: np.arange(8)),
        Case("zeros_like(x)", lambda: nnc.zeros_like(x), lambda: np.zeros_like(a)),
        Case("float(x[0])", lambda: float(x[0]), lambda: float(a[0])),
        Case("asarray(list)", lambda: nnc.asarray(listed), lambda: np.asarray(listed, np.float32)),
        Case("asarray(array)", lambda: nnc.asarray(a), lambda: np.array(a)),
        Case("x.numpy()", lambda: x.numpy(), lambda: a.copy()),
        Case("einsum ij,jk->ik", lambda: nnc.einsum("ij,jk->ik", w, w), lambda: np.einsum("ij,jk->ik", m, m)),
        Case("einsum ij->ji", lambda: nnc.einsum("ij->ji", w), lambda: np.einsum("ij->ji", m)),
        Case("softmax", lambda: nnc.softmax(x), lambda: softmax(a)),
        Case("log_softmax", lambda: nnc.log_softmax(x), lambda: log_softmax(a)),
        Case("layer_norm", lambda: nnc.layer_norm(x), lambda: layer_norm(a)),
        Case("mean", lambda: nnc.mean(x), lambda: np.mean(a)),
        Case("sum(axis=0)", lambda: nnc.sum(w, axis=0), lambda: np.sum(m, axis=0)),
        Case("argmax", lambda: nnc.argmax(x), lambda: np.argmax(a)),
        Case("random.normal(8)", lambda: drawn.normal(8), lambda: rng.standard_normal(8, np.float32)),
        Case("random.uniform(8)", lambda: drawn.uniform(8), lambda: rng.random(8, np.float32)),
        Case("concat", lambda: nnc.concat([x, y]), lambda: np.concatenate([a, b])),
        Case("stack", lambda: nnc.stack([x, y]), lambda: np.stack([a, b])),
        Case("w.T", lambda: w.T, lambda: m.T),
        Case("reshape", lambda: w.reshape(16), lambda: m.reshape(16)),
        Case("astype", lambda: x.astype(nnc.int32), lambda: a.astype(np.int32)),
        Case("x[rows]", lambda: w[[0, 2]], lambda: m[[0, 2]]),
        Case("copy", lambda: x.copy(), lambda: a.copy()),
        Case("x.shape", lambda: x.shape, lambda: a.shape),
        Case("sum of rows", lambda: [nnc.sum(row) for row in w], lambda: [np.sum(row) for row in m]),
        Case("relu", lambda: nnc.relu(x), lambda: np.maximum(a, 0)),
        Case("clip", lambda: nnc.clip(x, 0.0, 1.0), lambda: np.clip(a, 0.0, 1.0)),
        Case("expand_dims", lambda: nnc.expand_dims(x, 0), lambda: np.expand_dims(a, 0)),
        Case("squeeze", lambda: nnc.squeeze(row, 0), lambda: np.squeeze(m[:1], 0)),
    ]
