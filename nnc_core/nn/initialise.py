"""First weights: functions of (generator, shape, fan_in, fan_out, dtype).

Same seed, same weights on every device: uniform draws are scaled by exact steps and one rounding; normal draws agree
to a few units in the last place.  Weights are made on the current device, wherever the generator's key is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

from nnc_core.dynamic.functions.creation import zeros
from nnc_core.dynamic.modes import current_stack
from nnc_core.dynamic.random.generator import Generator, default_generator
from nnc_core.dynamic.tensor import Tensor

Initialiser = Callable[[Generator, Sequence[int], int, int, Any], Tensor]


def uniform(generator: Generator, shape: Sequence[int], bound: float, dtype: Any = None) -> Tensor:
    """Uniform in [-bound, bound)."""
    u = generator.uniform(shape, dtype=dtype)
    return _here((u * 2.0 - 1.0) * bound)


def normal(generator: Generator, shape: Sequence[int], deviation: float, dtype: Any = None) -> Tensor:
    """Normal with mean 0."""
    return _here(generator.normal(shape, dtype=dtype) * deviation)


def _here(x: Tensor) -> Tensor:
    return x.to(current_stack().device)


def standard(generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int, dtype: Any = None) -> Tensor:
    """Uniform within 1 / sqrt(fan_in) (Owl's Standard)."""
    return uniform(generator, shape, sqrt(1 / fan_in), dtype)


def glorot_uniform(generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int, dtype: Any = None) -> Tensor:
    """Uniform within sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010; Owl's Tanh)."""
    return uniform(generator, shape, sqrt(6 / (fan_in + fan_out)), dtype)


def glorot_normal(generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int, dtype: Any = None) -> Tensor:
    """Normal with variance 2 / (fan_in + fan_out) (Glorot and Bengio 2010)."""
    return normal(generator, shape, sqrt(2 / (fan_in + fan_out)), dtype)


def he_uniform(generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int, dtype: Any = None) -> Tensor:
    """Uniform within sqrt(6 / fan_in) (He et al. 2015), for layers followed by relu."""
    return uniform(generator, shape, sqrt(6 / fan_in), dtype)


def he_normal(generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int, dtype: Any = None) -> Tensor:
    """Normal with variance 2 / fan_in (He et al. 2015), for layers followed by relu."""
    return normal(generator, shape, sqrt(2 / fan_in), dtype)


def constant_zero(generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int, dtype: Any = None) -> Tensor:
    """Zeros; draws nothing."""
    return zeros(tuple(shape), dtype=dtype)


def generator_or_default(generator: Generator | None) -> Generator:
    """The given generator, or the one that `manual_seed` starts again."""
    return default_generator() if generator is None else generator
