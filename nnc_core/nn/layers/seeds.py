"""Generators of layers that draw in training."""

from __future__ import annotations

from nnc_core.nn.initialise import generator_or_default
from nnc_core.random.generator import Generator


def own_generator(source: Generator | None) -> Generator:
    """A generator on the current device, seeded by a draw from the source, or from the default one."""
    return Generator(generator_or_default(source).bits(dtype="uint64").item())
