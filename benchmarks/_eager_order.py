"""Sorting, sets, counts and random numbers."""

from __future__ import annotations

import numpy as np

import nnc_core as nnc
from benchmarks._eager import Case, Operands


def order(of: Operands) -> list[Case]:
    x, y, n, w, mask, x64 = of.t_a, of.t_b, of.t_i, of.t_m, of.t_bits, of.t_a64
    n32, few, xh, xs, xpos, a = of.t_g, of.t_small, of.t_half, of.t_ordered, of.t_positive, of.a
    b, i, m, g, bits, small = of.b, of.i, of.m, of.g, of.bits, of.small
    ordered, a64, half, positive, rng, drawn = of.ordered, of.a64, of.half, of.positive, of.rng, of.drawn
    size = of.size
    return [
        Case("sort", lambda: nnc.sort(x), lambda: np.sort(a)),
        Case("sort descending", lambda: nnc.sort(x, descending=True), lambda: -np.sort(-a)),
        Case("sort int32", lambda: nnc.sort(n32), lambda: np.sort(g)),
        Case("sort int64", lambda: nnc.sort(n), lambda: np.sort(i)),
        Case("sort float64", lambda: nnc.sort(x64), lambda: np.sort(a64)),
        Case("sort float16", lambda: nnc.sort(xh), lambda: np.sort(half)),
        Case("sort rows", lambda: nnc.sort(w, axis=1), lambda: np.sort(m, 1)),
        Case("sort columns", lambda: nnc.sort(w, axis=0), lambda: np.sort(m, 0)),
        Case("argsort", lambda: nnc.argsort(x), lambda: np.argsort(a, kind="stable")),
        Case("argsort int64", lambda: nnc.argsort(n), lambda: np.argsort(i, kind="stable")),
        Case("argsort rows", lambda: nnc.argsort(w, axis=1), lambda: np.argsort(m, 1, kind="stable")),
        Case("partition", lambda: nnc.partition(x, size // 2), lambda: np.partition(a, size // 2)),
        Case("argpartition", lambda: nnc.argpartition(x, size // 2), lambda: np.argpartition(a, size // 2)),
        Case("top_k 5", lambda: nnc.top_k(x, 5), lambda: np.argpartition(a, size - 5)),
        Case("median", lambda: nnc.median(x), lambda: np.median(a)),
        Case("median rows", lambda: nnc.median(w, axis=1), lambda: np.median(m, 1)),
        Case("nanmedian", lambda: nnc.nanmedian(x), lambda: np.nanmedian(a)),
        Case("percentile", lambda: nnc.percentile(x, 30), lambda: np.percentile(a, 30)),
        Case("quantile of 3", lambda: nnc.quantile(x, [0.1, 0.5, 0.9]), lambda: np.quantile(a, [0.1, 0.5, 0.9])),
        Case("nanquantile", lambda: nnc.nanquantile(x, 0.3), lambda: np.nanquantile(a, 0.3)),
        Case("lexsort", lambda: nnc.lexsort((n32, few)), lambda: np.lexsort((g, small))),
        Case("searchsorted", lambda: nnc.searchsorted(xs, x), lambda: np.searchsorted(ordered, a)),
        Case("digitize 10", lambda: nnc.digitize(x, xs[:10]), lambda: np.digitize(a, ordered[:10])),
        Case("isin", lambda: nnc.isin(n32, few), lambda: np.isin(g, small)),
        Case("isin floats", lambda: nnc.isin(x, y), lambda: np.isin(a, b)),
        Case("unique_values", lambda: nnc.unique_values(few), lambda: np.unique(small)),
        Case("unique_values floats", lambda: nnc.unique_values(x), lambda: np.unique(a)),
        Case("unique_inverse", lambda: nnc.unique_inverse(few), lambda: np.unique(small, return_inverse=True)),
        Case("unique_counts", lambda: nnc.unique_counts(few), lambda: np.unique(small, return_counts=True)),
        Case("union1d", lambda: nnc.union1d(few, few), lambda: np.union1d(small, small)),
        Case("intersect1d", lambda: nnc.intersect1d(n32, few), lambda: np.intersect1d(g, small)),
        Case("setdiff1d", lambda: nnc.setdiff1d(n32, few), lambda: np.setdiff1d(g, small)),
        Case("bincount", lambda: nnc.bincount(few), lambda: np.bincount(small)),
        Case("bincount weights", lambda: nnc.bincount(few, x), lambda: np.bincount(small, a)),
        Case("histogram", lambda: nnc.histogram(x), lambda: np.histogram(a)),
        Case("histogram ints", lambda: nnc.histogram(n32), lambda: np.histogram(g)),
        Case("histogram edges", lambda: nnc.histogram(x, xs[:: size // 8]), 
             lambda: np.histogram(a, ordered[:: size // 8])),
        Case("histogram2d", lambda: nnc.histogram2d(x, y), lambda: np.histogram2d(a, b)),
        Case("count_nonzero", lambda: nnc.count_nonzero(mask), lambda: np.count_nonzero(bits)),
        Case("count_nonzero floats", lambda: nnc.count_nonzero(x), lambda: np.count_nonzero(a)),
        Case("nonzero", lambda: nnc.nonzero(mask), lambda: np.nonzero(bits)),
        Case("argwhere", lambda: nnc.argwhere(w), lambda: np.argwhere(m)),
        Case("normal", lambda: drawn.normal(size), lambda: rng.standard_normal(size, np.float32)),
        Case("uniform", lambda: drawn.uniform(size), lambda: rng.random(size, np.float32)),
        Case("integers", lambda: drawn.integers(0, 100, size), lambda: rng.integers(0, 100, size)),
        Case("integers int8", lambda: drawn.integers(0, 100, size, dtype="int8"),
             lambda: rng.integers(0, 100, size, np.int8)),
        Case("bernoulli", lambda: drawn.bernoulli(0.5, size), lambda: rng.random(size, np.float32) < 0.5),
        Case("exponential", lambda: drawn.exponential(size), lambda: rng.standard_exponential(size, np.float32)),
        Case("poisson", lambda: drawn.poisson(3.0, size), lambda: rng.poisson(3.0, size)),
        Case("poisson 1000", lambda: drawn.poisson(1000.0, size), lambda: rng.poisson(1000.0, size)),
        Case("gamma", lambda: drawn.gamma(2.0, size), lambda: rng.standard_gamma(2.0, size, np.float32)),
        Case("binomial", lambda: drawn.binomial(10, 0.3, size), lambda: rng.binomial(10, 0.3, size)),
        Case("permutation", lambda: drawn.permutation(size), lambda: rng.permutation(size)),
        Case("permutation of rows", lambda: drawn.permutation(w), lambda: rng.permutation(m)),
        Case("shuffle", lambda: drawn.shuffle(y), lambda: rng.shuffle(b)),
        Case("choice", lambda: drawn.choice(size, size), lambda: rng.choice(size, size)),
        Case("choice of 5 without replacement", lambda: drawn.choice(size, 5, replace=False),
             lambda: rng.choice(size, 5, replace=False)),
        Case("choice with weights", lambda: drawn.choice(size, size, weights=xpos),
             lambda: rng.choice(size, size, p=positive / positive.sum(dtype=np.float64))),
    ]
