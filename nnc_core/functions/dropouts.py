"""Noise for training: elements or channels left out, and what keeps their moments.

All take a `generator` (the default one without it): the same masks on every device and in every mode, drawn anew at
each call, compiled calls included.  Without `training` they are x itself, and nothing is drawn.
"""

from __future__ import annotations

from math import sqrt

from nnc_core.base.dtype import accumulator
from nnc_core.base.errors import AttributeValueError
from nnc_core.functions.activation import SELU_ALPHA, SELU_SCALE
from nnc_core.functions.constants import beside
from nnc_core.functions.reduction import as_inexact
from nnc_core.random.generator import Generator, generator_for
from nnc_core.shape.axes import normalise_axes, normalise_axis
from nnc_core.type import Dims
from nnc_core.values.arguments import ArrayLike, Axis, as_value, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["alpha_dropout", "dropout", "gaussian_dropout", "gaussian_noise", "spatial_dropout"]


def check_rate(rate: float, most: float = 1.0) -> None:
    if not 0 <= rate <= most:
        raise AttributeValueError(f"rate is {rate}, expected 0 <= rate <= {most}")


def kept(v: Value, rate: float, generator: Generator | None, shape: Dims | None = None) -> Value:
    """Elements are 0 with probability `rate`, else divided by 1 - rate; the mask has the shape, broadcast to v."""
    with beside(v):
        keep = generator_for(generator, v.stack).bernoulli(1 - rate, v.shape if shape is None else shape)
    return F.where(keep._value, F.multiply(v, 1 / (1 - rate)) if rate < 1 else v, 0)


@names_itself
def dropout(x: ArrayLike, rate: float = 0.5, /, *, shared: Axis = (), training: bool = True,
            generator: Generator | None = None) -> Tensor:
    """Each element is 0 with probability `rate`, else divided by 1 - rate (Srivastava et al. 2014).

    Along axes that are `shared` all elements go together.
    """
    check_rate(rate)
    v = as_inexact(as_value(x))
    if not training or rate == 0:
        return Tensor(v)
    axes = normalise_axes(shared, v.ndim)
    return Tensor(kept(v, rate, generator, tuple(1 if a in axes else d for a, d in enumerate(v.shape))))


@names_itself
def spatial_dropout(x: ArrayLike, rate: float = 0.5, /, *, axis: int = -1, training: bool = True,
                    generator: Generator | None = None) -> Tensor:
    """`dropout` of whole channels, which are along an axis; the first axis is the batch (Tompson et al. 2015)."""
    v = as_inexact(as_value(x))
    own = {0, normalise_axis(axis, v.ndim)}
    others = tuple(a for a in range(v.ndim) if a not in own)
    return dropout(Tensor(v), rate, shared=others, training=training, generator=generator)


@names_itself
def alpha_dropout(x: ArrayLike, rate: float = 0.5, /, *, training: bool = True,
                  generator: Generator | None = None) -> Tensor:
    """Elements set, with probability `rate`, to what selu gives at -inf, then scaled and moved so that mean 0 and
    variance 1 stay (Klambauer et al. 2017)."""
    check_rate(rate)
    v = as_inexact(as_value(x))
    if not training or rate == 0:
        return Tensor(v)
    if rate == 1:
        return Tensor(F.zeros_like(v))
    lowest = -SELU_ALPHA * SELU_SCALE
    scale = 1 / sqrt((1 - rate) * (1 + rate * lowest**2))
    with beside(v):
        keep = generator_for(generator, v.stack).bernoulli(1 - rate, v.shape)
    return Tensor(F.add(F.multiply(F.where(keep._value, v, lowest), scale), -scale * lowest * rate))


def _noise(v: Value, mean: float, deviation: float, generator: Generator | None) -> Value:
    with beside(v):
        return generator_for(generator, v.stack).normal(v.shape, mean, deviation, accumulator(v.dtype))._value


def _as(y: Value, v: Value) -> Tensor:
    return Tensor(y if y.dtype == v.dtype else F.cast(y, dtype=v.dtype))


@names_itself
def gaussian_dropout(x: ArrayLike, rate: float = 0.5, /, *, training: bool = True,
                     generator: Generator | None = None) -> Tensor:
    """x times normal numbers of mean 1 and variance rate / (1 - rate)."""
    check_rate(rate)
    v = as_inexact(as_value(x))
    if not training or rate == 0:
        return Tensor(v)
    if rate == 1:
        raise AttributeValueError("rate is 1: the variance would be infinite", hint="0 <= rate < 1")
    return _as(F.multiply(v, _noise(v, 1.0, sqrt(rate / (1 - rate)), generator)), v)


@names_itself
def gaussian_noise(x: ArrayLike, deviation: float = 1.0, /, *, training: bool = True,
                   generator: Generator | None = None) -> Tensor:
    """x plus normal numbers of mean 0."""
    if not deviation >= 0:
        raise AttributeValueError(f"deviation is {deviation}, expected at least 0")
    v = as_inexact(as_value(x))
    if not training or deviation == 0:
        return Tensor(v)
    return _as(F.add(v, _noise(v, 0.0, deviation, generator)), v)
