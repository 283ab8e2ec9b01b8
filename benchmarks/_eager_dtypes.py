"""Functions of numbers other than float32: complex ones, float64, and halves beside NumPy's float32."""

from __future__ import annotations

import numpy as np

import nnc_core as nnc
from benchmarks._eager import Case, Operands


def wide(of: Operands) -> list[Case]:
    z, t_z, positive, t_positive = of.spectrum, of.t_spectrum, of.positive, of.t_positive
    return [
        Case("abs complex", lambda: nnc.abs(t_z), lambda: np.abs(z)),
        Case("angle complex", lambda: nnc.angle(t_z), lambda: np.angle(z)),
        Case("conj complex", lambda: nnc.conj(t_z), lambda: np.conj(z)),
        Case("real complex", lambda: nnc.real(t_z), lambda: np.real(z).copy()),
        Case("multiply complex", lambda: t_z * t_z, lambda: z * z),
        Case("exp complex", lambda: nnc.exp(t_z / 1e4), lambda: np.exp(z / np.float32(1e4))),
        Case("sum complex", lambda: nnc.sum(t_z), lambda: np.sum(z)),
        Case("sqrt float64", lambda: nnc.sqrt(nnc.abs(of.t_a64)), lambda: np.sqrt(np.abs(of.a64))),
        Case("log float64", lambda: nnc.log(t_positive.astype("float64")),
             lambda: np.log(positive.astype(np.float64))),
    ]


def halves(of: Operands) -> list[Case]:
    a, m, positive = of.a, of.m, of.positive
    return [
        Case("bfloat16 divide / float32", lambda: of.t_bf / of.t_bf, lambda: a / a),
        Case("bfloat16 sqrt / float32", lambda: nnc.sqrt(of.t_bf), lambda: np.sqrt(positive)),
        Case("float16 tanh / float32", lambda: nnc.tanh(of.t_half), lambda: np.tanh(a)),
        Case("float16 subtract / float32", lambda: of.t_half - of.t_half, lambda: a - a),
        Case("float16 negative / float32", lambda: -of.t_half, lambda: -a),
        Case("bfloat16 mean / float32", lambda: nnc.mean(of.t_bf), lambda: np.mean(a)),
        Case("bfloat16 max / float32", lambda: nnc.max(of.t_bf), lambda: np.max(a)),
        Case("float16 sum rows / float32", lambda: nnc.sum(of.t_half.reshape(m.shape), axis=1), lambda: np.sum(m, 1)),
        Case("float16 cumsum / float32", lambda: nnc.cumsum(of.t_half), lambda: np.cumsum(a)),
        Case("float16 clip / float32", lambda: nnc.clip(of.t_half, -1.0, 1.0), lambda: np.clip(a, -1.0, 1.0)),
        Case("float16 add 1.0 / float32", lambda: of.t_half + 1.0, lambda: a + np.float32(1)),
    ]
