"""The place of a value in the ONNX graph: a name, perhaps with its axes in another order than ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Order = tuple[int, ...]
"""Axes as a transposition takes them: axis i of the result is axis order[i]."""


class Held(NamedTuple):
    """A value is the array of that name with its axes in that order; None: as they lie."""

    name: str
    order: Order | None = None

    def moved(self, axes: Sequence[int]) -> Held:
        """The value with its axes in another order, for which nothing moves yet."""
        axes = tuple(axes)
        order = axes if self.order is None else tuple([self.order[a] for a in axes])
        return Held(self.name, None if is_identity(order) else order)


def is_identity(order: Sequence[int]) -> bool:
    """Tell whether axes stay where they are."""
    return list(order) == list(range(len(order)))


def inverse(order: Sequence[int]) -> Order:
    """The order that undoes another."""
    return tuple([list(order).index(axis) for axis in range(len(order))])
