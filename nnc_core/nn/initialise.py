"""First weights: functions of (generator, shape, fan_in, fan_out, dtype).

Same seed, same weights on every device: uniform draws are scaled by exact steps and one rounding; normal draws agree
to a few units in the last place.  Weights are made on the current device, wherever the generator's key is.

Those with settings of their own are classes: `Uniform(-0.1, 0.1)` is such a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import erf, inf, prod, sqrt
from typing import TYPE_CHECKING, Any, TypeAlias

from nnc_core.base.dtype import accumulator
from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.base.unknown_names import answers
from nnc_core.functions import creation
from nnc_core.functions.linalg_decompositions import qr
from nnc_core.functions.special import erfinv
from nnc_core.nn.spellings import INITIALISERS
from nnc_core.random.generator import Generator, default_generator
from nnc_core.type import admit_numpy, default_float
from nnc_core.values.modes import current_stack
from nnc_core.values.tensor import Tensor

Initialiser: TypeAlias = Callable[[Generator, Sequence[int], int, int, Any], Tensor]

if not TYPE_CHECKING:
    __getattr__ = answers(__name__, INITIALISERS)


# ---- draws
def uniform(generator: Generator, shape: Sequence[int], bound: float, dtype: Any = None) -> Tensor:
    """Uniform in [-bound, bound)."""
    u = generator.uniform(shape, dtype=dtype)
    return _here((u * 2.0 - 1.0) * bound)


def normal(generator: Generator, shape: Sequence[int], deviation: float, dtype: Any = None) -> Tensor:
    """Normal with mean 0."""
    return _here(generator.normal(shape, dtype=dtype) * deviation)


def _here(x: Tensor) -> Tensor:
    return x.to(current_stack())


def generator_or_default(generator: Generator | None) -> Generator:
    """The given generator, or the one that `manual_seed` starts again."""
    return default_generator() if generator is None else generator


# ---- by the number of inputs and outputs
def standard(generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int, dtype: Any = None) -> Tensor:
    """Uniform within 1 / sqrt(fan_in) (Owl's Standard)."""
    return uniform(generator, shape, sqrt(1 / fan_in), dtype)


def glorot_uniform(generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int, dtype: Any = None) -> Tensor:
    """Uniform within sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""
    return uniform(generator, shape, sqrt(6 / (fan_in + fan_out)), dtype)


tanh = glorot_uniform
"""Owl's Tanh."""


def glorot_normal(generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int, dtype: Any = None) -> Tensor:
    """Normal with variance 2 / (fan_in + fan_out) (Glorot and Bengio 2010)."""
    return normal(generator, shape, sqrt(2 / (fan_in + fan_out)), dtype)


def lecun_uniform(generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int, dtype: Any = None) -> Tensor:
    """Uniform within sqrt(3 / fan_in) (LeCun et al. 1998)."""
    return uniform(generator, shape, sqrt(3 / fan_in), dtype)


def lecun_normal(generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int, dtype: Any = None) -> Tensor:
    """Normal with variance 1 / fan_in (LeCun et al. 1998), for layers followed by selu."""
    return normal(generator, shape, sqrt(1 / fan_in), dtype)


def he_uniform(generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int, dtype: Any = None) -> Tensor:
    """Uniform within sqrt(6 / fan_in) (He et al. 2015), for layers followed by relu."""
    return uniform(generator, shape, sqrt(6 / fan_in), dtype)


def he_normal(generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int, dtype: Any = None) -> Tensor:
    """Normal with variance 2 / fan_in (He et al. 2015), for layers followed by relu."""
    return normal(generator, shape, sqrt(2 / fan_in), dtype)


# ---- constants
def zeros(generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int, dtype: Any = None) -> Tensor:
    """Zeros; draws nothing."""
    return creation.zeros(tuple(shape), dtype=dtype)


def ones(generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int, dtype: Any = None) -> Tensor:
    """Ones; draws nothing."""
    return creation.ones(tuple(shape), dtype=dtype)


@dataclass(frozen=True)
class Constant:
    """One number everywhere; draws nothing."""

    value: float

    def __call__(self, generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int,
                 dtype: Any = None) -> Tensor:
        return creation.full(tuple(shape), float(self.value), dtype=dtype)


# ---- with settings
def _check_deviation(name: str, deviation: float) -> None:
    if not 0 <= deviation < inf:
        raise AttributeValueError(f"deviation is {deviation}, expected at least 0", operator=name)


@dataclass(frozen=True)
class Uniform:
    """Uniform in [low, high)."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not -inf < self.low <= self.high < inf:
            raise AttributeValueError(f"from {self.low} to {self.high}, expected low <= high", operator="Uniform")

    def __call__(self, generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int,
                 dtype: Any = None) -> Tensor:
        return _here(generator.uniform(shape, dtype=dtype) * (self.high - self.low) + self.low)


@dataclass(frozen=True)
class Gaussian:
    """Normal with these two moments."""

    mean: float = 0.0
    deviation: float = 1.0

    def __post_init__(self) -> None:
        _check_deviation("Gaussian", self.deviation)

    def __call__(self, generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int,
                 dtype: Any = None) -> Tensor:
        z = normal(generator, shape, self.deviation, dtype)
        return z + self.mean if self.mean else z


standard_normal = Gaussian()
"""Mean 0, deviation 1."""


@dataclass(frozen=True)
class TruncatedNormal:
    """Normal with these two moments before what is below `low` or above `high` deviations from the mean is left out:
    one uniform draw for each number, taken through the inverse of the distribution."""

    deviation: float = 1.0
    mean: float = 0.0
    low: float = -2.0
    high: float = 2.0

    def __post_init__(self) -> None:
        _check_deviation("TruncatedNormal", self.deviation)
        if not self.low < self.high:
            raise AttributeValueError(f"from {self.low} to {self.high} deviations, expected low < high",
                                      operator="TruncatedNormal")

    def __call__(self, generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int,
                 dtype: Any = None) -> Tensor:
        first, last = erf(self.low / sqrt(2)), erf(self.high / sqrt(2))
        u = generator.uniform(shape, dtype=dtype) * (last - first) + first
        z = creation.asarray(erfinv(u) * sqrt(2)).clip(self.low, self.high)
        return _here(z * self.deviation + self.mean)


@dataclass(frozen=True)
class Orthogonal:
    """The rows or the columns, whichever are fewer, orthonormal times `gain` (Saxe, McClelland and Ganguli 2014).

    Weights of more than two dimensions are taken as the matrix (inputs, output channels).
    """

    gain: float = 1.0

    def __call__(self, generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int,
                 dtype: Any = None) -> Tensor:
        if len(shape) < 2:
            raise ShapeError(f"weights of shape {tuple(shape)} are no matrix", operator="Orthogonal")
        first = prod(shape) != fan_in * shape[-1]  # output channels come first in layouts with channels first
        outputs = shape[0] if first else shape[-1]
        inputs = prod(shape) // outputs
        tall = _orthonormal(generator, max(inputs, outputs), min(inputs, outputs), dtype) * self.gain
        matrix = tall if inputs >= outputs else tall.T
        return _here((matrix.T if first else matrix).reshape(tuple(shape)))


def _orthonormal(generator: Generator, rows: int, columns: int, dtype: Any) -> Tensor:
    """Each such matrix as likely as any other: the sign of R's diagonal is made positive."""
    wanted = default_float() if dtype is None else admit_numpy(dtype)
    q, r = qr(generator.normal((rows, columns), dtype=accumulator(wanted)))
    signs: Tensor = r.diagonal() >= 0
    made: Tensor = q * (signs.astype(q.dtype) * 2.0 - 1.0)
    return made.astype(wanted)


@dataclass(frozen=True)
class Custom:
    """The result of a function of the shape: a tensor, an array or nested lists (Owl's Custom)."""

    function: Callable[[tuple[int, ...]], Any]

    def __call__(self, generator: Generator, shape: Sequence[int], fan_in: int, fan_out: int,
                 dtype: Any = None) -> Tensor:
        made = creation.asarray(self.function(tuple(shape)), dtype=default_float() if dtype is None else dtype)
        if made.shape != tuple(shape):
            raise ShapeError(f"the function gave {made.spec} for weights of shape {tuple(shape)}", operator="Custom")
        return _here(made)
