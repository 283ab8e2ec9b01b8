"""Named dimensions of traces: which axes get a name, and what the trace found out about their sizes.

While a function is traced with names, every question about a size is answered by the number that it has this time: code
that needs the number gets it.  Each answer becomes a guard, and the trace serves those sizes for which all answers
would be the same.  So `x.shape[0] > 1` leaves a trace for all sizes above one, and `range(x.shape[0])` one for this
size alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import TypeAlias

from nnc_core.base.line import HOUSE
from nnc_core.type import Dim, DimLike, Dims, substitute
from nnc_core.type.watching import watching

Shapes: TypeAlias = tuple[Dims, ...]
Axis: TypeAlias = tuple[int, int]
"""Number of a tensor among the arguments, and of an axis."""


class Sizes:
    """The numbers of some names, and what was asked about them: a `DimWatcher`."""

    def __init__(self, numbers: Mapping[str, int], by_chance: bool = False) -> None:
        self.numbers = dict(numbers)
        self.by_chance = by_chance
        """Whether this package too takes different dimensions for equal if they have the same number this time.  Its
        rules are right without; but where they refuse two dimensions that do not fit for any size, they have to."""
        self.names = frozenset(numbers)
        self.answers: dict[tuple[str, Dim], bool] = {}
        self.needed: set[str] = set()
        """Names whose number was asked for."""

    def equal(self, difference: Dim) -> bool:
        if (not self.by_chance and sys._getframe(2).f_code.co_filename.startswith(HOUSE)
                and not difference.names <= self.needed):
            return False
        return self._answer("==", difference)

    def is_zero(self, dim: Dim) -> bool:
        return self._answer("==", dim)

    def is_negative(self, dim: Dim) -> bool:
        return self._answer("<", dim)

    def number(self, dim: Dim) -> int:
        """From now on the trace is for this number."""
        n = substitute(dim, self.numbers)
        self.needed |= dim.names
        self._answer("==", dim - n)
        return n

    def hashed(self, dim: Dim) -> int | None:
        """Ask for the number if a dimension is hashed outside this package, where a number is looked for."""
        if sys._getframe(2).f_code.co_filename.startswith(HOUSE) or not dim.names <= self.names:
            return None
        return self.number(dim)

    def _answer(self, relation: str, dim: Dim) -> bool:
        truth = _holds(relation, dim, self.numbers)
        self.answers[relation, dim] = truth
        return truth

    def hold_for(self, numbers: Mapping[str, int]) -> bool:
        """True if every answer would have been the same for these numbers."""
        try:
            return all(_holds(relation, dim, numbers) is truth for (relation, dim), truth in self.answers.items())
        except ZeroDivisionError:
            return False

    @property
    def pinned(self) -> frozenset[str]:
        """Names that can have no other number."""
        return frozenset(name for (relation, dim), truth in self.answers.items()
                         if truth and relation == "==" and len(dim.names) == 1 for name in dim.names)

    def guards(self) -> list[str]:
        """Conditions on sizes for the trace to hold."""
        return [f"{dim} {_SPELT[relation, truth]} 0" for (relation, dim), truth in self.answers.items()]


_SPELT = {("==", True): "==", ("==", False): "!=", ("<", True): "<", ("<", False): ">="}


def _holds(relation: str, dim: Dim, numbers: Mapping[str, int]) -> bool:
    n = substitute(dim, numbers)
    return n == 0 if relation == "==" else n < 0


@contextmanager
def answered_by(sizes: Sizes) -> Iterator[None]:
    """Questions about sizes are answered in this block, and noted."""
    token = watching.set(sizes)
    try:
        yield
    finally:
        watching.reset(token)


def named(before: Sequence[Shapes], now: Shapes, labels: Sequence[str], fixed: frozenset[Axis],
          mark: str = "") -> tuple[Shapes, Sizes] | None:
    """The shapes with a name for each size that has changed since an earlier call; None if there is nothing to name.

    Axes that always had the same size as each other share a name.  A size of 0 or 1 is no example of any other: such
    axes are traced as they are.
    """
    names: dict[tuple[int, ...], str] = {}
    numbers: dict[str, int] = {}
    shapes: list[Dims] = []
    for i, shape in enumerate(now):
        dims: list[DimLike] = []
        for a, n in enumerate(shape):
            assert isinstance(n, int)
            history = (*[int(shapes_then[i][a]) for shapes_then in before], n)
            if n < 2 or len(set(history)) == 1 or (i, a) in fixed:
                dims.append(n)
                continue
            name = names.setdefault(history, f"{labels[i]}.{a}{mark}")
            numbers[name] = n
            dims.append(Dim(name))
        shapes.append(tuple(dims))
    return (tuple(shapes), Sizes(numbers)) if numbers else None


def bound(shapes: Shapes, now: Shapes) -> dict[str, int] | None:
    """The number of each name, if shapes with names fit these."""
    numbers: dict[str, int] = {}
    for mine, given in zip(shapes, now, strict=True):
        for d, n in zip(mine, given, strict=True):
            if isinstance(d, Dim):
                (name,) = d.names
                if numbers.setdefault(name, int(n)) != n:
                    return None
            elif d != n:
                return None
    return numbers


def axes_of(shapes: Shapes, names: AbstractSet[str]) -> frozenset[Axis]:
    """The axes that have these names."""
    return frozenset((i, a) for i, shape in enumerate(shapes) for a, d in enumerate(shape)
                     if isinstance(d, Dim) and d.names <= names)
