"""Further draws of generators."""

from __future__ import annotations

import numpy as np

import nnc_core as nnc
from benchmarks._eager import Case, Operands


def draws(of: Operands) -> list[Case]:
    size, rng, drawn = of.size, of.rng, of.drawn
    shares, cov, mean = np.full(4, 0.25), np.eye(3), np.zeros(3)
    t_cov, t_mean = nnc.asarray(cov), nnc.asarray(mean)
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
    ]
