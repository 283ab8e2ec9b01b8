"""Names of NumPy's and JAX' modules of random numbers, answered with generators."""

from __future__ import annotations

_SAME = ("bernoulli", "beta", "binomial", "bits", "categorical", "choice", "dirichlet", "exponential", "gamma",
         "gumbel", "integers", "laplace", "logistic", "multinomial", "multivariate_normal", "normal", "permutation",
         "poisson", "randint", "shuffle", "truncated_normal", "uniform")

ADVICE = {name: f"nnc.Generator(seed).{name}(...)" for name in _SAME} | {
    "Generator": "nnc.Generator", "PRNGKey": "nnc.Generator(seed)", "RandomState": "nnc.Generator(seed)",
    "default_rng": "nnc.Generator(seed)", "fold_in": "generator.spawn(n)", "key": "nnc.Generator(seed)",
    "manual_seed": "nnc.manual_seed(seed)", "rand": "nnc.Generator(seed).uniform(shape)",
    "randn": "nnc.Generator(seed).normal(shape)", "random": "nnc.Generator(seed).uniform(shape)",
    "seed": "nnc.manual_seed(seed)", "split": "generator.spawn(n)",
}  # fmt: skip
"""What to write instead of functions that draw."""
