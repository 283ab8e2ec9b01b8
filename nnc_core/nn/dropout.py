"""Dropout."""

from __future__ import annotations

from nnc_core.base.errors import AttributeValueError
from nnc_core.dynamic.functions.elementwise import where
from nnc_core.dynamic.random.generator import Generator, default_generator
from nnc_core.dynamic.tensor import Tensor
from nnc_core.nn.module import Module


class Dropout(Module):
    """In training each element is zero with probability `rate`, else divided by 1 - rate; in evaluation x itself.

    The masks come from a Generator whose key is part of the state: the same in every mode and on every device, and
    drawn anew by each call, compiled calls included.  Without one the layer makes its own, seeded by the default one.
    """

    def __init__(self, rate: float, generator: Generator | None = None) -> None:
        if not 0 <= rate < 1:
            raise AttributeValueError(f"rate is {rate}, expected 0 <= rate < 1", operator="Dropout")
        self.rate = rate
        self.generator = _seeded_generator() if generator is None else generator

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        keep = self.generator.bernoulli(1 - self.rate, x.shape)
        return where(keep, x * (1 / (1 - self.rate)), 0.0)

    def describe(self) -> str:
        return f"{self.rate}"


def _seeded_generator() -> Generator:
    return Generator(default_generator().bits(dtype="uint64").item())
