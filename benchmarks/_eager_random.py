"""Further draws of generators, and functions with a counterpart of another name or none that is called alike."""

from __future__ import annotations

import numpy as np

import nnc_core as nnc
from benchmarks._eager import Case, Operands


def further(of: Operands) -> list[Case]:
    size, rng, drawn, x, w, a, m = of.size, of.rng, of.drawn, of.t_a, of.t_m, of.a, of.m
    mask, bits, ts, square, n, i = of.t_bits, of.bits, of.t_square, of.square, of.t_i, of.i
    counted, cov, mean = of.side, np.eye(3), np.zeros(3)
    shares, t_cov, t_mean = np.full(4, 0.25), nnc.asarray(cov), nnc.asarray(mean)
    positive, t_positive = of.positive, of.t_positive
    z, t_z = of.spectrum, of.t_spectrum
    return [
        Case("bits", lambda: drawn.bits(size), lambda: rng.integers(0, 2**32, size, np.uint32)),
        Case("beta", lambda: drawn.beta(2.0, 3.0, size), lambda: rng.beta(2.0, 3.0, size)),
        Case("dirichlet", lambda: drawn.dirichlet(shares, size // 4), lambda: rng.dirichlet(shares, size // 4)),
        Case("gumbel", lambda: drawn.gumbel(size), lambda: rng.gumbel(size=size)),
        Case("laplace", lambda: drawn.laplace(size), lambda: rng.laplace(size=size)),
        Case("logistic", lambda: drawn.logistic(size), lambda: rng.logistic(size=size)),
        Case("multinomial", lambda: drawn.multinomial(10, shares, size // 4),
             lambda: rng.multinomial(10, shares, size // 4)),
        Case("multivariate_normal", lambda: drawn.multivariate_normal(t_mean, t_cov, size // 4),
             lambda: rng.multivariate_normal(mean, cov, size // 4)),
        Case("spawn", lambda: drawn.spawn(2), lambda: rng.spawn(2)),
        Case("apply_along_axis", lambda: nnc.apply_along_axis(nnc.sum, 1, w), lambda: np.sum(m, 1)),
        Case("fromfunction", lambda: nnc.fromfunction(nnc.add, (counted, counted)),
             lambda: np.fromfunction(np.add, (counted, counted))),
        Case("fill_diagonal", lambda: nnc.fill_diagonal(ts, 1.0), lambda: np.fill_diagonal(square, 1.0)),
        Case("piecewise", lambda: nnc.piecewise(x, [mask], [1.0, 2.0]), lambda: np.piecewise(a, [bits], [1.0, 2.0])),
        Case("put_along_axis", lambda: nnc.put_along_axis(x, n, x, 0), lambda: np.put_along_axis(a.copy(), i, a, 0)),
        Case("place", lambda: nnc.place(x, mask, [1.0, 2.0]), lambda: np.place(a.copy(), bits, [1.0, 2.0])),
        Case("from_dlpack", lambda: nnc.from_dlpack(a), lambda: np.from_dlpack(a)),
        Case("unique rows", lambda: nnc.unique(of.t_small), lambda: np.unique(of.small)),
        Case("fliplr", lambda: nnc.fliplr(w), lambda: np.fliplr(m).copy()),
        Case("flipud", lambda: nnc.flipud(w), lambda: np.flipud(m).copy()),
        Case("rot90", lambda: nnc.rot90(w), lambda: np.rot90(m).copy()),
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
