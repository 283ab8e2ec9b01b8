"""Compiled loops in JAX."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks._loops import COUNT, WORKS

TOOLS = SimpleNamespace(xp=jnp, array=jnp.asarray, softmax=jax.nn.softmax, top_k=jax.lax.top_k, cond=jax.lax.cond)


def make(work: str, variant: str) -> Callable[[], object]:
    start, body = WORKS[work]
    first, numbers = jnp.asarray(start()), jnp.arange(COUNT)
    loop = jax.jit(lambda c, numbers: jax.lax.scan(lambda c, i: (body(TOOLS, c, i).astype(c.dtype), i), c, numbers)[0])
    return lambda: np.asarray(loop(first, numbers))
