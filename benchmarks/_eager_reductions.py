"""Reductions, bits and conversions."""

from __future__ import annotations

import numpy as np

import nnc_core as nnc
from benchmarks._eager import Case, Operands, cast_numpy, cast_ours, logsumexp


def reductions(of: Operands) -> list[Case]:
    x, n, w, mask, x64, n32 = of.t_a, of.t_i, of.t_m, of.t_bits, of.t_a64, of.t_g
    x8, xh, xbf, xfar, xpos, a = of.t_i8, of.t_half, of.t_bf, of.t_far, of.t_positive, of.a
    b, i, m, g, bits, far = of.b, of.i, of.m, of.g, of.bits, of.far
    a64, half, i8, bf, positive = of.a64, of.half, of.i8, of.bf, of.positive
    return [
        Case("sum", lambda: nnc.sum(x), lambda: np.sum(a)),
        Case("sum int8", lambda: nnc.sum(x8), lambda: np.sum(i8)),
        Case("sum bool", lambda: nnc.sum(mask), lambda: np.sum(bits)),
        Case("sum int32", lambda: nnc.sum(n32), lambda: np.sum(g)),
        Case("sum float16 / float32", lambda: nnc.sum(xh), lambda: np.sum(a)),
        Case("sum bfloat16 / float32", lambda: nnc.sum(xbf), lambda: np.sum(a)),
        Case("sum rows", lambda: nnc.sum(w, axis=1), lambda: np.sum(m, 1)),
        Case("sum columns", lambda: nnc.sum(w, axis=0), lambda: np.sum(m, 0)),
        Case("sum of transposed", lambda: nnc.sum(w.T, axis=0), lambda: np.sum(m.T, 0)),
        Case("mean", lambda: nnc.mean(x), lambda: np.mean(a)),
        Case("mean float16 / float32", lambda: nnc.mean(xh), lambda: np.mean(a)),
        Case("mean int32", lambda: nnc.mean(n32), lambda: np.mean(g)),
        Case("var", lambda: nnc.var(x), lambda: np.var(a)),
        Case("std", lambda: nnc.std(x), lambda: np.std(a)),
        Case("var rows", lambda: nnc.var(w, axis=1), lambda: np.var(m, 1)),
        Case("prod", lambda: nnc.prod(x), lambda: np.prod(a)),
        Case("max", lambda: nnc.max(x), lambda: np.max(a)),
        Case("max float16 / float32", lambda: nnc.max(xh), lambda: np.max(a)),
        Case("max rows", lambda: nnc.max(w, axis=1), lambda: np.max(m, 1)),
        Case("argmax", lambda: nnc.argmax(x), lambda: np.argmax(a)),
        Case("argmax rows", lambda: nnc.argmax(w, axis=1), lambda: np.argmax(m, 1)),
        Case("argmax columns", lambda: nnc.argmax(w, axis=0), lambda: np.argmax(m, 0)),
        Case("all", lambda: nnc.all(mask), lambda: np.all(bits)),
        Case("any floats", lambda: nnc.any(x), lambda: np.any(a)),
        Case("ptp", lambda: nnc.ptp(x), lambda: np.ptp(a)),
        Case("nansum", lambda: nnc.nansum(x), lambda: np.nansum(a)),
        Case("nanmean", lambda: nnc.nanmean(x), lambda: np.nanmean(a)),
        Case("nanmax", lambda: nnc.nanmax(x), lambda: np.nanmax(a)),
        Case("nanvar", lambda: nnc.nanvar(x), lambda: np.nanvar(a)),
        Case("logsumexp", lambda: nnc.logsumexp(x), lambda: logsumexp(a)),
        Case("norm", lambda: nnc.linalg.vector_norm(x), lambda: np.linalg.norm(a)),
        Case("norm 1", lambda: nnc.linalg.vector_norm(x, ord=1), lambda: np.linalg.norm(a, 1)),
        Case("norm rows", lambda: nnc.linalg.vector_norm(w, axis=1), lambda: np.linalg.norm(m, axis=1)),
        Case("cumsum", lambda: nnc.cumsum(x), lambda: np.cumsum(a)),
        Case("cumsum rows", lambda: nnc.cumsum(w, axis=1), lambda: np.cumsum(m, 1)),
        Case("cumprod", lambda: nnc.cumprod(x), lambda: np.cumprod(a)),
        Case("cumsum int8", lambda: nnc.cumsum(x8), lambda: np.cumsum(i8)),
        Case("diff", lambda: nnc.diff(x), lambda: np.diff(a)),
        Case("average", lambda: nnc.average(x, weights=xpos), lambda: np.average(a, weights=positive)),
        Case("cov", lambda: nnc.cov(w[:2]), lambda: np.cov(m[:2])),
        Case("trapezoid", lambda: nnc.trapezoid(x), lambda: np.trapezoid(a)),
        Case("packbits", lambda: nnc.packbits(mask), lambda: np.packbits(bits)),
        Case("unpackbits", lambda: nnc.unpackbits(of.t_packed), lambda: np.unpackbits(of.packed)),
        Case("bitwise_and", lambda: n & n, lambda: i & i),
        Case("bitwise_count", lambda: nnc.bitwise_count(n32), lambda: np.bitwise_count(g)),
        *[Case(f"{source} to {target}", cast_ours(t, target), cast_numpy(host, target))
          for source, t, host in (("float32", xfar, far), ("float64", x64, a64), ("int32", n32, g),
                                 ("float16", xh, half))
          for target in ("int8", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64", "bool")
          if source != target],
        Case("bool to float32", lambda: mask.astype("float32"), lambda: bits.astype(np.float32)),
        Case("bfloat16 to float32", lambda: xbf.astype("float32"), lambda: bf.astype(np.float32)),
        Case("float16 add / float32", lambda: xh + xh, lambda: a + b),
        Case("float16 multiply / float32", lambda: xh * xh, lambda: a * b),
        Case("float16 compare / float32", lambda: xh > xh, lambda: a > b),
        Case("float16 maximum / float32", lambda: nnc.maximum(xh, xh), lambda: np.maximum(a, b)),
        Case("float16 exp / float32", lambda: nnc.exp(xh), lambda: np.exp(a)),
        Case("float16 divide / float32", lambda: xh / xh, lambda: a / b),
        Case("bfloat16 add / float32", lambda: xbf + xbf, lambda: a + b),
        Case("bfloat16 multiply / float32", lambda: xbf * xbf, lambda: a * b),
        Case("bfloat16 compare / float32", lambda: xbf > xbf, lambda: a > b),
        Case("bfloat16 maximum / float32", lambda: nnc.maximum(xbf, xbf), lambda: np.maximum(a, b)),
        Case("bfloat16 exp / float32", lambda: nnc.exp(xbf), lambda: np.exp(a)),
        Case("float16 where / float32", lambda: nnc.where(mask, xh, xh), lambda: np.where(bits, a, b)),
    ]
