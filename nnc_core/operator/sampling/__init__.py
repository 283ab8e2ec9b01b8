"""Distributions that are sampled by rejection, or by counting through their probabilities, in NumPy.

An element's number depends on the key, its place and its own parameters alone.  Everything is float64 until the end.
What a device may have quicker ways for, with the same bits, are its `Tools`.
"""

from nnc_core.operator.sampling.binomial import binomial, multinomial
from nnc_core.operator.sampling.choosing import distinct_integers, weighted_choice
from nnc_core.operator.sampling.drawing import TOOLS, Draws, Tools
from nnc_core.operator.sampling.gamma import gamma
from nnc_core.operator.sampling.poisson import poisson

__all__ = [
    "TOOLS", "Draws", "Tools", "binomial", "distinct_integers", "gamma", "multinomial", "poisson", "weighted_choice",
]  # fmt: skip
