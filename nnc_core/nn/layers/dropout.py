"""Noise for training: elements or channels left out, and numbers added to them.

In evaluation all of these are the identity.  What they draw comes from a Generator whose key is part of the state: the
same in every mode and on every device, and drawn anew by each call, compiled calls included.  Without one a layer makes
its own, seeded by the default one.
"""

from __future__ import annotations

from nnc_core.functions.dropouts import (
    alpha_dropout,
    dropout,
    gaussian_dropout,
    gaussian_noise,
    spatial_dropout,
)
from nnc_core.nn.layers.checks import within
from nnc_core.nn.layers.settings import settings
from nnc_core.nn.module import Module
from nnc_core.random.generator import Generator, default_generator
from nnc_core.values.tensor import Tensor

__all__ = ["AlphaDropout", "Dropout", "GaussianDropout", "GaussianNoise", "SpatialDropout"]


class _Dropout(Module):
    """A rate and a generator."""

    def __init__(self, rate: float, generator: Generator | None = None) -> None:
        self._set(rate, generator)

    def _set(self, rate: float, generator: Generator | None) -> None:
        within(type(self).__name__, 0, 1, rate=rate)
        self.rate = rate
        self.generator = _seeded_generator() if generator is None else generator

    def describe(self) -> str:
        return settings(self, "rate")


class Dropout(_Dropout):
    """In training each element is zero with probability `rate`, else divided by 1 - rate; in evaluation x itself
    (Srivastava et al. 2014).

    The masks come from a Generator whose key is part of the state: the same in every mode and on every device, and
    drawn anew by each call, compiled calls included.  Without one the layer makes its own, seeded by the default one.
    """

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as x."""
        return dropout(x, self.rate, training=self.training, generator=self.generator)


class SpatialDropout(_Dropout):
    """`Dropout` of whole channels, which are along `axis` (1 for layouts with channels first); the first axis is the
    batch (Tompson et al. 2015).  PyTorch's Dropout1d, Dropout2d and Dropout3d."""

    def __init__(self, rate: float, axis: int = -1, generator: Generator | None = None) -> None:
        self._set(rate, generator)
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as x."""
        return spatial_dropout(x, self.rate, axis=self.axis, training=self.training, generator=self.generator)

    def describe(self) -> str:
        return settings(self, "rate", "axis")


class AlphaDropout(_Dropout):
    """In training elements are set, with probability `rate`, to what selu gives at -inf, then all scaled and moved so
    that mean 0 and variance 1 stay (Klambauer et al. 2017)."""

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as x."""
        return alpha_dropout(x, self.rate, training=self.training, generator=self.generator)


class GaussianDropout(_Dropout):
    """In training x times normal numbers of mean 1 and variance rate / (1 - rate) (Srivastava et al. 2014)."""

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as x."""
        return gaussian_dropout(x, self.rate, training=self.training, generator=self.generator)


class GaussianNoise(Module):
    """In training x plus normal numbers of mean 0 and this standard deviation."""

    def __init__(self, deviation: float, generator: Generator | None = None) -> None:
        within("GaussianNoise", 0, float("inf"), deviation=deviation)
        self.deviation = deviation
        self.generator = _seeded_generator() if generator is None else generator

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as x."""
        return gaussian_noise(x, self.deviation, training=self.training, generator=self.generator)

    def describe(self) -> str:
        return settings(self, "deviation")


def _seeded_generator() -> Generator:
    return Generator(default_generator().bits(dtype="uint64").item())
