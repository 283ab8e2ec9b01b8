"""Generators, and what they draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnc_core.base.unknown_names import answers

_SAME = ("bernoulli", "beta", "binomial", "bits", "categorical", "choice", "dirichlet", "exponential", "gamma",
         "gumbel", "integers", "laplace", "logistic", "multinomial", "multivariate_normal", "normal", "permutation",
         "poisson", "randint", "shuffle", "truncated_normal", "uniform")
_ADVICE = {name: f"nnc.Generator(seed).{name}(...)" for name in _SAME} | {
    "PRNGKey": "nnc.Generator(seed)", "RandomState": "nnc.Generator(seed)", "default_rng": "nnc.Generator(seed)",
    "fold_in": "generator.spawn(n)", "key": "nnc.Generator(seed)", "manual_seed": "nnc.manual_seed(seed)",
    "rand": "nnc.Generator(seed).uniform(shape)", "randn": "nnc.Generator(seed).normal(shape)",
    "random": "nnc.Generator(seed).uniform(shape)", "seed": "nnc.manual_seed(seed)", "split": "generator.spawn(n)",
}  # fmt: skip
"""What to write instead of functions that draw."""
if not TYPE_CHECKING:
    __getattr__ = answers(__name__, _ADVICE)
